/**
 * The Vault's store: values sealed with the Org's data key, with their latest versions. Each operation is one statement,
 * which includes the tenant.
 */
import type { PageRequest } from "@svc/domain/Paging"
import { NotFound, PayloadTooLarge, PreconditionFailed, SecretNameInvalid } from "@svc/domain/problems/Problem"
import { type IfTag, secretTag } from "@svc/domain/vault/SecretTag"
import { maxValueBytes, namePattern, type SecretValue, type SecretVersion } from "@svc/domain/vault/Vault"
import { Context, Effect, Layer } from "effect"
import { orClosed } from "../audit/Audit.ts"
import type { AuditNote } from "../actor/Write.ts"
import { auditWriteWith, auditWrite } from "../audit/AuditWrite.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, Writes } from "../store/Database.ts"
import { columns, inside, type Namespace, place, type Row, type Sealed, tag, view } from "./SecretRows.ts"
import * as SecretWrites from "./SecretWrites.ts"

const missing = new NotFound({ detail: "The secret does not exist." })
/** Decodes values without removing a leading byte order mark. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
const checkName = (name: string) =>
  namePattern.test(name)
    ? Effect.void
    : Effect.fail(
        new SecretNameInvalid({
          detail:
            "A name has 1 to 128 lowercase letters, digits, dots, dashes and underscores, and starts with a letter or digit.",
        }),
      )

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const sealing = yield* Sealing
  const write = yield* SecretWrites.make

  /** Reads a sealed value. With a note, the statement returns a row only if it has inserted the audit record. */
  const sealedValue = (
    namespace: Namespace,
    name: string,
    version: number | undefined,
    note: AuditNote | undefined,
  ) => {
    const found = reads`
      select ${columns(reads)}, v.sealed, v.id as version_id, v.version as shown, v.created_at as at, o.data_key
      from vault_secret s join org o on o.id = s.org_id
      join vault_version v on v.secret_id = s.id and v.version = ${version === undefined ? reads`s.version` : reads`${version}::int`}
      where ${inside(reads, namespace)} and s.name = ${name}`
    return note === undefined
      ? reads<Sealed>`${found}`
      : writes<Sealed>`with found as materialized (${found}), ${auditWrite(writes, note, "found")} select found.* from found, on_record`
  }

  const open = Effect.fnUntraced(function* (
    namespace: Namespace,
    name: string,
    version: number | undefined,
    note: AuditNote | undefined,
  ) {
    const [row] = yield* sealedValue(namespace, name, version, note)
    if (row === undefined) return yield* missing
    const dataKey = yield* Effect.orDie(sealing.openDataKey(namespace.org, row.data_key))
    const bytes = yield* Effect.orDie(
      sealing.open(dataKey, place(namespace, row.id, row.name, row.version_id), row.sealed),
    )
    return { row, bytes }
  })

  const value = Effect.fnUntraced(function* (
    namespace: Namespace,
    name: string,
    version: number | undefined,
    note: AuditNote | undefined,
  ) {
    yield* checkName(name)
    const { row, bytes } = yield* open(namespace, name, version, note)
    const text = decoder.decode(bytes)
    const secret: SecretValue = { name: row.name, value: text, version: row.shown, updated_at: row.at }
    return { secret, tag: secretTag(row.shown, row.created_at) }
  }, orUnavailable)

  return {
    /** Lists the secrets by name. */
    list: (namespace: Namespace, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `vault/${namespace.org}/${namespace.identity ?? ""}`,
          request,
          (behind, atMost) => reads<Row>`
            select ${columns(reads)} from vault_secret s
            where ${inside(reads, namespace)} ${behind === undefined ? reads`` : reads`and s.name > ${behind}`}
            order by s.name limit ${atMost}`,
          ({ name }) => name,
          view,
        ),
      ),

    /**
     * Returns the plaintext of the current or an earlier version, and the entity tag of the response. The statement that
     * reads the plaintext also commits the audit record; it fails with `audit_unavailable` if it cannot.
     */
    value: (namespace: Namespace, name: string, version: number | undefined, note: AuditNote) =>
      orClosed(value(namespace, name, version, note)),

    /** Returns the plaintext without an audit record, for a caller that has already recorded access to all values. */
    valueOnRecord: (namespace: Namespace, name: string) =>
      Effect.map(value(namespace, name, undefined, undefined), ({ secret }) => secret),

    /** Lists the versions of a secret, newest first. */
    versions: Effect.fn("Vault.versions")(function* (namespace: Namespace, name: string, request: PageRequest) {
      yield* checkName(name)
      const found = yield* Cursors.page(
        sealing,
        `vault/${namespace.org}/${namespace.identity ?? ""}/${name}`,
        request,
        (behind, atMost) => reads<typeof SecretVersion.Type>`
          select v.version, v.size, v.created_at from vault_secret s join vault_version v on v.secret_id = s.id
          where ${inside(reads, namespace)} and s.name = ${name} ${behind === undefined ? reads`` : reads`and v.version < ${behind}::int`}
          order by v.version desc limit ${atMost}`,
        ({ version }) => String(version),
        (version) => version,
      )
      return found.entries.length === 0 && request.cursor === undefined ? yield* missing : found
    }, orUnavailable),

    /** Creates the secret or writes its next version. An omitted description stays unchanged. */
    put: Effect.fnUntraced(function* (
      namespace: Namespace,
      name: string,
      secret: { readonly value: string; readonly description?: string | null },
      condition: SecretWrites.WriteCondition,
      note?: AuditNote,
      command?: string,
    ) {
      yield* checkName(name)
      const bytes = new TextEncoder().encode(secret.value)
      if (bytes.length > maxValueBytes) {
        return yield* new PayloadTooLarge({ detail: `A value has at most ${maxValueBytes} bytes.` })
      }
      const row = yield* write({ namespace, name, bytes, description: secret.description, condition, note, command })
      return { secret: view(row), created: row.version === 1 }
    }),

    /** Restores the value of an earlier version as a new version. */
    restore: Effect.fn("Vault.restore")(function* (
      namespace: Namespace,
      name: string,
      version: number,
      condition: IfTag,
      note?: AuditNote,
      command?: string,
    ) {
      yield* checkName(name)
      const { bytes } = yield* orUnavailable(open(namespace, name, version, undefined))
      const onlyExisting = { ifTag: condition, ifAbsent: false, ifPresent: true }
      const row = write({ namespace, name, bytes, description: undefined, condition: onlyExisting, note, command })
      // The secret exists, so the limit of secrets does not apply.
      return view(yield* Effect.catchTag(row, "conflict", Effect.die))
    }),

    /** Removes a secret with all its versions. */
    remove: Effect.fn("Vault.remove")(function* (
      namespace: Namespace,
      name: string,
      condition: IfTag,
      note?: AuditNote,
    ) {
      yield* checkName(name)
      const current = condition === null ? writes`true` : writes`${tag(writes)} = any(${[...condition]}::text[])`
      const deleted = yield* writes`
        with gone as (
          delete from vault_secret s where ${inside(reads, namespace)} and s.name = ${name} and ${current} returning 1
        ) ${auditWriteWith(writes, note, "gone")} select 1 from gone`
      if (deleted.length > 0) return
      return yield* condition === null
        ? missing
        : new PreconditionFailed({ detail: "The secret is at another version, or does not exist." })
    }, orUnavailable),
  }
})

export class Vault extends Context.Service<Vault, Effect.Success<typeof make>>()("@svc/cluster/vault/Vault") {
  static readonly layer = Layer.effect(Vault, make)
}
