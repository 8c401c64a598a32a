/** Nonces that servers want in DPoP proofs (RFC 9449 section 8): the last one of each, kept so that no call is made twice. */
import { Effect, Option, Schema } from "effect"
import type { Session } from "../Platform.ts"

/** A Connector meets two servers: the account's own and the one that gives out tokens. */
const serversAtMost = 4
const nonceAtMost = 1_024

export interface Nonces {
  readonly get: (origin: string) => string | undefined
  readonly set: (origin: string, nonce: string) => void
  readonly del: (origin: string) => void
}

const Kept = Schema.fromJsonString(Schema.Record(Schema.String, Schema.String))

const over = (entries: Map<string, string>, changed: () => void): Nonces => ({
  get: (origin) => entries.get(origin),
  set: (origin, nonce) => {
    if (nonce.length > nonceAtMost || entries.get(origin) === nonce) return
    entries.delete(origin)
    if (entries.size >= serversAtMost) entries.delete(entries.keys().next().value!)
    entries.set(origin, nonce)
    changed()
  },
  del: (origin) => void entries.delete(origin),
})

/** For one authorization. */
export const memoryNonces = (): Nonces => over(new Map(), () => {})

/** A Connector's nonces during a call; what changed is written down after it. */
export const using = <A, E, R>(session: Session, use: (nonces: Nonces) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const text = yield* session.notes.read("nonces")
    const known = Option.getOrElse(Schema.decodeOption(Kept)(text ?? "{}"), () => ({}))
    const entries = new Map(Object.entries(known))
    let changed = false
    return yield* Effect.onExit(use(over(entries, () => (changed = true))), () =>
      // One that is lost costs a round trip.
      changed ? Effect.ignore(session.notes.write("nonces", JSON.stringify(Object.fromEntries(entries)))) : Effect.void,
    )
  })
