/** `svc tunnel <port>`: a public address for a local port, for as long as it runs. */
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { apiFlag } from "../account/Commands.ts"
import { call, connect, explain, NotLoggedIn, Refused } from "../client/Connection.ts"

const say = (text: string) => void process.stdout.write(`${text}\n`)

const Who = Schema.Struct({ caller: Schema.Struct({ handle: Schema.NullOr(Schema.String) }) })
const Named = Schema.Struct({ tunnel: Schema.Struct({ hostname: Schema.String, url: Schema.String }) })

/** Where the agent dials: beside the tunnels' own names, over the same scheme and port. */
const edgeOf = (tunnel: { readonly hostname: string; readonly url: string }) => {
  const url = new URL(tunnel.url)
  url.hostname = tunnel.hostname.replace(/^[^.]+/, "connect")
  return url.origin
}

export const command = Command.make(
  "tunnel",
  {
    port: Argument.Int("port").pipe(Argument.withDescription("The local port that requests go to")),
    handle: Flag.String("handle").pipe(
      Flag.withDescription("The Identity, where the credential is not its own key"),
      Flag.optional,
    ),
    host: Flag.String("host").pipe(
      Flag.withDescription("The local address, loopback unless you say otherwise"),
      Flag.withDefault("127.0.0.1"),
    ),
    tcp: Flag.Boolean("tcp").pipe(
      Flag.withDescription("Only the Identity's TCP port leads to the local one, not its hostname"),
      Flag.withDefault(false),
    ),
    quiet: Flag.Boolean("quiet").pipe(Flag.withDescription("Do not tell of each request"), Flag.withDefault(false)),
    edge: Flag.String("edge").pipe(
      Flag.withDescription("Address of the edge, where it is not beside the tunnel's own"),
      Flag.optional,
    ),
    api: apiFlag,
  },
  Effect.fnUntraced(
    function* (flags) {
      const { api, key } = yield* connect(flags.api)
      const who = yield* Effect.orDie(
        Schema.decodeUnknownEffect(Who)(yield* call(api, "GET", "/api/auth/whoami", { key })),
      )
      const handle = Option.getOrUndefined(flags.handle) ?? who.caller.handle
      if (handle === null) {
        return yield* new NotLoggedIn({ message: "Say whose tunnel it is: --handle <handle>." })
      }
      const identity = yield* Effect.orDie(
        Schema.decodeUnknownEffect(Named)(
          yield* call(api, "GET", `/api/identities/${encodeURIComponent(handle)}`, { key }),
        ),
      )
      const tunnel = connectTunnel({
        key: Redacted.value(key),
        handle,
        edge: Option.getOrElse(flags.edge, () => edgeOf(identity.tunnel)),
        port: flags.port,
        host: flags.host,
        tcpOnly: flags.tcp,
        client: "svc command line",
        onConnected: ({ hostname, url, tcp_port }) => {
          if (!flags.tcp) say(`${url}  ->  ${flags.host}:${flags.port}`)
          if (tcp_port !== null) say(`tcp://${hostname}:${tcp_port}  ->  ${flags.host}:${flags.port}`)
        },
        onDisconnected: (reason, wait) =>
          say(wait < 0 ? `Over: ${reason}` : `Disconnected (${reason}); trying again in ${(wait / 1000).toFixed(1)} s`),
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
          Effect.andThen(
            Effect.promise(() => running.ended),
            Effect.tryPromise({
              try: () => running.ready,
              catch: (error) =>
                new Refused({
                  message: error instanceof Error ? error.message : String(error),
                  code: "refused",
                  retryAfterSeconds: null,
                }),
            }),
          ),
        (running) => Effect.promise(() => running.close()),
      )
    },
    Effect.catchTags({ Refused: explain, OutOfReach: explain, NotLoggedIn: explain }),
  ),
).pipe(Command.withDescription("Give a local port a public address."))
