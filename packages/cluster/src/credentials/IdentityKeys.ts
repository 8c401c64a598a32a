/** The Identity Keys of an Identity: the first one, created by the saga, its rotation and its revocation. */
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"
import { type ActorHandlers, once } from "../actor/ActorHandlers.ts"
import { commit, type Write } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { partOf, type Shared, type Step, type StepSubject } from "../saga/Step.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { Timing } from "../Timing.ts"
import { type Minted, mintKey, revokeKeys } from "./CredentialMint.ts"
import { newIdentityKey, newImapPassword } from "./ShowOnce.ts"

type Subject = Pick<StepSubject, "sql" | "identity" | "at" | "by">

const forOrg = ({ sql, identity, at, by }: Subject) => ({ sql, org: identity.orgId, at, by })
const shownUntil = (at: Date) => new Date(at.getTime() + Timing.showOnceMillis)

interface FirstKey {
  readonly id: string
  readonly minted: Minted
  readonly sealed: Uint8Array
}

const key: Shared<FirstKey> = {
  // `offset 0` keeps the lookups separate: a plan made when there were few keys would read all active keys of every
  // Org.
  rows: (sql, gate, values) => sql`
    keyed as materialized (
      select g.identity_id, g.org_id, g.handle, g.at, v.* from ${gate} g join unnest(
        ${values.map(({ id }) => id)}::uuid[], ${values.map(({ minted }) => minted.prefix)}::text[],
        ${values.map(({ minted }) => minted.hash)}::bytea[], ${values.map(({ sealed }) => sealed)}::bytea[]
      ) with ordinality as v (key_id, prefix, hash, sealed, n) on v.n = g.n
      where not exists (
        select from (select revoked_at from api_key where identity_id = g.identity_id offset 0) own
        where own.revoked_at is null)
    ),
    ${mintKey({ sql, org: sql`org_id`, at: sql`at`, by: system }, sql`keyed`, {
      id: sql`key_id`,
      name: sql`handle`,
      minted: { prefix: sql`prefix`, hash: sql`hash` },
      identity: { id: sql`identity_id`, handle: sql`name` },
    })}`,
  shows: (sql) => ({
    from: sql`minted join keyed using (identity_id)`,
    columns: {
      key_id: sql`key_id`,
      identity_key: sql`sealed`,
      expires_at: sql`at + ${Timing.showOnceMillis}::int * interval '1 millisecond'`,
    },
  }),
}

/**
 * The last step of provisioning. With its commit the Identity is ready, and both secrets can be fetched for a limited
 * time.
 */
export const provision = (sealing: Sealing["Service"]): Step =>
  Effect.fnUntraced(function* (subject) {
    const { minted, sealed } = yield* newIdentityKey(sealing, subject.identity)
    return partOf(subject, key, { id: yield* makeUuidV7, minted, sealed })
  })

const allOf = (sql: StepSubject["sql"], identityId: string) =>
  sql`identity_id = ${identityId}::uuid and exists (select from fence)`

/** CTEs that revoke every key of the Identity. A `successor` replaces the Identity Key. */
export const revokeAll = (subject: Subject, successor?: string) =>
  revokeKeys(forOrg(subject), allOf(subject.sql, subject.identity.id), successor)

/** Revokes every remaining key and deletes secrets that were not received. */
export const teardown: Step = (subject) => {
  const { sql, identity } = subject
  return Effect.succeed({
    rows: sql`
      ${revokeAll(subject)},
      forgotten as (delete from show_once where ${allOf(sql, identity.id)})`,
  })
}

export const handlers = ({ onReady, onPresent }: ActorHandlers, sealing: Sealing["Service"]) => ({
  RotateKey: onReady(once("RotateKey", (write: Write) => rotate(write, sealing))),
  Acknowledge: onPresent(acknowledge),
})

/** Creates new credentials; the present Identity Key and IMAP password become invalid in the same commit. */
const rotate = Effect.fnUntraced(function* (write: Write, sealing: Sealing["Service"]) {
  const { sql, identity, at } = write
  const { minted, sealed } = yield* newIdentityKey(sealing, identity)
  const imap = yield* newImapPassword(sealing, identity)
  const key = { id: yield* makeUuidV7, name: identity.handle, minted, identity }
  yield* commit(
    write,
    sql`
    ${revokeAll(write, key.id)},
    ${mintKey(forOrg(write), sql`fence`, key)},
    box as (update mailbox set imap_verifier = ${imap.verifier}::bytea where ${allOf(sql, identity.id)}),
    shown as (
      insert into show_once (identity_id, key_id, identity_key, imap_password, expires_at)
      select identity_id, id, ${sealed}::bytea, ${imap.password}::bytea, ${shownUntil(at)}::timestamptz from minted
      on conflict (identity_id) do update
      set key_id = excluded.key_id, identity_key = excluded.identity_key,
          imap_password = excluded.imap_password, expires_at = excluded.expires_at
    ) ${auditWriteWith(sql, write.note, "minted")}`,
  )
})

/** Deletes the received secrets. Before `ready` nothing was shown yet, so only later parts could be deleted. */
const acknowledge = (write: Write) =>
  commit(
    write,
    write.sql`forgotten as (
      delete from show_once where identity_id = ${write.identity.id} and exists (select from fence)
        and exists (select from identity where id = ${write.identity.id} and status = 'ready'))
      ${auditWriteWith(write.sql, write.note, "fence")}`,
  ).pipe(Effect.asVoid)
