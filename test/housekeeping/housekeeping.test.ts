/** Removal of rows by age: for each limit, one row is a little older and one a little younger. */
import * as Housekeeping from "@svc/cluster/housekeeping/Housekeeping"
import { Unhurried, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { neededColumns, valueOf, withoutReferences } from "../harness/GeneratedRows.ts"
import { rows } from "../harness/Stores.ts"

/** The column that decides, the age at which rows are removed, and other members of the row as SQL. */
type Age = readonly [table: string, column: string, age: string, members?: Readonly<Record<string, string>>]

/** The ages of docs/operations.md. */
const ages: ReadonlyArray<Age> = [
  ["actor_command", "done_at", "1 day"],
  ["actor_permit", "until", "10 minutes"],
  ["agent_sign_in", "expires_at", "90 days"],
  ["api_key", "expires_at", "30 days"],
  ["backup", "finished_at", "1 year"],
  ["client_grant", "revoked_at", "90 days"],
  ["connector_authorization", "expires_at", "0"],
  ["connector_heard", "heard_at", "90 days"],
  ["connector_revocation", "created_at", "90 days"],
  ["connector_sent", "begun_at", "1 day"],
  ["delivery", "created_at", "90 days", { status: "'delivered'" }],
  ["delivery", "created_at", "90 days", { status: "'failed'" }],
  ["device_authorization", "expires_at", "1 day"],
  ["export", "expires_at", "0"],
  ["grant_notice", "created_at", "30 days"],
  ["greylist", "seen_at", "36 days"],
  ["idempotency_record", "started_at", "1 day"],
  ["magic_link", "expires_at", "1 day"],
  ["message_content", "created_at", "1 day"],
  ["message_slice", "created_at", "1 hour"],
  ["oauth_client", "seen_at", "1 day"],
  ["oauth_client", "seen_at", "30 days", { id_token_alg: "'ES256'" }],
  ["oauth_request", "expires_at", "0"],
  ["oauth_token", "expires_at", "1 day"],
  ["page_view", "day", "400 days"],
  ["public_limit", "window_start", "10 minutes"],
  ["removed_message", "removed_at", "90 days"],
  // A session that is in use was created long ago.
  ["session", "expires_at", "0", { created_at: "now() - interval '400 days'" }],
  ["show_once", "expires_at", "0"],
  ["signing_secret", "retires_at", "0"],
  ["system_mail", "received_at", "90 days"],
  ["thread_reference", "noted_at", "180 days"],
  ["tunnel_transfer", "day", "40 days"],
  ["unanswered_mail", "received_at", "5 days"],
  ["usage_hour", "hour", "92 days"],
]

const used = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b01"
/** Rows that stay at any age, because they are in use. */
const kept: ReadonlyArray<readonly [table: string, column: string, members: Readonly<Record<string, string>>]> = [
  ["api_key", "expires_at", { end_told_at: "'infinity'" }],
  ["client_grant", "created_at", { client_id: "'with a grant'", revoked_at: "now()" }],
  ["connector_revocation", "created_at", { due_at: "now()" }],
  ["delivery", "created_at", { status: "'queued'" }],
  ["delivery", "created_at", { status: "'retrying'" }],
  ["message", "received_at", { id: `'${used}'` }],
  ["message_content", "created_at", { identity_id: `'${used}'` }],
  ["message_content", "created_at", { message_id: `'${used}'` }],
  ["oauth_client", "seen_at", { id: "'with a grant'" }],
  ["oauth_client", "seen_at", { id: "'with a sign-in'" }],
  ["agent_sign_in", "created_at", { client_id: "'with a sign-in'", expires_at: "'infinity'" }],
  ["signing_secret", "created_at", {}],
]

const seconds = (age: string) => {
  const [n, unit = "day"] = age.split(" ")
  return Number(n) * { minute: 60, hour: 3600, day: 86_400, year: 365.5 * 86_400 }[unit.replace(/s$/, "")]!
}

/** Inserts the rows, and returns for each a name, whether it stays, and the condition that finds it. */
const seed = Effect.gen(function* () {
  const sql = yield* Unhurried
  const now = Date.now()
  const columns = yield* neededColumns(sql)
  const types = yield* sql<{ at: string; type: string }>`
    select table_name || '.' || column_name as at, udt_name as type from information_schema.columns`
  let n = 0
  const insert = (table: string, column: string, at: number, members: Readonly<Record<string, string>>) => {
    const isDay = types.some((one) => one.at === `${table}.${column}` && one.type === "date")
    const value = `'${new Date(at).toISOString().slice(0, isDay ? 10 : undefined)}'`
    const needed = columns.filter(
      (one) => one.table === table && one.name !== column && members[one.name] === undefined,
    )
    const id = `0199d3c0-5e0f-7c4e-9b1a-${String(++n).padStart(12, "0")}`
    const all = { ...Object.fromEntries(needed.map((one) => [one.name, valueOf(one, id, n)])), ...members }
    return Effect.as(
      sql.unsafe(
        `insert into ${table} (${[column, ...Object.keys(all)].join()}) values (${[value, ...Object.values(all)].join()})`,
      ),
      `from ${table} where ${column} = ${value}`,
    )
  }
  return yield* withoutReferences(
    sql,
    Effect.gen(function* () {
      const seeded: Array<{ name: string; stays: boolean; condition: string }> = []
      for (const [table, column, age, members = {}] of ages) {
        for (const stays of [false, true]) {
          // Days leave a margin for midnight, and years for leap years. The number tells the rows of a table apart.
          const margin = (column === "day" || age.endsWith("year") ? 86_400 : 60) + seeded.length / 10
          const at = now - 1000 * (seconds(age) + (stays ? -margin : margin))
          const name = `${table} ${JSON.stringify(members)} ${stays ? "younger" : "older"} than ${age}`
          seeded.push({ name, stays, condition: yield* insert(table, column, at, members) })
        }
      }
      for (const [table, column, members] of kept) {
        const at = now - 1000 * (seconds("10 years") + seeded.length)
        const name = `${table} ${JSON.stringify(members)}`
        seeded.push({ name, stays: true, condition: yield* insert(table, column, at, members) })
      }
      return seeded
    }),
  )
})

layer(actors())("housekeeping", (it) => {
  it.effect("has an age for each table that it deletes from", () =>
    Effect.sync(() => {
      const tables = new Set(Housekeeping.removals.map(({ table }) => table))
      expect([...new Set(ages.map(([table]) => table))]).toEqual([...tables].toSorted())
    }),
  )

  it.effect("removes expired rows and no others, at its start and every ten minutes", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const { id } = yield* makeIdentity(org, "ada")
      const shown = rows((sql) => sql`select 1 from show_once where identity_id = ${id}`)
      const seeded = yield* seed
      const present = Effect.filter(seeded, ({ condition }) =>
        Effect.map(
          rows((sql) => sql.unsafe(`select 1 ${condition}`)),
          ({ length }) => length > 0,
        ),
      )
      expect(yield* present).toEqual(seeded)
      yield* Layer.build(Housekeeping.layer)
      // The last table of a sweep.
      yield* waitUntil(
        rows((sql) => sql`select 1 from thread_reference`),
        ({ length }) => length === 1,
        0,
      )
      expect(yield* present).toEqual(seeded.filter(({ stays }) => stays))
      expect(yield* shown).toHaveLength(1)
      const sql = yield* Writes
      yield* sql`update show_once set expires_at = now() - interval '1 second'`
      yield* TestClock.adjust("9 minutes")
      expect(yield* shown).toHaveLength(1)
      yield* TestClock.adjust("1 minute")
      yield* waitUntil(shown, (found) => found.length === 0)
    }),
  )
})
