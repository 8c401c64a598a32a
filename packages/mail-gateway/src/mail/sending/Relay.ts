/**
 * The operator's relay (`SVC_SMTP_RELAY_URL`): one pool of connections for mail of Identities and for system letters.
 */
import { Context, Effect, Layer } from "effect"
import { Timing } from "../../Timing.ts"
import type { RelayServer } from "./RelayUrl.ts"
import { begin, type Deadlines } from "./smtp/Conversation.ts"
import * as Pool from "./smtp/Pool.ts"

interface RelaySettings {
  readonly server: RelayServer
  /** The service's host name for EHLO. */
  readonly helo: string
  /** Certificate authorities trusted in place of those that Node.js knows. */
  readonly ca?: string
  readonly deadlines?: Deadlines
}

/** The maximum number of concurrent connections, and of messages per connection. */
const limits = { connections: 10, maxLetters: 100 }

const make = Effect.fnUntraced(function* (settings: RelaySettings) {
  const { server } = settings
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() =>
      Pool.make({
        begin: begin(
          { host: server.host, port: server.port },
          {
            name: server.host,
            helo: settings.helo,
            tls: server.tls,
            ca: settings.ca,
            login: server.login,
            deadlines: settings.deadlines,
          },
        ),
        maxConnections: limits.connections,
        idleMillis: Timing.relayIdleMillis,
        maxLetters: limits.maxLetters,
      }),
    ),
    (pool) => Effect.sync(() => pool.close()),
  )
  return { host: server.host, transact: pool.transact }
})

export class Relay extends Context.Service<Relay, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/sending/Relay",
) {
  static readonly layer = (settings: RelaySettings) => Layer.effect(Relay, make(settings))
}
