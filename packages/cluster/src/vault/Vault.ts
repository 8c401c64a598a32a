/**
 * The Vault's store: values sealed under the Org's data key, the last versions of each kept. Called in process; each
 * operation is one statement, and tenancy is in every one of them.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { PageRequest } from "@svc/domain/Paging"
import type { IfVersion } from "@svc/domain/Precondition"
import {
  AccountDeleting,
  IdentityNotReady,
  NotFound,
  PayloadTooLarge,
  PreconditionFailed,
  SecretNameInvalid,
} from "@svc/domain/problems/Problem"
import { maxValueBytes, namePattern, type SecretValue, type SecretVersion, versionsKept } from "@svc/domain/vault/Vault"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { orClosed } from "../audit/Audit.ts"
import { type Note, noted } from "../audit/Note.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { type Place, Sealing } from "../sealing/Sealing.ts"
import * as Batched from "../store/Batched.ts"
import { orUnavailable, Reads, Writes } from "../store/Database.ts"
import { type Row, type Sealed, view } from "./Rows.ts"

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

/**
 * A version is sealed under an id of its own, since its number is only known with its commit; and under whose it is, the
 * secret and its name, so that it opens in the place of no other.
 */
export const place = (
  namespace: { readonly org: string; readonly identity: string | null },
  secretId: string,
  name: string,
  versionId: string,
): Place => ({
  table: "vault_version",
  column: "sealed",
  row: versionId,
  org: namespace.org,
  names: [namespace.identity ?? "", secretId, name],
})

/** A secret that came, or went and came again, between the look at it and its write: the write is made again. */
const racesAtMost = 5

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
    namespace.identity === null
      ? reads`s.org_id = ${namespace.org}::uuid and s.identity_id is null`
      : reads`s.org_id = ${namespace.org}::uuid and s.identity_id = ${namespace.identity}::uuid`

  /** What a value is sealed with and for: the Org's data key, and the secret's id where there is one. */
  const sealedForRow = yield* Batched.make((asked: ReadonlyArray<Namespace & { readonly name: string }>) =>
    Effect.map(
      reads<{ readonly asked: number; readonly data_key: Uint8Array; readonly status: string; id: string | null }>`
        select n::int as asked, o.data_key, o.status, s.id
        from unnest(${asked.map(({ org }) => org)}::uuid[], ${asked.map(({ identity }) => identity ?? "")}::text[],
                    ${asked.map(({ name }) => name)}::text[]) with ordinality as asked (org_id, identity_id, name, n)
        join org o on o.id = asked.org_id
        left join lateral (
          select id from vault_secret where org_id = o.id and identity_id = nullif(asked.identity_id, '')::uuid and name = asked.name
          union all
          select id from vault_secret where org_id = o.id and identity_id is null and asked.identity_id = '' and name = asked.name
        ) s on true`,
      Batched.inOrder(asked),
    ),
  )
  const deleting = new AccountDeleting({ detail: "The account is being deleted." })

  const sealedFor = Effect.fnUntraced(function* (namespace: Namespace, name: string) {
    const row = yield* sealedForRow({ ...namespace, name })
    if (row === undefined || row.status !== "active") return yield* deleting
    const dataKey = yield* Effect.orDie(sealing.openDataKey(namespace.org, row.data_key))
    return { dataKey, secretId: row.id ?? undefined }
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

  /** The sealed value; with a note, only as it is put on record: a row comes of nothing but the record's own insertion. */
  const sealedValue = (namespace: Namespace, name: string, version: number | undefined, note: Note | undefined) => {
    const found = reads`
      select ${columns}, v.sealed, v.id as version_id, v.version as shown, v.created_at as at, o.data_key
      from vault_secret s join org o on o.id = s.org_id
      join vault_version v on v.secret_id = s.id and v.version = ${version === undefined ? reads`s.version` : reads`${version}::int`}
      where ${inside(namespace)} and s.name = ${name}`
    return note === undefined
      ? reads<Sealed>`${found}`
      : writes<Sealed>`with found as materialized (${found}), ${noted(writes, note, "found")} select found.* from found, noted`
  }

  const open = Effect.fnUntraced(function* (
    namespace: Namespace,
    name: string,
    version: number | undefined,
    note: Note | undefined,
  ) {
    const [row] = yield* sealedValue(namespace, name, version, note)
    if (row === undefined) return yield* missing
    const dataKey = yield* Effect.orDie(sealing.openDataKey(namespace.org, row.data_key))
    const bytes = yield* Effect.orDie(
      sealing.open(dataKey, place(namespace, row.id, row.name, row.version_id), row.sealed),
    )
    return { row, bytes }
  })

  const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

  /**
   * Writes a version with what `statement` makes of the sealed value: sealed for the secret that is there, or for a new
   * one. Where another came in its place meanwhile, it is sealed and written again.
   */
  const write = Effect.fnUntraced(function* (
    namespace: Namespace,
    name: string,
    bytes: Uint8Array,
    statement: (
      secretId: string,
      kept: Statement.Fragment,
      at: Date,
    ) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>,
  ) {
    for (let races = 0; races < racesAtMost; races++) {
      const { dataKey, secretId = yield* makeUuidV7 } = yield* sealedFor(namespace, name)
      const at = yield* now
      const versionId = yield* makeUuidV7
      const sealed = yield* sealing.seal(dataKey, place(namespace, secretId, name, versionId), bytes)
      const [row] = yield* statement(secretId, versions(versionId, sealed, bytes.length, at), at)
      if (row !== undefined) return row
      const present = (yield* sealedFor(namespace, name)).secretId
      if (present === undefined || present === secretId) break
    }
    return yield* refusal(namespace, name)
  })

  const value = Effect.fn("Vault.value")(function* (
    namespace: Namespace,
    name: string,
    version: number | undefined,
    note: Note | undefined,
  ) {
    yield* checkName(name)
    const { row, bytes } = yield* open(namespace, name, version, note)
    const shown: SecretValue = {
      name: row.name,
      value: new TextDecoder().decode(bytes),
      version: row.shown,
      updated_at: row.at,
    }
    return shown
  }, orUnavailable)

  return {
    /** By name. */
    list: (namespace: Namespace, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `vault/${namespace.org}/${namespace.identity ?? ""}`,
          request,
          (behind, atMost) => reads<Row>`
            select ${columns} from vault_secret s
            where ${inside(namespace)} ${behind === undefined ? reads`` : reads`and s.name > ${behind}`}
            order by s.name limit ${atMost}`,
          ({ name }) => name,
          view,
        ),
      ),

    /**
     * The plaintext of the present version, or of one that is kept. That it is shown is committed before it is opened, by
     * the statement that reads it; `audit_unavailable` where it cannot be.
     */
    value: (namespace: Namespace, name: string, version: number | undefined, note: Note) =>
      orClosed(value(namespace, name, version, note)),

    /** The same for who has put on record before that every value of the account is shown. */
    valueOnRecord: (namespace: Namespace, name: string) => value(namespace, name, undefined, undefined),

    /** Newest first. */
    versions: Effect.fn("Vault.versions")(function* (namespace: Namespace, name: string, request: PageRequest) {
      yield* checkName(name)
      const found = yield* Cursors.page(
        sealing,
        `vault/${namespace.org}/${namespace.identity ?? ""}/${name}`,
        request,
        (behind, atMost) => reads<typeof SecretVersion.Type>`
          select v.version, v.size, v.created_at from vault_secret s join vault_version v on v.secret_id = s.id
          where ${inside(namespace)} and s.name = ${name} ${behind === undefined ? reads`` : reads`and v.version < ${behind}::int`}
          order by v.version desc limit ${atMost}`,
        ({ version }) => String(version),
        (version) => version,
      )
      return found.entries.length === 0 && request.cursor === undefined ? yield* missing : found
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
      const description = secret.description ?? null
      const current =
        condition.ifVersion === null ? writes`true` : writes`s.version = any(${[...condition.ifVersion]}::int[])`
      const row = yield* write(namespace, name, bytes, (id, kept, at) => {
        const change = writes`
          version = s.version + 1, size = ${bytes.length}::int, updated_at = ${at}::timestamptz,
          description = ${secret.description === undefined ? writes`s.description` : writes`${description}::text`}`
        const written = condition.ifPresent
          ? writes`written as (
              update vault_secret s set ${change} from owner
              where ${inside(namespace)} and s.name = ${name} and s.id = ${id}::uuid and ${current} returning ${columns})`
          : writes`written as (
              insert into vault_secret as s (id, org_id, identity_id, name, description, version, size, created_at, updated_at)
              select ${id}::uuid, ${namespace.org}::uuid, ${namespace.identity}::uuid, ${name}::text, ${description}::text, 1,
                     ${bytes.length}::int, ${at}::timestamptz, ${at}::timestamptz
              from owner
              on conflict (org_id, identity_id, name)
                ${condition.ifAbsent ? writes`do nothing` : writes`do update set ${change} where s.id = ${id}::uuid`}
              returning ${columns})`
        return writes<Row>`with ${owner(namespace)}, ${written}, ${kept} select * from written`
      })
      return { secret: view(row), created: row.version === 1 }
    }, orUnavailable),

    /** Makes an earlier version the present one, as a new version. */
    restore: Effect.fn("Vault.restore")(function* (
      namespace: Namespace,
      name: string,
      version: number,
      condition: IfVersion,
    ) {
      yield* checkName(name)
      const { bytes } = yield* open(namespace, name, version, undefined)
      const current = condition === null ? writes`true` : writes`s.version = any(${[...condition]}::int[])`
      const row = yield* write(
        namespace,
        name,
        bytes,
        (id, kept, at) => writes<Row>`
          with ${owner(namespace)},
          written as (
            update vault_secret s set version = s.version + 1, size = ${bytes.length}::int, updated_at = ${at}::timestamptz from owner
            where ${inside(namespace)} and s.name = ${name} and s.id = ${id}::uuid and ${current} returning ${columns}
          ),
          ${kept} select * from written`,
      )
      return view(row)
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
