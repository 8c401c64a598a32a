/**
 * Writes versions of secrets. Concurrent writes share one statement and one commit, which also records them in the audit
 * log. A value is sealed for its secret's id, which a query or a cache of earlier writes provides. The statement only
 * writes to that id. If a cached id is stale, the write is repeated with the current id.
 */
import { BoundedMap } from "@svc/domain/BoundedMap"
import { makeUuidV7 } from "@svc/domain/Ids"
import { notReady } from "@svc/domain/identity/NotReady"
import { AccountDeleting, Conflict, NotFound, PreconditionFailed, Unavailable } from "@svc/domain/problems/Problem"
import { bareTag, type IfTag } from "@svc/domain/vault/SecretTag"
import { secretsAtMost, versionsKept } from "@svc/domain/vault/Vault"
import { Clock, Effect, Exit } from "effect"
import type { AuditNote } from "../actor/Write.ts"
import { auditWrites, notesOf } from "../audit/AuditWrite.ts"
import { Sealing } from "../sealing/Sealing.ts"
import * as Batcher from "../store/Batcher.ts"
import * as GroupCommit from "../store/GroupCommit.ts"
import { deadline, orUnavailable, Reads, type Sql, together, transientOnly, Writes } from "../store/Database.ts"
import { columns, inside, type Namespace, place, type Row, tag } from "./SecretRows.ts"

/** The precondition of a write: a current version (`If-Match`), or that the secret does not exist (`If-None-Match: *`). */
export interface WriteCondition {
  readonly ifTag: IfTag
  readonly ifAbsent: boolean
  /** Whether the secret must exist, because the request has `If-Match`. */
  readonly ifPresent: boolean
}

interface NewVersion {
  readonly namespace: Namespace
  readonly name: string
  readonly bytes: Uint8Array
  /** Undefined leaves the description unchanged. */
  readonly description: string | null | undefined
  readonly condition: WriteCondition
  /** The audit record. */
  readonly note: AuditNote | undefined
  /** The command of a request with an `Idempotency-Key`, which writes one version however often it is repeated. */
  readonly command: string | undefined
}

/** The sealed data key and the secret's id for sealing a value. The id is undefined if the secret does not exist yet. */
interface Sealable {
  readonly dataKey: Uint8Array
  readonly secretId: string | undefined
}

/** A version to store. */
interface Stored extends NewVersion {
  readonly secretId: string
  readonly isThere: boolean
  readonly versionId: string
  readonly sealed: Uint8Array
  readonly at: Date
}

/** Number of retries if the secret is created or removed between its lookup and the write. */
const racesAtMost = 50
/** Number of secrets whose ids are cached between writes. */
const cachedAtMost = 10_000

const nameOf = ({ namespace, name }: Pick<NewVersion, "namespace" | "name">) =>
  `${namespace.org} ${namespace.identity ?? ""} ${name}`

/** Limits of a statement, which never contains two versions of one secret. */
const limits = {
  ...Batcher.usual,
  most: 50,
  heaviest: { weight: 1024 * 1024, of: ({ bytes }: Stored) => bytes.length },
  apart: nameOf,
}

/**
 * Returns the written rows. A version has no row if the Org or the Identity is being deleted, or if the secret has changed.
 */
const store = (sql: Sql, versions: ReadonlyArray<Stored>) => {
  const { notes, positions } = notesOf(versions)
  const requests = versions.map((version, index) => ({
    org_id: version.namespace.org,
    identity_id: version.namespace.identity,
    name: version.name,
    id: version.secretId,
    is_there: version.isThere,
    may_repeat: version.command !== undefined,
    describes: version.description !== undefined,
    description: version.description?.toWellFormed() ?? null,
    tags: version.condition.ifTag,
    version_id: version.versionId,
    size: version.bytes.length,
    at: version.at.toISOString(),
    note: positions[index],
  }))
  return sql<Row & { readonly requested: number }>`
    with requested as (
      select * from rows from (
        json_to_recordset(${JSON.stringify(requests)}::json) as (
          org_id uuid, identity_id uuid, name text, id uuid, is_there boolean, may_repeat boolean, describes boolean, description text,
          tags text[], version_id uuid, size integer, at timestamptz, note integer),
        unnest(${versions.map(({ sealed }) => sealed)}::bytea[])
      ) with ordinality as a (
        org_id, identity_id, name, id, is_there, may_repeat, describes, description, tags, version_id, size, at, note, sealed, n)
    ),
    -- Locks the Orgs and Identities, so that they cannot be deleted meanwhile.
    orgs as (select id from org where id in (select org_id from requested) and status = 'active' for share),
    identities as (
      select id, org_id from identity where id in (select identity_id from requested) and status = 'ready' for share
    ),
    allowed as (
      select a.* from requested a join orgs o on o.id = a.org_id
      left join identities i on i.id = a.identity_id and i.org_id = a.org_id
      where a.identity_id is null or i.id is not null
    ),
    -- Locks in a fixed order, so that two statements cannot deadlock.
    held as (
      select id from vault_secret where id in (select id from allowed where is_there) order by id for update
    ),
    changed as (
      update vault_secret s set version = s.version + 1, size = a.size, updated_at = a.at,
        description = case when a.describes then a.description else s.description end
      from allowed a join held on held.id = a.id
      where s.id = a.id and a.is_there and s.org_id = a.org_id and s.identity_id is not distinct from a.identity_id
        and s.name = a.name and (a.tags is null or ${tag(sql)} = any(a.tags))
        and not (a.may_repeat and exists (select from vault_version v where v.secret_id = s.id and v.id = a.version_id))
      returning ${columns(sql)}, a.n
    ),
    made as (
      insert into vault_secret as s (id, org_id, identity_id, name, description, version, size, created_at, updated_at)
      select id, org_id, identity_id, name, description, 1, size, at, at from (
        select *, row_number() over (partition by org_id, identity_id order by name) as place from allowed where not is_there
      ) a
      where place + (select count(*) from vault_secret s
        where s.org_id = a.org_id and s.identity_id is not distinct from a.identity_id) <= ${secretsAtMost}
      order by org_id, identity_id, name
      on conflict (org_id, identity_id, name) do nothing
      returning ${columns(sql)}
    ),
    written as (
      select w.*, a.note, a.version_id, a.sealed
      from (select * from changed union all select made.*, requested.n from made join requested on requested.id = made.id) w
      join requested a on a.n = w.n
    ),
    kept as (
      insert into vault_version (secret_id, version, id, sealed, size, created_at)
      select id, version, version_id, sealed, size, updated_at from written
    ),
    forgotten as (
      delete from vault_version v using written w
      where v.secret_id = w.id and v.version <= w.version - ${sql.literal(String(versionsKept))}
    ) ${auditWrites(sql, notes, "written")}
    select n::int as requested, id, name, size, description, version, created_at, updated_at from written`
}

/** The first half of the advisory locks that make the creation of an Org's secrets sequential: "vlt " in ASCII. */
export const creationLock = 0x76_6c_74_20

/** Stores the versions. New secrets are counted one statement after another, so that the limit is exact. */
const counted = (sql: Sql, versions: ReadonlyArray<Stored>) => {
  const orgs = [...new Set(versions.filter(({ isThere }) => !isThere).map(({ namespace }) => namespace.org))]
  const all = store(sql, versions)
  if (orgs.length === 0) return all
  const lock = sql`
    select pg_advisory_xact_lock(${creationLock}, h)
    from (select distinct hashtext(org) as h from unnest(${orgs}::text[]) as org order by 1) locks`
  return sql.withTransaction(Effect.andThen(lock, all))
}

export const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const sealing = yield* Sealing
  const cached = new BoundedMap<string, Sealable>(cachedAtMost)
  const stored = yield* GroupCommit.make(
    (versions: ReadonlyArray<Stored>) =>
      Effect.map(counted(writes, versions), (rows) => Batcher.inOrder(versions)(rows).map((row) => Exit.succeed(row))),
    { ...limits, deadline },
  )

  /** Reads the Org's data key, and the secret's id if the secret exists. */
  const sealableRow = yield* together((requested: ReadonlyArray<Namespace & { readonly name: string }>) =>
    Effect.map(
      reads<{ readonly requested: number; readonly data_key: Uint8Array; readonly status: string; id: string | null }>`
        select n::int as requested, o.data_key, o.status, s.id
        from unnest(${requested.map(({ org }) => org)}::uuid[], ${requested.map(({ identity }) => identity ?? "")}::text[],
                    ${requested.map(({ name }) => name)}::text[]) with ordinality as requested (org_id, identity_id, name, n)
        join org o on o.id = requested.org_id
        left join lateral (
          select id from vault_secret where org_id = o.id and identity_id = nullif(requested.identity_id, '')::uuid and name = requested.name
          union all
          select id from vault_secret where org_id = o.id and identity_id is null and requested.identity_id = '' and name = requested.name
        ) s on true`,
      Batcher.inOrder(requested),
    ),
  )
  const deleting = new AccountDeleting({ detail: "The account is being deleted." })

  const lookUp = Effect.fnUntraced(function* (namespace: Namespace, name: string) {
    const row = yield* sealableRow({ ...namespace, name })
    if (row === undefined || row.status !== "active") return yield* deleting
    const found: Sealable = { dataKey: row.data_key, secretId: row.id ?? undefined }
    return found
  })

  /** Fails if the write is not allowed. Otherwise a concurrent write was faster, and this one is retried. */
  const checkAllowed = Effect.fnUntraced(function* (namespace: Namespace, name: string, condition: WriteCondition) {
    if (namespace.identity !== null) {
      const [identity] = yield* orUnavailable(reads<{ status: string }>`
        select status from identity where id = ${namespace.identity} and org_id = ${namespace.org}`)
      if (identity === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
      if (identity.status !== "ready") return yield* notReady(identity.status)
    }
    const [present] = yield* orUnavailable(reads<{ version: number; created_at: Date }>`
      select s.version, s.created_at from vault_secret s where ${inside(reads, namespace)} and s.name = ${name}`)
    const met =
      present === undefined
        ? !condition.ifPresent
        : !condition.ifAbsent &&
          (condition.ifTag === null || condition.ifTag.includes(bareTag(present.version, present.created_at)))
    if (met && present !== undefined) return
    if (met) {
      const [others] = yield* orUnavailable(reads<{ many: number }>`
        select count(*)::int as many from vault_secret s where ${inside(reads, namespace)}`)
      if (others!.many < secretsAtMost) return
      return yield* new Conflict({ detail: `A Vault has at most ${secretsAtMost} secrets. Remove one first.` })
    }
    return yield* new PreconditionFailed({
      detail:
        present === undefined
          ? "The secret does not exist."
          : `The secret is at version ${present.version} and was created at ${present.created_at.toISOString()}.`,
    })
  })

  /** Returns the secret as a command has written it before its request was repeated. */
  const written = ({ namespace, name, command }: NewVersion) =>
    command === undefined
      ? Effect.undefined
      : Effect.map(
          orUnavailable(writes<Row>`
            select s.id, s.name, v.size, s.description, v.version, s.created_at, v.created_at as updated_at
            from vault_secret s join vault_version v on v.secret_id = s.id and v.id = ${command}
            where ${inside(writes, namespace)} and s.name = ${name}`),
          ([row]) => row,
        )

  /** Writes the first or the next version of a secret if the condition holds. */
  return Effect.fnUntraced(function* (version: NewVersion) {
    const { namespace, name, bytes, condition, command } = version
    const key = nameOf(version)
    let guess = condition.ifAbsent ? undefined : cached.get(key)
    for (let races = 0; races < racesAtMost; races++) {
      const found = guess ?? (yield* lookUp(namespace, name))
      const isThere = found.secretId !== undefined
      if (isThere ? condition.ifAbsent : condition.ifPresent) {
        const before = yield* written(version)
        if (before !== undefined) return before
        yield* checkAllowed(namespace, name, condition)
        continue
      }
      const secretId = found.secretId ?? (yield* makeUuidV7)
      const versionId = command ?? (yield* makeUuidV7)
      const dataKey = yield* Effect.orDie(sealing.openDataKey(namespace.org, found.dataKey))
      const sealed = yield* sealing.seal(dataKey, place(namespace, secretId, name, versionId), bytes)
      const at = new Date(yield* Clock.currentTimeMillis)
      const row = yield* transientOnly(stored({ ...version, secretId, isThere, versionId, sealed, at }))
      if (row !== undefined) {
        if (guess === undefined) cached.set(key, { dataKey: found.dataKey, secretId })
        return row
      }
      const before = yield* written(version)
      if (before !== undefined) return before
      cached.delete(key)
      if (guess === undefined) yield* checkAllowed(namespace, name, condition)
      guess = undefined
    }
    return yield* new Unavailable({
      detail: "The secret is written and removed concurrently.",
      retry_after_seconds: 1,
    })
  })
})
