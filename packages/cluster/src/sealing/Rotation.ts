/**
 * Rotation of the master key. At startup, a process seals everything that another key sealed again with the first key:
 * the canary, the service's own keys and the data keys of all Orgs. Afterwards the service starts without the old key. A
 * service that still needs a missing key refuses to start and names it.
 */
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { type Sql, Unhurried } from "../store/Database.ts"
import { Sealing } from "./Sealing.ts"

/** A required master key is missing, or the database was written with another one. `message` is for operators. */
class MasterKeyMissing extends Schema.TaggedError<MasterKeyMissing>()("MasterKeyMissing", {
  message: Schema.String,
}) {}

/** Number of data keys that one statement replaces. */
const batch = 500
const noOrg = "00000000-0000-0000-0000-000000000000"

const wrongKey = () =>
  new MasterKeyMissing({ message: "SVC_MASTER_KEY is not the key this database was written with." })

/** Returns the SQL expression for the key id in a sealed column. */
const sealedBy = (sql: Sql, column: string) =>
  sql.literal(`convert_from(substring(${column} from 3 for get_byte(${column}, 1)), 'utf8')`)

/** Returns the ids of all master keys that the database needs. */
export const keysInUse = (sql: Sql): Effect.Effect<ReadonlyArray<string>, SqlError.SqlError> =>
  Effect.map(
    sql<{ id: string }>`
      select ${sealedBy(sql, "sealed")} as id from sealing_canary union select ${sealedBy(sql, "sealed")} from service_key
      union select ${sealedBy(sql, "data_key")} from org`,
    (rows) => rows.map(({ id }) => id),
  )

/** Checks the master keys against the database, and seals values of other keys with the first one. */
export const rotate = Effect.gen(function* () {
  const sql = yield* Unhurried
  const sealing = yield* Sealing
  const [present, ...former] = sealing.masterKeyIds
  yield* sql`insert into sealing_canary (id, sealed) values (1, ${yield* sealing.sealCanary}) on conflict (id) do nothing`
  const inUse = yield* keysInUse(sql)
  const unknown = inUse.filter((id) => id !== present && !former.includes(id))
  const [canary] = yield* sql<{ sealed: Uint8Array }>`select sealed from sealing_canary where id = 1`
  // The same key may have another id now, so only a canary that cannot be opened is an error here.
  yield* Effect.mapError(sealing.openCanary(canary!.sealed), () => (unknown.length > 0 ? missing(unknown) : wrongKey()))
  if (unknown.length > 0) return yield* missing(unknown)
  if (inUse.every((id) => id === present)) return

  const keys = yield* sql<{ name: string; sealed: Uint8Array }>`
    select name, sealed from service_key where ${sealedBy(sql, "sealed")} <> ${present}`
  for (const { name, sealed } of keys) {
    const anew = yield* sealing.sealForService(
      name,
      yield* Effect.mapError(sealing.openForService(name, sealed), wrongKey),
    )
    yield* sql`update service_key set sealed = ${anew} where name = ${name} and sealed = ${sealed}`
  }
  const orgs = yield* resealOrgs(sql, sealing, present!)
  // The canary is last, so that a start without the former key fails until the rotation is complete.
  yield* sql`update sealing_canary set sealed = ${yield* sealing.sealCanary} where id = 1`
  yield* Effect.logInfo(`Sealed the data keys of ${orgs} Orgs by the master key ${present}`)
})

const missing = (ids: ReadonlyArray<string>) =>
  new MasterKeyMissing({
    message: `Secrets in this database are sealed by master key ${ids.map((id) => `"${id}"`).join(", ")}: list it behind the new one in SVC_MASTER_KEY (id:key,id:key), start once, then take it out.`,
  })

/** Seals the data keys of all Orgs again. Concurrent processes are safe, since each only replaces the value that it read. */
const resealOrgs = Effect.fnUntraced(function* (sql: Sql, sealing: Sealing["Service"], present: string) {
  let resealed = 0
  let behind = noOrg
  while (true) {
    const rows = yield* sql<{ id: string; data_key: Uint8Array }>`
      select id, data_key from org where id > ${behind}::uuid and ${sealedBy(sql, "data_key")} <> ${present}
      order by id limit ${batch}`
    if (rows.length === 0) return resealed
    const anew = yield* Effect.forEach(rows, ({ id, data_key }) =>
      Effect.map(Effect.mapError(sealing.resealDataKey(id, data_key), wrongKey), (sealed) => ({
        id,
        former: Buffer.from(data_key).toString("hex"),
        sealed: Buffer.from(sealed).toString("hex"),
      })),
    )
    yield* sql`
      update org set data_key = decode(anew.sealed, 'hex')
      from jsonb_to_recordset(${JSON.stringify(anew)}::jsonb) as anew (id uuid, former text, sealed text)
      where org.id = anew.id and org.data_key = decode(anew.former, 'hex')`
    resealed += rows.length
    behind = rows.at(-1)!.id
  }
})
