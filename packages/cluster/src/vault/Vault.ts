/**
 * The Vault's store: values sealed under the Org's data key, the last versions of each kept. Called in process; each
 * operation is one statement, and tenancy is in every one of them.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { IfVersion } from "@svc/domain/Precondition"
import {
  AccountDeleting,
  IdentityNotReady,
  NotFound,
  PayloadTooLarge,
  PreconditionFailed,
  SecretNameInvalid,
} from "@svc/domain/problems/Problem"
import { maxValueBytes, namePattern, type Secret, type SecretValue, versionsKept } from "@svc/domain/vault/Vault"
import { Clock, Context, Effect, Layer } from "effect"
import { Sealing } from "../sealing/Sealing.ts"
import * as Batched from "../store/Batched.ts"
import { orUnavailable, Reads, Writes } from "../store/Database.ts"

/** A namespace: the Org's own, or an Identity's of this Org. */
export interface Namespace {
  readonly org: string
  /** The Identity's id, null for the Org's namespace. */
  readonly identity: IdentityId | null
}

/** On what a write insists: a present version (`If-Match`), or that there is none yet (`If-None-Match: *`). */
export interface WriteCondition {
  readonly ifVersion: IfVersion
  readonly ifAbsent: boolean
  /** `If-Match` was given at all, so the secret must exist. */
  readonly ifPresent: boolean
}

interface Row {
  readonly id: string
  readonly name: string
  readonly size: number
  readonly description: string | null
  readonly version: number
  readonly created_at: Date
  readonly updated_at: Date
}

const view = (row: Row): Secret => ({
  name: row.name,
  size: row.size,
  description: row.description,
  version: row.version,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

/** A version is sealed under an id of its own, since its number is only known with its commit. */
const place = (namespace: Namespace, versionId: string) => ({
  table: "vault_version",
  column: "sealed",
  row: versionId,
  org: namespace.org,
})

const missing = new NotFound({ detail: "There is no such secret." })
const checkName = (name: string) =>
  namePattern.test(name)
    ? Effect.void
    : Effect.fail(
        new SecretNameInvalid({
          detail:
            "A name has 1 to 128 lowercase letters, digits, dots, dashes and underscores; the first is a letter or digit.",
        }),
      )

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const sealing = yield* Sealing
  const columns = reads`s.id, s.name, s.size, s.description, s.version, s.created_at, s.updated_at`
  const inside = (namespace: Namespace) =>
    reads`s.org_id = ${namespace.org}::uuid and s.identity_id is not distinct from ${namespace.identity}::uuid`

  const dataKeyRow = yield* Batched.make((orgs: ReadonlyArray<string>) =>
    Effect.map(
      reads<{ readonly asked: number; readonly data_key: Uint8Array; readonly status: string }>`
        select n::int as asked, o.data_key, o.status from unnest(${orgs}::uuid[]) with ordinality as asked (id, n)
        join org o on o.id = asked.id`,
      Batched.inOrder(orgs),
    ),
  )
  const deleting = new AccountDeleting({ detail: "The account is being deleted." })

  const dataKeyOf = Effect.fnUntraced(function* (org: string) {
    const row = yield* dataKeyRow(org)
    if (row === undefined || row.status !== "active") return yield* deleting
    return yield* Effect.orDie(sealing.openDataKey(org, row.data_key))
  })

  /** CTE `owner`: a row while neither the Org nor the Identity is being deleted, which it locks out. */
  const owner = (namespace: Namespace) =>
    namespace.identity === null
      ? writes`owner as (select 1 from org where id = ${namespace.org}::uuid and status = 'active' for share)`
      : writes`owner as (
          select 1 from org o join identity i on i.org_id = o.id
          where o.id = ${namespace.org}::uuid and o.status = 'active' and i.id = ${namespace.identity}::uuid and i.status = 'ready'
          for share)`

  /** CTEs that keep a version of what CTE `written` wrote, and forget the oldest. */
  const versions = (versionId: string, sealed: Uint8Array, size: number, at: Date) => writes`
    kept as (
      insert into vault_version (secret_id, version, id, sealed, size, created_at)
      select id, version, ${versionId}::uuid, ${sealed}::bytea, ${size}::int, ${at}::timestamptz from written
    ),
    forgotten as (
      delete from vault_version v using written w where v.secret_id = w.id and v.version <= w.version - ${versionsKept}::int
    )`

  /** Why a write found nothing that it may write. */
  const refusal = Effect.fnUntraced(function* (namespace: Namespace, name: string) {
    if (namespace.identity !== null) {
      const [identity] = yield* reads<{ status: string }>`
        select status from identity where id = ${namespace.identity} and org_id = ${namespace.org}`
      if (identity === undefined) return yield* new NotFound({ detail: "There is no such Identity." })
      if (identity.status !== "ready") {
        return yield* new IdentityNotReady({
          detail: `The Identity is ${identity.status}.`,
          agent_hint: identity.status === "provisioning" ? "wait" : "stop",
        })
      }
    }
    const [present] =
      yield* reads<Row>`select ${columns} from vault_secret s where ${inside(namespace)} and s.name = ${name}`
    return yield* new PreconditionFailed({
      detail: present === undefined ? "The secret does not exist." : `The secret is at version ${present.version}.`,
    })
  })

  const open = Effect.fnUntraced(function* (namespace: Namespace, name: string, version: number | undefined) {
    const [row] = yield* reads<
      Row & { sealed: Uint8Array; version_id: string; data_key: Uint8Array; at: Date; shown: number }
    >`
      select ${columns}, v.sealed, v.id as version_id, v.version as shown, v.created_at as at, o.data_key
      from vault_secret s join org o on o.id = s.org_id
      join vault_version v on v.secret_id = s.id and v.version = ${version === undefined ? reads`s.version` : reads`${version}::int`}
      where ${inside(namespace)} and s.name = ${name}`
    if (row === undefined) return yield* missing
    const dataKey = yield* Effect.orDie(sealing.openDataKey(namespace.org, row.data_key))
    const bytes = yield* Effect.orDie(sealing.open(dataKey, place(namespace, row.version_id), row.sealed))
    return { row, bytes }
  })

  const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

  return {
    list: (namespace: Namespace) =>
      orUnavailable(
        Effect.map(
          reads<Row>`select ${columns} from vault_secret s where ${inside(namespace)} order by s.name`,
          (rows) => rows.map(view),
        ),
      ),

    /** The plaintext of the present version, or of one that is kept. */
    value: Effect.fn("Vault.value")(function* (namespace: Namespace, name: string, version: number | undefined) {
      yield* checkName(name)
      const { row, bytes } = yield* open(namespace, name, version)
      const value: SecretValue = {
        name: row.name,
        value: new TextDecoder().decode(bytes),
        version: row.shown,
        updated_at: row.at,
      }
      return value
    }, orUnavailable),

    versions: Effect.fn("Vault.versions")(function* (namespace: Namespace, name: string) {
      yield* checkName(name)
      const rows = yield* reads<{ version: number; size: number; created_at: Date }>`
        select v.version, v.size, v.created_at from vault_secret s join vault_version v on v.secret_id = s.id
        where ${inside(namespace)} and s.name = ${name} order by v.version desc`
      return rows.length === 0 ? yield* missing : rows
    }, orUnavailable),

    /** Creates the secret or writes its next version; a description that is left out stays. */
    put: Effect.fn("Vault.put")(function* (
      namespace: Namespace,
      name: string,
      secret: { readonly value: string; readonly description?: string | null },
      condition: WriteCondition,
    ) {
      yield* checkName(name)
      const bytes = new TextEncoder().encode(secret.value)
      if (bytes.length > maxValueBytes) {
        return yield* new PayloadTooLarge({ detail: `A value has at most ${maxValueBytes} bytes.` })
      }
      const at = yield* now
      const id = yield* makeUuidV7
      const versionId = yield* makeUuidV7
      const sealed = yield* sealing.seal(yield* dataKeyOf(namespace.org), place(namespace, versionId), bytes)
      const description = secret.description ?? null
      const change = writes`
        version = s.version + 1, size = ${bytes.length}::int, updated_at = ${at}::timestamptz,
        description = ${secret.description === undefined ? writes`s.description` : writes`${description}::text`}`
      const current =
        condition.ifVersion === null ? writes`true` : writes`s.version = any(${[...condition.ifVersion]}::int[])`
      const written = condition.ifPresent
        ? writes`written as (
            update vault_secret s set ${change} from owner
            where ${inside(namespace)} and s.name = ${name} and ${current} returning ${columns}, false as created)`
        : writes`written as (
            insert into vault_secret as s (id, org_id, identity_id, name, description, version, size, created_at, updated_at)
            select ${id}::uuid, ${namespace.org}::uuid, ${namespace.identity}::uuid, ${name}::text, ${description}::text, 1,
                   ${bytes.length}::int, ${at}::timestamptz, ${at}::timestamptz
            from owner
            on conflict (org_id, identity_id, name) ${condition.ifAbsent ? writes`do nothing` : writes`do update set ${change}`}
            returning ${columns}, s.id = ${id}::uuid as created)`
      const [row] = yield* writes<Row & { created: boolean }>`
        with ${owner(namespace)}, ${written}, ${versions(versionId, sealed, bytes.length, at)} select * from written`
      return row === undefined ? yield* refusal(namespace, name) : { secret: view(row), created: row.created }
    }, orUnavailable),

    /** Makes an earlier version the present one, as a new version. */
    restore: Effect.fn("Vault.restore")(function* (
      namespace: Namespace,
      name: string,
      version: number,
      condition: IfVersion,
    ) {
      yield* checkName(name)
      const { bytes } = yield* open(namespace, name, version)
      const at = yield* now
      const versionId = yield* makeUuidV7
      const sealed = yield* sealing.seal(yield* dataKeyOf(namespace.org), place(namespace, versionId), bytes)
      const current = condition === null ? writes`true` : writes`s.version = any(${[...condition]}::int[])`
      const [row] = yield* writes<Row>`
        with ${owner(namespace)},
        written as (
          update vault_secret s set version = s.version + 1, size = ${bytes.length}::int, updated_at = ${at}::timestamptz from owner
          where ${inside(namespace)} and s.name = ${name} and ${current} returning ${columns}
        ),
        ${versions(versionId, sealed, bytes.length, at)} select * from written`
      return row === undefined ? yield* refusal(namespace, name) : view(row)
    }, orUnavailable),

    /** The name and every version of its value are gone. */
    remove: Effect.fn("Vault.remove")(function* (namespace: Namespace, name: string, condition: IfVersion) {
      yield* checkName(name)
      const current = condition === null ? writes`true` : writes`s.version = any(${[...condition]}::int[])`
      const gone = yield* writes`
        delete from vault_secret s where ${inside(namespace)} and s.name = ${name} and ${current} returning 1`
      if (gone.length > 0) return
      return yield* condition === null
        ? missing
        : new PreconditionFailed({ detail: "The secret is at another version, or does not exist." })
    }, orUnavailable),
  }
})

export class Vault extends Context.Service<Vault, Effect.Success<typeof make>>()("@svc/cluster/vault/Vault") {
  static readonly layer = Layer.effect(Vault, make)
}
