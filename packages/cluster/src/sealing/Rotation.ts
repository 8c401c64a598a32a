/**
 * The way from one master key to the next. At its start a process seals anew, by the key that stands first, whatever
 * another key sealed: the canary, the service's own keys, and the data key of every Org. Once that is done a service
 * starts without the old key; one that still needs a key it was not given refuses to start, and says which.
 */
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { type Sql, Unhurried } from "../store/Database.ts"
import { Sealing } from "./Sealing.ts"

/** The database needs a master key that was not given, or was written with another one; `message` says what to do. */
export class MasterKeyMissing extends Schema.TaggedError<MasterKeyMissing>()("MasterKeyMissing", {
  message: Schema.String,
}) {}

/** Data keys sealed anew by one statement. */
const batch = 500
const noOrg = "00000000-0000-0000-0000-000000000000"

const wrongKey = () =>
  new MasterKeyMissing({ message: "SVC_MASTER_KEY is not the key this database was written with." })

/** The id of the key that sealed a column, as the value has it. */
const sealedBy = (sql: Sql, column: string) =>
  sql.literal(`convert_from(substring(${column} from 3 for get_byte(${column}, 1)), 'utf8')`)

/** Ids of the keys that something is sealed by. */
export const keysInUse = (sql: Sql): Effect.Effect<ReadonlyArray<string>, SqlError.SqlError> =>
  Effect.map(
    sql<{ id: string }>`
      select ${sealedBy(sql, "sealed")} as id from sealing_canary union select ${sealedBy(sql, "sealed")} from service_key
      union select ${sealedBy(sql, "data_key")} from org`,
    (rows) => rows.map(({ id }) => id),
  )

/** Checks that the master keys are the database's, and seals by the first what another one sealed. */
export const rotate = Effect.gen(function* () {
  const sql = yield* Unhurried
  const sealing = yield* Sealing
  const [present, ...former] = sealing.masterKeyIds
  yield* sql`insert into sealing_canary (id, sealed) values (1, ${yield* sealing.sealCanary}) on conflict (id) do nothing`
  const inUse = yield* keysInUse(sql)
  const unknown = inUse.filter((id) => id !== present && !former.includes(id))
  const [canary] = yield* sql<{ sealed: Uint8Array }>`select sealed from sealing_canary where id = 1`
  // A key of another id may be the same one, so only what does not open is refused here.
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
  // Last: while something of a former key is left, a start without that key is refused by it.
  yield* sql`update sealing_canary set sealed = ${yield* sealing.sealCanary} where id = 1`
  yield* Effect.logInfo(`Sealed the data keys of ${orgs} Orgs by the master key ${present}`)
})

const missing = (ids: ReadonlyArray<string>) =>
  new MasterKeyMissing({
    message: `Secrets in this database are sealed by master key ${ids.map((id) => `"${id}"`).join(", ")}: list it behind the new one in SVC_MASTER_KEY (id:key,id:key), start once, then take it out.`,
  })

/** One walk over the Orgs. Two processes that walk at the same time do no harm: each changes only what it has read. */
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
