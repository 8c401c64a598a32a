/** Writes the keys of an Identity: rotates its pair, publishes keys of the agent, and removes them. */
import type { AddressBook } from "@svc/domain/Addresses"
import { Conflict, NotFound } from "@svc/domain/problems/Problem"
import { type PublicJwk, registeredAtMost } from "@svc/domain/proof/SigningKey"
import { Effect } from "effect"
import { type ActorHandlers, once } from "../actor/ActorHandlers.ts"
import { commit, type Write } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { raise } from "../events/Raise.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { Timing } from "../Timing.ts"
import { generate, insertPair, opened, published } from "./SigningKeys.ts"
import { signDirectory } from "./WebBotAuth.ts"

/** The part of the actor's memory with the opened key, which signs cards. */
export const cachedKey = "signing-key"

interface Signer {
  readonly book: AddressBook
  readonly sealing: Sealing["Service"]
}

export const handlers = ({ onReady, onPresent }: ActorHandlers, signer: Signer) => ({
  RotateSigningKey: onReady(once("RotateSigningKey", (write: Write) => rotate(write, signer))),
  AddSigningKey: onReady(once("AddSigningKey", add)),
  RemoveSigningKey: onPresent(once("RemoveSigningKey", remove)),
})

interface Tenant {
  readonly org_id: string
}

/**
 * Signs the directory with the current key for the time in which it stays listed after the rotation, because the private
 * key does not exist any more then.
 */
const farewell = Effect.fnUntraced(function* ({ sql, identity, at }: Write, { book, sealing }: Signer) {
  const [row] = yield* sql<{ kid: string; sealed: Uint8Array }>`
    select kid, sealed from signing_key where identity_id = ${identity.id} and origin = 'service' and retired_at is null`
  if (row === undefined) return null
  const key = yield* opened(sealing, identity, identity.dataKey, row.kid, row.sealed)
  const seconds = Timing.directoryOverlapMillis / 1000
  return JSON.stringify(yield* signDirectory(book, identity.handle, key, at.getTime(), seconds))
})

/** Maximum number of rotated keys that stay published, because anybody may read the documents that contain them. */
export const formerAtMost = 10

/** Replaces the pair. The former one loses its private key, and stays published. */
const rotate = Effect.fnUntraced(function* (write: Write, signer: Signer) {
  const { sql, identity, at } = write
  const { sealing } = signer
  const directory = yield* farewell(write, signer)
  const pair = yield* generate(sealing, identity, identity.dataKey)
  const until = new Date(at.getTime() + Timing.signingKeyOverlapMillis)
  yield* commit(
    write,
    sql`former as (
      update signing_key set sealed = null, retired_at = ${at}::timestamptz, published_until = ${until}::timestamptz,
        directory = ${directory}::jsonb
      where identity_id = ${identity.id} and origin = 'service' and retired_at is null and exists (select from fence)
      returning kid
    ),
    replaced as (select max(kid) as kid, count(*) from former),
    forgotten as (
      delete from signing_key where identity_id = ${identity.id} and exists (select from fence)
        and (published_until <= ${at}::timestamptz or kid in (
          select kid from signing_key where identity_id = ${identity.id} and retired_at is not null
          order by retired_at desc offset ${formerAtMost - 1}))
    ),
    unsigned as (
      update card set signature = null where identity_id = ${identity.id} and exists (select from fence)
    ),
    added as (${insertPair(sql, identity.id, pair, at, sql`fence, replaced`)} returning kid),
    ${raise(write, "added", "proof.key_rotated", { kid: pair.kid, replaces: sql`(select kid from replaced)` })}
    ${auditWriteWith(sql, write.note, "added")}`,
    { raises: true },
  )
  write.memory.delete(cachedKey)
})

interface NewKey extends Tenant {
  readonly kid: string
  readonly jwk: PublicJwk
  readonly name: string | null
  readonly registered_by: string | null
}

const add = Effect.fnUntraced(function* (write: Write, { kid, jwk, name, registered_by }: NewKey) {
  const { sql, identity, at } = write
  const isPublished = published(sql, at)
  const [found] = yield* sql<{ known: boolean; registered: number }>`
    select coalesce(bool_or(kid = ${kid}), false) as known, count(*) filter (where origin = 'agent')::int as registered
    from signing_key k where k.identity_id = ${identity.id} and ${isPublished}`
  if (found!.known) return yield* new Conflict({ detail: "The Identity already has this key." })
  if (found!.registered >= registeredAtMost) {
    return yield* new Conflict({
      detail: `An Identity has at most ${registeredAtMost} registered keys. Remove one first.`,
    })
  }
  yield* commit(
    write,
    sql`
    -- Keys whose API key has ended are not listed, so nobody could remove them.
    withdrawn as (
      delete from signing_key k where k.identity_id = ${identity.id} and k.origin = 'agent' and k.kid <> ${kid}::text
        and not (${isPublished}) and exists (select from fence)
    ),
    added as (
      insert into signing_key as k (identity_id, kid, origin, jwk, name, registered_by, created_at)
      select ${identity.id}::uuid, ${kid}::text, 'agent', ${JSON.stringify(jwk)}::jsonb, ${name}::text,
             ${registered_by}::uuid, ${at}::timestamptz
      from fence
      on conflict (identity_id, kid) do update
      set name = excluded.name, registered_by = excluded.registered_by, created_at = excluded.created_at
      where k.origin = 'agent'
      returning kid
    ),
    ${raise(write, "added", "proof.key_added", { kid, name })}
    ${auditWriteWith(sql, write.note, "added")}`,
    { raises: true },
  )
})

const remove = Effect.fnUntraced(function* (write: Write, { kid }: Tenant & { readonly kid: string }) {
  const { sql, identity } = write
  const [found] = yield* sql<{ current: boolean }>`
    select origin = 'service' and retired_at is null as current from signing_key
    where identity_id = ${identity.id} and kid = ${kid}`
  if (found === undefined) return yield* new NotFound({ detail: "The key does not exist." })
  if (found.current) {
    return yield* new Conflict({ detail: "The service signs with this key. Rotate it instead." })
  }
  yield* commit(
    write,
    sql`gone as (
      delete from signing_key where identity_id = ${identity.id} and kid = ${kid} and exists (select from fence)
      returning kid, name
    ),
    ${raise(write, "gone", "proof.key_removed", { kid, name: sql`name` })}
    ${auditWriteWith(sql, write.note, "gone")}`,
    { raises: true },
  )
})
