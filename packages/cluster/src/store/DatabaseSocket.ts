/**
 * The socket of a connection to PostgreSQL. A server that neither answers nor closes (a firewall that forgot the
 * connection, a host that is gone) would keep what waits on it waiting for ever: a line that was asked something and
 * says nothing for too long is cut, and the pool opens another.
 */
import { connect, type Socket } from "node:net"
import { Effect, Redacted } from "effect"
import * as Metrics from "../observe/Metrics.ts"
import { Timing } from "../Timing.ts"

export interface Target {
  readonly url?: Redacted.Redacted<string>
  readonly path?: string
  readonly host?: string
  readonly port?: number
}

/** Where the server listens, as the driver reads it from the same settings. */
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
  heardAt: number
  /** When it was asked what it has not answered; undefined while it owes nothing. */
  askedAt: number | undefined
}

/** Bytes of both directions, which count below TLS too: nothing is added to what a statement costs. */
const look = (line: Line, now: number): void => {
  const { bytesWritten, bytesRead } = line.socket
  if (bytesRead !== line.received) {
    line.heardAt = now
    line.askedAt = undefined
  } else if (bytesWritten !== line.sent) line.askedAt ??= now
  line.sent = bytesWritten
  line.received = bytesRead
}

/** Asked since it was last heard, whether or not it was looked at meanwhile. */
const owes = ({ askedAt, received, sent, socket }: Line): boolean =>
  socket.bytesRead === received && (askedAt !== undefined || socket.bytesWritten !== sent)

const open = Metrics.gauge("svc_db_connections", "Open connections to the database", ["pool"])
const used = Metrics.gauge("svc_db_pool_used", "Connections to the database that owe an answer", ["pool"])
const owing = Metrics.gauge(
  "svc_db_silence_seconds",
  "How long the database has owed an answer on the connection that waits longest",
  ["pool"],
)

const silent = new Error("the database did not answer in time")

/** The lines of one process to one server. */
export const make = (target: Target) => {
  const lines = new Set<Line>()
  const address = addressOf(target)

  /** With a line that is silent go all that were not heard since it was asked, unless one may still be at long work. */
  const cut = (line: Line, askedAt: number) => {
    for (const other of lines) {
      if (other.heardAt >= askedAt) continue
      if (other.askedAt === undefined || other.silenceMillis <= line.silenceMillis) other.socket.destroy(silent)
    }
  }

  return {
    /** Says of a pool what its lines are doing, until the scope closes. */
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
              (most, { askedAt }) => Math.max(most, askedAt === undefined ? 0 : performance.now() - askedAt),
              0,
            ) / 1000,
        ),
      )
    },
    /** Opens lines of a pool that may take so long to answer. */
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
        heardAt: performance.now(),
        askedAt: undefined,
      }
      lines.add(line)
      const timer = setInterval(() => {
        const now = performance.now()
        look(line, now)
        if (line.askedAt !== undefined && now - line.askedAt >= silenceMillis) cut(line, line.askedAt)
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
