/**
 * `svc tunnel <port>`: gives a local port a public address while it runs. Without a port, the command only stores the
 * given settings of the Tunnel.
 */
import type { Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { apiFlag, handleFlag } from "../client/Flags.ts"
import { terminalText } from "../client/Printing.ts"
import { call, connect, explained, handleOf, Misused, Refused, understood } from "../client/Connection.ts"

const say = (text: string) => void process.stdout.write(`${terminalText(text)}\n`)
const warn = (text: string) => void process.stderr.write(`svc: ${terminalText(text)}\n`)

const Named = Schema.Struct({ tunnel: Schema.Struct({ hostname: Schema.String, url: Schema.String }) })

/** Returns the value of `callers` in the API. */
const callersOf = (text: string) =>
  text === "anyone" || text === "signed" ? text : text.split(",").map((caller) => caller.trim())

/** Returns the address to which the agent connects, with the scheme and port of the tunnels. */
const edgeOf = (tunnel: { readonly hostname: string; readonly url: string }) => {
  const url = new URL(tunnel.url)
  url.hostname = tunnel.hostname.replace(/^[^.]+/, "connect")
  return url.origin
}

/** Stops accepting requests and waits for those in flight, unless a second signal arrives. */
const leave = (tunnel: Tunnel) =>
  Effect.promise(async () => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130))
    const underWay = tunnel.activeCount()
    // The announcement is printed after the edges have stopped sending new requests to this agent.
    await tunnel.drain(undefined, () => {
      if (underWay > 0) say(`Waiting for ${underWay} requests to finish. Press Ctrl+C again to stop now.`)
    })
  })

export const command = Command.make(
  "tunnel",
  {
    port: Argument.Int("port").pipe(
      Argument.filter(
        (port) => port >= 1 && port <= 65_535,
        (port) => `A port is a number from 1 to 65535, not ${port}.`,
      ),
      Argument.withDescription("The local port that receives requests; without it, only the settings are stored"),
      Argument.optional,
    ),
    handle: handleFlag,
    host: Flag.String("host").pipe(
      Flag.withDescription("The local address; default: loopback"),
      Flag.withDefault("127.0.0.1"),
    ),
    hostHeader: Flag.String("host-header").pipe(
      Flag.withDescription("Host header for the application: preserve, local, or a host name; stored with the Tunnel"),
      Flag.optional,
    ),
    callers: Flag.String("callers").pipe(
      Flag.withDescription(
        "Permitted callers: anyone, signed (agents that sign requests), or origins and Handles separated by commas; stored with the Tunnel",
      ),
      Flag.optional,
    ),
    tcp: Flag.Boolean("tcp").pipe(
      Flag.withDescription("Forward only the Identity's TCP port, not its hostname"),
      Flag.withDefault(false),
    ),
    quiet: Flag.Boolean("quiet").pipe(Flag.withDescription("Do not print requests"), Flag.withDefault(false)),
    edge: Flag.String("edge").pipe(
      Flag.withDescription("Address of the edge, if it differs from the default"),
      Flag.optional,
    ),
    api: apiFlag,
  },
  Effect.fnUntraced(function* (flags) {
    const connection = yield* connect(flags.api)
    const { api, key } = connection
    const handle = yield* handleOf(connection, flags.handle)
    const identity = yield* understood(
      api,
      Schema.decodeUnknownEffect(Named)(
        yield* call(api, "GET", `/api/identities/${encodeURIComponent(handle)}`, { key }),
      ),
    )
    const settings = {
      ...Option.match(flags.hostHeader, { onNone: () => ({}), onSome: (host_header) => ({ host_header }) }),
      ...Option.match(flags.callers, { onNone: () => ({}), onSome: (text) => ({ callers: callersOf(text) }) }),
    }
    if (Object.keys(settings).length > 0) {
      const path = `/api/identities/${encodeURIComponent(handle)}/tunnel`
      yield* call(api, "PATCH", path, { key, body: settings })
    }
    if (Option.isNone(flags.port)) {
      if (Object.keys(settings).length > 0) return say(`The settings of the Tunnel of ${handle} are stored.`)
      return yield* new Misused({ message: "Name the local port, as in `svc tunnel 3000`, or a setting to store." })
    }
    const port = flags.port.value
    const { connectTunnel } = yield* Effect.promise(() => import("@svc/tunnel-edge/agent/Agent"))
    const tunnel = connectTunnel({
      key: Redacted.value(key),
      handle,
      edge: Option.getOrElse(flags.edge, () => edgeOf(identity.tunnel)),
      port,
      host: flags.host,
      tcpOnly: flags.tcp,
      client: "svc command line",
      onConnected: ({ hostname, url, tcp_port }) => {
        if (!flags.tcp) say(`${url}  ->  ${flags.host}:${port}`)
        if (tcp_port !== null) say(`tcp://${hostname}:${tcp_port}  ->  ${flags.host}:${port}`)
      },
      // A permanent failure is reported at the end.
      onDisconnected: (reason, wait) => {
        if (wait >= 0) say(`Disconnected (${reason}); retrying in ${(wait / 1000).toFixed(1)} s`)
      },
      onLocal: (isUp, reason) => {
        if (isUp) say(`${flags.host}:${port} answers again.`)
        else
          warn(`${flags.host}:${port} is unreachable (${reason}); requests receive 502 until a server listens there.`)
      },
      onNotice: warn,
      ...(flags.quiet
        ? {}
        : {
            onRequest: ({ line, peer }: { readonly line: string; readonly peer: string }) =>
              say(`${new Date().toISOString().slice(11, 19)}  ${peer}  ${line}`),
          }),
    })
    yield* Effect.acquireUseRelease(
      Effect.succeed(tunnel),
      (running) =>
        Effect.flatMap(
          Effect.promise(() => running.ended),
          (refused) =>
            refused === undefined
              ? Effect.void
              : Effect.fail(new Refused({ message: refused.message, code: refused.code, retryAfterSeconds: null })),
        ),
      leave,
    )
  }, explained),
).pipe(Command.withDescription("Give a local port a public address. `svc tunnel get <handle>` shows the Tunnel."))
