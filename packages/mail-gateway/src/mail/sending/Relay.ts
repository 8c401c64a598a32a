/** The operator's relay (`SVC_SMTP_RELAY_URL`): one pool of connections for what Identities send and for our own letters. */
import { Context, Effect, Layer } from "effect"
import { Timing } from "../../Timing.ts"
import type { RelayServer } from "./RelayUrl.ts"
import { begin, type Deadlines } from "./smtp/Conversation.ts"
import * as Pool from "./smtp/Pool.ts"

export interface RelaySettings {
  readonly server: RelayServer
  /** Our own name, for EHLO. */
  readonly helo: string
  /** Certificates trusted besides those of the system. */
  readonly ca?: string
  readonly deadlines?: Deadlines
}

/** Letters under way at once, and how many a connection carries before it is another's turn. */
const limits = { connections: 10, letters: 100 }

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
        most: limits.connections,
        idleMillis: Timing.relayIdleMillis,
        letters: limits.letters,
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
