/**
 * The Vault's store: values sealed under the Org's data key, the last versions of each kept. Called in process; each
 * operation is one statement or one transaction, and tenancy is in every one of them.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { type IfVersion, matches } from "@svc/domain/Precondition"
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
import { type DataKey, Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, Writes } from "../store/Database.ts"

/** A namespace: the Org's own, or an Identity's of this Org. */
export interface Namespace {
  readonly org: string
  /** The Identity's id, null for the Org's namespace. */
  readonly identity: string | null
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

const place = (namespace: Namespace, secretId: string, version: number) => ({
  table: "vault_version",
  column: "sealed",
  row: `${secretId}/${version}`,
  org: namespace.org,
})

const missing = new NotFound({ detail: "There is no such secret." })
const checkName = (name: string) =>
  namePattern.test(name)
    ? Effect.void
    : Effect.fail(new SecretNameInvalid({ detail: "The name is not one that a secret can have." }))

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const sealing = yield* Sealing
  const columns = reads`s.id, s.name, s.size, s.description, s.version, s.created_at, s.updated_at`
  const inside = (namespace: Namespace) =>
    reads`s.org_id = ${namespace.org}::uuid and s.identity_id is not distinct from ${namespace.identity}::uuid`

  /** Locks out deletion of the Org and of the Identity until the write is committed. */
  const lockOwner = Effect.fnUntraced(function* (namespace: Namespace) {
    const [org] = yield* writes<{ data_key: Uint8Array; status: string }>`
      select data_key, status from org where id = ${namespace.org} for share`
    if (org === undefined || org.status !== "active") {
      return yield* new AccountDeleting({ detail: "The account is being deleted." })
    }
    if (namespace.identity !== null) {
      const [identity] = yield* writes<{ status: string }>`
        select status from identity where id = ${namespace.identity} and org_id = ${namespace.org} for share`
      if (identity === undefined) return yield* new NotFound({ detail: "There is no such Identity." })
      if (identity.status !== "ready") {
        return yield* new IdentityNotReady({
          detail: `The Identity is ${identity.status}.`,
          agent_hint: identity.status === "provisioning" ? "wait" : "stop",
        })
      }
    }
    return yield* Effect.orDie(sealing.openDataKey(namespace.org, org.data_key))
  })

  const lockSecret = (namespace: Namespace, name: string) =>
    Effect.map(
      writes<Row>`select ${columns} from vault_secret s where ${inside(namespace)} and s.name = ${name} for update`,
      ([row]) => row,
    )

  /** Writes the next version of a secret whose row is locked, and forgets the oldest. */
  const append = Effect.fnUntraced(function* (
    namespace: Namespace,
    dataKey: DataKey,
    secret: { readonly id: string; readonly version: number },
    bytes: Uint8Array,
    at: Date,
  ) {
    const sealed = yield* sealing.seal(dataKey, place(namespace, secret.id, secret.version), bytes)
    yield* writes`
      with made as (
        insert into vault_version (secret_id, version, sealed, size, created_at)
        values (${secret.id}, ${secret.version}, ${sealed}, ${bytes.length}, ${at})
      )
      delete from vault_version where secret_id = ${secret.id} and version <= ${secret.version - versionsKept}`
  })

  const open = Effect.fnUntraced(function* (namespace: Namespace, name: string, version: number | undefined) {
    const [row] = yield* reads<Row & { sealed: Uint8Array; data_key: Uint8Array; at: Date; shown: number }>`
      select ${columns}, v.sealed, v.version as shown, v.created_at as at, o.data_key
      from vault_secret s join org o on o.id = s.org_id
      join vault_version v on v.secret_id = s.id and v.version = ${version === undefined ? reads`s.version` : reads`${version}::int`}
      where ${inside(namespace)} and s.name = ${name}`
    if (row === undefined) return yield* missing
    const dataKey = yield* Effect.orDie(sealing.openDataKey(namespace.org, row.data_key))
    const bytes = yield* Effect.orDie(sealing.open(dataKey, place(namespace, row.id, row.shown), row.sealed))
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
    put: Effect.fn("Vault.put")(
      function* (
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
        const dataKey = yield* lockOwner(namespace)
        const id = yield* makeUuidV7
        // Two first writes at once: the second waits here for the first and finds its row.
        const [made] = yield* writes<Row>`
          insert into vault_secret as s (id, org_id, identity_id, name, description, version, size, created_at, updated_at)
          select ${id}::uuid, ${namespace.org}::uuid, ${namespace.identity}::uuid, ${name}::text, ${secret.description ?? null}::text, 1,
                 ${bytes.length}::int, ${at}::timestamptz, ${at}::timestamptz
          where ${!condition.ifPresent}::boolean
          on conflict (org_id, identity_id, name) do nothing
          returning ${columns}`
        if (made !== undefined) {
          yield* append(namespace, dataKey, made, bytes, at)
          return { secret: view(made), created: true }
        }
        const before = yield* lockSecret(namespace, name)
        if (before === undefined || condition.ifAbsent || !matches(condition.ifVersion, before.version)) {
          return yield* new PreconditionFailed({
            detail: before === undefined ? "The secret does not exist." : `The secret is at version ${before.version}.`,
          })
        }
        const [row] = yield* writes<Row>`
          update vault_secret s
          set version = version + 1, size = ${bytes.length}, updated_at = ${at},
              description = ${secret.description === undefined ? before.description : secret.description}::text
          where id = ${before.id} returning ${columns}`
        yield* append(namespace, dataKey, row!, bytes, at)
        return { secret: view(row!), created: false }
      },
      (write) => writes.withTransaction(write),
      orUnavailable,
    ),

    /** Makes an earlier version the present one, as a new version. */
    restore: Effect.fn("Vault.restore")(
      function* (namespace: Namespace, name: string, version: number, condition: IfVersion) {
        yield* checkName(name)
        const at = yield* now
        const dataKey = yield* lockOwner(namespace)
        const before = yield* lockSecret(namespace, name)
        if (before === undefined) return yield* missing
        if (!matches(condition, before.version)) {
          return yield* new PreconditionFailed({ detail: `The secret is at version ${before.version}.` })
        }
        const [kept] = yield* writes<{ sealed: Uint8Array }>`
          select sealed from vault_version where secret_id = ${before.id} and version = ${version}`
        if (kept === undefined) return yield* new NotFound({ detail: "This version is not kept." })
        const bytes = yield* Effect.orDie(sealing.open(dataKey, place(namespace, before.id, version), kept.sealed))
        const [row] = yield* writes<Row>`
          update vault_secret s set version = version + 1, size = ${bytes.length}, updated_at = ${at}
          where id = ${before.id} returning ${columns}`
        yield* append(namespace, dataKey, row!, bytes, at)
        return view(row!)
      },
      (write) => writes.withTransaction(write),
      orUnavailable,
    ),

    /** The name and every version of its value are gone. */
    remove: Effect.fn("Vault.remove")(function* (namespace: Namespace, name: string) {
      yield* checkName(name)
      const gone = yield* writes`delete from vault_secret s where ${inside(namespace)} and s.name = ${name} returning 1`
      if (gone.length === 0) return yield* missing
    }, orUnavailable),
  }
})

export class Vault extends Context.Service<Vault, Effect.Success<typeof make>>()("@svc/cluster/vault/Vault") {
  static readonly layer = Layer.effect(Vault, make)
}
