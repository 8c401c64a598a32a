/**
 * The HMAC secrets of an Identity, sealed under its Org's key. One is current; after a rotation the former one signs
 * too until it retires (decisions.md "Resources").
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Redacted } from "effect"
import type { Statement } from "effect/sql"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { commit, type OwnIdentity, type Write } from "../actor/Write.ts"
import type { Place, Sealing } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"
import { newSecret } from "./DeliveryRequest.ts"
import { Timing } from "../Timing.ts"

export const place = (identity: OwnIdentity, secretId: string): Place => ({
  table: "signing_secret",
  column: "sealed",
  row: `${identity.id}/${secretId}`,
  org: identity.orgId,
})

export interface SigningSecret {
  readonly id: string
  readonly secret: Redacted.Redacted<string>
  /** When it signs no longer. */
  readonly retiresAt: Date | null
}

/**
 * Maximum number of secrets that sign at once. Each adds a signature to a header of every delivery, and receivers reject
 * large headers.
 */
const secretsAtMost = 10

/** Returns every secret that signs now, the current one first. */
export const signingSecrets = Effect.fnUntraced(function* (
  sql: Sql,
  sealing: Sealing["Service"],
  identity: OwnIdentity,
  now: Date,
) {
  const rows = yield* sql<{ id: string; sealed: Uint8Array; retires_at: Date | null }>`
    select id, sealed, retires_at from signing_secret
    where identity_id = ${identity.id} and (retires_at is null or retires_at > ${now})
    order by retires_at desc nulls first`
  return yield* Effect.forEach(rows, (row) =>
    Effect.map(sealing.open(identity.dataKey, place(identity, row.id), row.sealed), (bytes) => ({
      id: row.id,
      secret: Redacted.make(new TextDecoder().decode(bytes)),
      retiresAt: row.retires_at,
    })),
  ).pipe(Effect.catchTag("CannotOpen", Effect.die))
})

/** A new secret, and the CTE `secret` of its sealed row. */
const mint = Effect.fnUntraced(function* ({ sql, identity, at }: Write, sealing: Sealing["Service"], id: string) {
  const text = newSecret()
  const sealed = yield* sealing.seal(identity.dataKey, place(identity, id), new TextEncoder().encode(text))
  const row: Statement.Fragment = sql`secret as (
    insert into signing_secret (identity_id, id, sealed, created_at)
    select ${identity.id}::uuid, ${id}::uuid, ${sealed}::bytea, ${at}::timestamptz from fence
  )`
  return { text, row }
}, Effect.orDie)

/** The secret that is current, or a first one with the CTE that keeps it (`minted`). */
export const currentOrNew = Effect.fnUntraced(function* (write: Write, sealing: Sealing["Service"]) {
  const [current] = yield* signingSecrets(write.sql, sealing, write.identity, write.at)
  if (current !== undefined) return { text: Redacted.value(current.secret), minted: undefined }
  const { text, row } = yield* mint(write, sealing, yield* makeUuidV7)
  return { text, minted: row }
})

/**
 * Creates a signing secret. The former one signs on for a day, unless so many rotations follow that the secrets reach
 * their maximum number. A repeated command returns the same secret.
 */
export const rotate = Effect.fnUntraced(function* (write: Write, secretId: string, sealing: Sealing["Service"]) {
  const { sql, identity, at } = write
  const valid = yield* signingSecrets(sql, sealing, identity, at)
  const made = valid.find(({ id }) => id === secretId)
  if (made !== undefined) {
    const until = valid.find(({ id }) => id !== secretId)?.retiresAt ?? null
    return { signing_secret: Redacted.value(made.secret), previous_valid_until: until }
  }
  const retiring = valid.some(({ retiresAt }) => retiresAt === null)
  const until = new Date(at.getTime() + Timing.secretOverlapMillis)
  const surplus = valid.slice(secretsAtMost - 1).map(({ id }) => id)
  const { text, row } = yield* mint(write, sealing, secretId)
  yield* commit(
    write,
    sql`
    retiring as (
      update signing_secret set retires_at = ${until}
      where identity_id = ${identity.id} and retires_at is null and exists (select from fence)
    ),
    surplus as (
      update signing_secret set retires_at = ${at}
      where identity_id = ${identity.id} and id = any(${surplus}::uuid[]) and exists (select from fence)
    ),
    ${row} ${auditWriteWith(sql, write.note, "fence")}`,
  )
  return { signing_secret: text, previous_valid_until: retiring ? until : null }
})
