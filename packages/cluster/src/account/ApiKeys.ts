/**
 * API keys: creating, listing, rotating and revoking them. The saga of an Identity creates its first key; further keys,
 * which may have fewer rights, are created here like Admin Keys.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { type KeyRights, renewed, keysAtMost } from "@svc/domain/account/KeyRights"
import { networksOf } from "@svc/domain/account/Networks"
import { scopesOf } from "@svc/domain/account/Scope"
import type { IdentityId, IdentityStatus } from "@svc/domain/IdentityRef"
import { notReady } from "@svc/domain/identity/NotReady"
import type { PageRequest } from "@svc/domain/Paging"
import type { Initiator } from "@svc/domain/account/Initiator"
import { Conflict, KeyReplaced, NotFound, AccountDeleting, KeyQuotaExhausted } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import type { AuditNote } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { keyColumns, type KeyRow, keyView } from "../credentials/KeyView.ts"
import { assertValid } from "../credentials/CredentialLock.ts"
import { mint, mintKey, type NewKey, revokeKeys } from "../credentials/CredentialMint.ts"
import { instant, raiseForOrg } from "../events/Raise.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, Writes, type Sql } from "../store/Database.ts"

/** A key to create. */
interface Wanted {
  /** The command's id, so that a repeated request creates no second key. */
  readonly id: string
  readonly name: string
  readonly rights: KeyRights
  /** Null for an Admin Key. */
  readonly identity: NewKey["identity"]
}

/** Locks the Org for the transaction, before its keys: two keys that rotate each other must not wait for each other. */
const lockOrg = Effect.fnUntraced(function* (sql: Sql, org: string) {
  const [row] = yield* sql`select 1 from org where id = ${org} and status = 'active' for no key update`
  if (row === undefined) return yield* new AccountDeleting({ detail: "The account is being deleted." })
})

/** Checks the creator of a key and the quota of active keys. The Org has to be locked, so that the count is exact. */
const roomInLockedOrg = Effect.fnUntraced(function* (sql: Sql, org: string, by: Initiator, at: Date) {
  yield* assertValid(sql, by, at)
  const [live] = yield* sql<{ n: number }>`
    select count(*)::int as n from api_key
    where org_id = ${org} and revoked_at is null and (expires_at is null or expires_at > ${at})`
  if (live!.n >= keysAtMost) {
    return yield* new KeyQuotaExhausted({
      detail: `The account has ${live!.n} live keys; at most ${keysAtMost} may be live at a time.`,
    })
  }
})

/**
 * Locks the Org, and checks the creator and the quota of active keys, in the transaction that creates a key. The first keys
 * of Identities, which sagas create, are never rejected.
 */
export const roomForKey = Effect.fnUntraced(function* (sql: Sql, org: string, by: Initiator, at: Date) {
  yield* lockOrg(sql, org)
  yield* roomInLockedOrg(sql, org, by, at)
})

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const feed = yield* ChangeFeed
  const sealing = yield* Sealing
  const columns = keyColumns(reads)
  const missing = Effect.fail(new NotFound({ detail: "The key does not exist." }))

  const inserted = Effect.fnUntraced(function* (
    org: string,
    { id, name, rights, identity }: Wanted,
    at: Date,
    by: Initiator,
    note: AuditNote | undefined,
  ) {
    const minted = mint(identity === null ? "admin_key" : "identity_key")
    const key = { id, name, minted, identity, rights }
    const [row] = yield* writes<KeyRow>`
      with gate as (select 1),
      ${mintKey({ sql: writes, org, at, by }, writes`gate`, key)} ${auditWriteWith(writes, note, "minted")}
      select ${columns} from minted`.pipe(
      // A repeated request: the key it created cannot be shown again.
      Effect.catchIf(
        (error) => error.reason._tag === "UniqueViolation",
        () =>
          new Conflict({
            detail: "This request has already created the key; its plaintext was in the first response.",
          }),
      ),
    )
    return { key: minted.token, api_key: keyView(row!) }
  })

  return {
    /** Returns the keys that are not revoked, newest first. */
    list: (org: string, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `keys/${org}`,
          request,
          (behind, atMost) => reads<KeyRow>`
            select ${columns} from api_key
            where org_id = ${org} and revoked_at is null ${behind === undefined ? reads`` : reads`and id < ${behind}::uuid`}
            order by id desc limit ${atMost}`,
          ({ id }) => id,
          keyView,
        ),
      ),
    read: (org: string, id: string) =>
      orUnavailable(
        Effect.flatMap(
          reads<KeyRow>`select ${columns} from api_key where id = ${id} and org_id = ${org} and revoked_at is null`,
          ([row]) => (row === undefined ? missing : Effect.succeed(keyView(row))),
        ),
      ),
    /** Returns the Identity of a key; undefined for an Admin Key or an unknown key. */
    ownerOf: (org: string, id: string) =>
      orUnavailable(
        Effect.map(
          reads<{ id: IdentityId; handle: string }>`
            select i.id, i.handle from api_key k join identity i on i.id = k.identity_id
            where k.id = ${id} and k.org_id = ${org} and i.org_id = ${org}`,
          ([row]) => row,
        ),
      ),
    /** Creates a key. Only this response contains its plaintext. */
    create: Effect.fn("ApiKeys.create")(
      function* (org: string, wanted: Wanted, by: Initiator, note?: AuditNote) {
        const at = new Date(yield* Clock.currentTimeMillis)
        yield* roomForKey(writes, org, by, at)
        if (wanted.identity !== null) {
          const [identity] = yield* writes<{ status: IdentityStatus }>`
            select status from identity where id = ${wanted.identity.id} and org_id = ${org} for share`
          if (identity === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
          // The saga of a provisioning Identity would mistake this key for the one that it has to create.
          if (identity.status !== "ready") return yield* notReady(identity.status)
        }
        return yield* inserted(org, wanted, at, by, note)
      },
      (write, org) => Effect.tap(writes.withTransaction(write), () => Effect.sync(() => feed.announce({ org }))),
      orUnavailable,
    ),
    /**
     * Replaces a key by one with the same rights. The old key works for another `overlapSeconds`, or until it expires.
     */
    rotate: Effect.fn("ApiKeys.rotate")(
      function* (
        maker: CallerInfo,
        former: string,
        id: string,
        overlapSeconds: number,
        by: Initiator,
        note?: AuditNote,
      ) {
        const org = maker.org.id
        const now = yield* Clock.currentTimeMillis
        const at = new Date(now)
        yield* lockOrg(writes, org)
        const [row] = yield* writes<KeyRow & { handle: string | null }>`
          select ${columns}, (select handle from identity i where i.id = k.identity_id) as handle
          from api_key k where id = ${former} and org_id = ${org} and revoked_at is null for update`
        if (row === undefined) return yield* missing
        if (row.replaced_by === id) {
          return yield* new Conflict({
            detail: "This request has already rotated the key; the new plaintext was in the first response.",
          })
        }
        if (row.replaced_by !== null) {
          return yield* new KeyReplaced({ detail: `The key was replaced by the key ${row.replaced_by}.` })
        }
        if (row.expires_at !== null && row.expires_at <= at) {
          return yield* new Conflict({ detail: "The key has expired. Create a new one." })
        }
        const rights = yield* Effect.fromResult(
          renewed(
            maker,
            {
              scopes: scopesOf(row.scopes),
              networks: networksOf(row.networks),
              expiresAt: row.expires_at,
              createdAt: row.created_at,
            },
            now,
          ),
        )
        yield* roomInLockedOrg(writes, org, by, at)
        const identity =
          row.identity_id === null || row.handle === null ? null : { id: row.identity_id, handle: row.handle }
        const made = yield* inserted(org, { id, name: row.name, rights, identity }, at, by, note)
        const over = new Date(now + overlapSeconds * 1000)
        yield* writes`
          with replaced as (
            update api_key set replaced_by = ${id}, expires_at = least(expires_at, ${over}::timestamptz),
                   end_told_at = least(expires_at, ${over}::timestamptz)
            where id = ${former} returning expires_at
          ),
          ${raiseForOrg({ sql: writes, org, at, by }, "replaced", "api_key.rotated", {
            key_id: former,
            name: row.name,
            scope: identity === null ? "org" : "identity",
            identity_id: identity?.id ?? null,
            handle: identity?.handle ?? null,
            expires_at: instant(writes, "expires_at"),
            replaced_by: id,
          })}
          select 1`
        return made
      },
      (write, { org }) =>
        Effect.tap(writes.withTransaction(write), () => Effect.sync(() => feed.announce({ org: org.id }))),
      orUnavailable,
    ),
    /** Revokes a key immediately; repeating it changes nothing. */
    revoke: Effect.fn("ApiKeys.revoke")(function* (org: string, id: string, by: Initiator, note?: AuditNote) {
      const at = new Date(yield* Clock.currentTimeMillis)
      const [row] = yield* writes<{ known: boolean }>`
        with known as (select 1 from api_key where id = ${id} and org_id = ${org}),
        ${revokeKeys({ sql: writes, org, at, by }, writes`id = ${id} and org_id = ${org}`)}
        ${auditWriteWith(writes, note, "known")}
        select exists (select from known) as known`
      if (row?.known !== true) return yield* missing
      feed.announce({ org })
    }, orUnavailable),
  }
})

export class ApiKeys extends Context.Service<ApiKeys, Effect.Success<typeof make>>()("@svc/cluster/account/ApiKeys") {
  static readonly layer = Layer.effect(ApiKeys, make)
}
