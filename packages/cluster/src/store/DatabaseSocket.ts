/**
 * The sockets of the connections to PostgreSQL. A peer that neither responds nor closes (a firewall that dropped its state, a host
 * that is down) would block its callers indefinitely. A socket that receives no response for too long is destroyed, and the pool
 * opens another connection.
 */
import { connect, type Socket } from "node:net"
import { Effect, Redacted } from "effect"
import * as Metrics from "../observe/Metrics.ts"
import { Timing } from "../Timing.ts"

interface Target {
  readonly url?: Redacted.Redacted<string>
  readonly path?: string
  readonly host?: string
  readonly port?: number
}

/** Returns the address of the server, derived from the settings in the same way as the driver does. */
const addressOf = (target: Target): { readonly path: string } | { readonly host: string; readonly port: number } => {
  if (target.path !== undefined) return { path: target.path }
  const url = target.url === undefined ? undefined : new URL(Redacted.value(target.url))
  const authority = url?.hostname.replace(/^\[(.*)\]$/, "$1")
  const named = url?.searchParams.get("host") ?? (authority === "" ? undefined : authority)
  const host = target.host ?? (named === undefined ? "localhost" : decodeURIComponent(named))
  const port = target.port ?? Number(url?.searchParams.get("port") ?? (url?.port || 5432))
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}

interface Line {
  readonly socket: Socket
  readonly pool: string
  readonly silenceMillis: number
  sent: number
  received: number
  lastReceivedAt: number
  /** When the oldest request without a response was sent; undefined while no response is outstanding. */
  requestedAt: number | undefined
}

/** Compares the byte counters of the socket, which works under TLS and adds no cost to a statement. */
const look = (line: Line, now: number): void => {
  const { bytesWritten, bytesRead } = line.socket
  if (bytesRead !== line.received) {
    line.lastReceivedAt = now
    line.requestedAt = undefined
  } else if (bytesWritten !== line.sent) line.requestedAt ??= now
  line.sent = bytesWritten
  line.received = bytesRead
}

/** Whether a response is outstanding. */
const owes = ({ requestedAt, received, sent, socket }: Line): boolean =>
  socket.bytesRead === received && (requestedAt !== undefined || socket.bytesWritten !== sent)

const open = Metrics.gauge("svc_db_connections", "Open connections to the database", ["pool"])
const used = Metrics.gauge("svc_db_pool_used", "Connections to the database that wait for a response", ["pool"])
const owing = Metrics.gauge(
  "svc_db_silence_seconds",
  "How long the connection that waits longest has waited for a response of the database",
  ["pool"],
)

const silent = new Error("the database did not respond in time")

/** Owns the sockets of one process to one server. */
export const make = (target: Target) => {
  const lines = new Set<Line>()
  const address = addressOf(target)

  /** Destroys a silent socket and all others that have received nothing since, except those whose statements may run longer. */
  const cut = (line: Line, requestedAt: number) => {
    for (const other of lines) {
      if (other.lastReceivedAt >= requestedAt) continue
      if (other.requestedAt === undefined || other.silenceMillis <= line.silenceMillis) other.socket.destroy(silent)
    }
  }

  return {
    /** Reports the metrics of a pool until the scope closes. */
    watched: (pool: string) => {
      const of = () => [...lines].filter((line) => line.pool === pool)
      return Effect.andThen(
        Effect.andThen(
          open.scoped([pool], () => of().length),
          used.scoped([pool], () => of().filter(owes).length),
        ),
        owing.scoped(
          [pool],
          () =>
            of().reduce(
              (most, { requestedAt }) =>
                Math.max(most, requestedAt === undefined ? 0 : performance.now() - requestedAt),
              0,
            ) / 1000,
        ),
      )
    },
    /** Returns a function that opens sockets of a pool, whose responses may take up to `silenceMillis`. */
    opener: (pool: string, silenceMillis: number) => (): Socket => {
      const socket = connect({
        ...address,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: Timing.lineKeepAliveMillis,
      })
      const line: Line = {
        socket,
        pool,
        silenceMillis,
        sent: 0,
        received: 0,
        lastReceivedAt: performance.now(),
        requestedAt: undefined,
      }
      lines.add(line)
      const timer = setInterval(() => {
        const now = performance.now()
        look(line, now)
        if (line.requestedAt !== undefined && now - line.requestedAt >= silenceMillis) cut(line, line.requestedAt)
      }, Timing.lineLookMillis)
      timer.unref()
      socket.once("close", () => {
        clearInterval(timer)
        lines.delete(line)
      })
      return socket
    },
  }
}
