/** The latest DPoP nonce of each server (RFC 9449 section 8). A call without the current nonce would need a retry. */
import { BoundedMap } from "@svc/domain/BoundedMap"
import { Effect, Option, Schema } from "effect"
import type { Session } from "../Platform.ts"

/** A Connector uses two servers: the account's and the authorization server. */
const serversAtMost = 4
const nonceAtMost = 1_024

export interface Nonces {
  readonly get: (origin: string) => string | undefined
  readonly set: (origin: string, nonce: string) => void
  readonly del: (origin: string) => void
}

const Stored = Schema.fromJsonString(Schema.Record(Schema.String, Schema.String))

const make = (entries: BoundedMap<string, string>, changed: () => void): Nonces => ({
  get: (origin) => entries.get(origin),
  set: (origin, nonce) => {
    if (nonce.length > nonceAtMost || entries.get(origin) === nonce) return
    entries.set(origin, nonce)
    changed()
  },
  del: (origin) => void entries.delete(origin),
})

/** Returns nonces in memory, for one authorization. */
export const memoryNonces = (): Nonces => make(new BoundedMap(serversAtMost), () => {})

/** Runs a call with the Connector's nonces and stores changed nonces afterwards. */
export const using = <A, E, R>(session: Session, use: (nonces: Nonces) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const text = yield* session.notes.read("nonces")
    const known = Option.getOrElse(Schema.decodeOption(Stored)(text ?? "{}"), () => ({}))
    const entries = new BoundedMap<string, string>(serversAtMost)
    for (const [origin, nonce] of Object.entries(known)) entries.set(origin, nonce)
    let changed = false
    return yield* Effect.onExit(use(make(entries, () => (changed = true))), () =>
      // A lost nonce costs one round trip.
      changed ? Effect.ignore(session.notes.write("nonces", JSON.stringify(Object.fromEntries(entries)))) : Effect.void,
    )
  })
