/**
 * Pending OAuth authorizations. The data that the platform needs when the browser returns is sealed and stored under
 * the hash of the OAuth state. A state is bound to one Identity and platform, can be used once, and expires.
 */
import { createHash } from "node:crypto"
import { ConnectorStateInvalid } from "@svc/domain/problems/Problem"
import { Effect, Redacted } from "effect"
import { commit, type Fenced, type OwnIdentity } from "../../actor/Write.ts"
import type { Place, Sealing } from "../../sealing/Sealing.ts"
import { Timing } from "../../Timing.ts"
import { bytesOf, textOf } from "../ConnectorState.ts"
import type { AuthorizationStart, Credential } from "../platforms/Platform.ts"

/** Largest number of pending authorizations; the oldest ones are removed. */
const atMost = 10

export const hashOf = (state: string): Uint8Array => createHash("sha256").update(state).digest()

export const invalidState = () =>
  new ConnectorStateInvalid({ detail: "The authorization is unknown, was used already, or has expired." })

export const place = (identity: OwnIdentity, platform: string, hash: Uint8Array): Place => ({
  table: "connector_authorization",
  column: "sealed",
  row: Buffer.from(hash).toString("hex"),
  org: identity.orgId,
  names: [identity.id, platform],
})

/** Stores a new authorization and returns when it expires. */
export const store = Effect.fnUntraced(function* (
  write: Fenced,
  identity: OwnIdentity,
  platform: string,
  start: AuthorizationStart,
  sealing: Sealing["Service"],
) {
  const { sql, at } = write
  const hash = hashOf(start.state)
  const sealed = yield* sealing.seal(
    identity.dataKey,
    place(identity, platform, hash),
    bytesOf(Redacted.value(start.kept)),
  )
  const expiresAt = new Date(at.getTime() + Timing.authorizationMillis)
  yield* commit(
    write,
    sql`lapsed as (
      delete from connector_authorization where exists (select from fence) and state_hash in (
        select state_hash from connector_authorization where identity_id = ${identity.id}::uuid and platform = ${platform}::text
        order by created_at desc offset ${atMost - 1}::int
      )
    ),
    begun as (
      insert into connector_authorization (state_hash, identity_id, platform, org_id, sealed, created_at, expires_at)
      select ${hash}::bytea, ${identity.id}::uuid, ${platform}::text, ${identity.orgId}::uuid, ${sealed}::bytea,
        ${at}::timestamptz, ${expiresAt}::timestamptz from fence
    )`,
  )
  return expiresAt
})

/** Consumes an authorization. A second attempt with the same state fails, even if the first one failed later. */
export const consume = Effect.fnUntraced(function* (
  write: Fenced,
  identity: OwnIdentity,
  platform: string,
  state: string,
  sealing: Sealing["Service"],
) {
  const { sql, at } = write
  const hash = hashOf(state)
  const { sealed } = yield* commit<{ sealed: Uint8Array | null }>(
    write,
    sql`taken as (
      delete from connector_authorization where state_hash = ${hash}::bytea and identity_id = ${identity.id}::uuid
        and platform = ${platform}::text and exists (select from fence)
      returning sealed, expires_at
    )`,
    { columns: sql`(select sealed from taken where expires_at > ${at}::timestamptz) as sealed` },
  )
  if (sealed === null) return yield* invalidState()
  const kept = yield* Effect.mapError(
    sealing.open(identity.dataKey, place(identity, platform, hash), sealed),
    invalidState,
  )
  const credential: Credential = Redacted.make(textOf(kept))
  return credential
})
