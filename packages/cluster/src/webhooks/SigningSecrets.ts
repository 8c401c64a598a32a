/**
 * The HMAC secrets of an Identity, sealed under its Org's key. One is current; after a rotation the former one signs
 * too until it retires (decisions.md "Resources").
 */
import { Effect, Redacted } from "effect"
import { type DataKey, Sealing } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"
import { newSecret } from "./Signature.ts"

interface Holder {
  readonly id: string
  readonly orgId: string
  readonly dataKey: DataKey
}

const place = (holder: Holder, secretId: string) => ({
  table: "signing_secret",
  column: "sealed",
  row: `${holder.id}/${secretId}`,
  org: holder.orgId,
})

export interface SigningSecret {
  readonly id: string
  readonly secret: Redacted.Redacted<string>
  /** When it signs no longer. */
  readonly retiresAt: Date | null
}

/** Every secret that signs now, newest first. */
export const signingSecrets = Effect.fnUntraced(function* (sql: Sql, holder: Holder, now: Date) {
  const sealing = yield* Sealing
  const rows = yield* sql<{ id: string; sealed: Uint8Array; retires_at: Date | null }>`
    select id, sealed, retires_at from signing_secret
    where identity_id = ${holder.id} and (retires_at is null or retires_at > ${now})
    order by created_at desc`
  return yield* Effect.forEach(rows, (row) =>
    Effect.map(sealing.open(holder.dataKey, place(holder, row.id), row.sealed), (bytes) => ({
      id: row.id,
      secret: Redacted.make(new TextDecoder().decode(bytes)),
      retiresAt: row.retires_at,
    })),
  ).pipe(Effect.orDie)
})

/** A new secret and its sealed row. */
export const mintSecret = Effect.fnUntraced(function* (holder: Holder, id: string) {
  const sealing = yield* Sealing
  const secret = newSecret()
  const sealed = yield* sealing.seal(holder.dataKey, place(holder, id), new TextEncoder().encode(secret))
  return { id, secret, sealed }
})
