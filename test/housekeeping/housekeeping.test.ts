/** Removal of rows by age: for each limit, one row is just older and one just younger. */
import * as Housekeeping from "@svc/cluster/housekeeping/Housekeeping"
import { Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"

/**
 * Inserts rows into each table: `old` rows must be removed, `young` rows stay. Ages are PostgreSQL intervals before now; those in days
 * leave a margin for midnight.
 */
const seed = Effect.fnUntraced(function* (org: string, identity: string) {
  const sql = yield* Writes
  const ago = (age: string) => sql`now() - ${age}::interval`
  for (const [name, expired] of [
    ["old", "1 day 1 minute"],
    ["young", "23 hours"],
  ] as const) {
    yield* sql`
      insert into magic_link (token_hash, org_id, created_at, expires_at)
      values (${name}::bytea, ${org}, ${ago(expired)}, ${ago(expired)})`
    yield* sql`
      insert into device_authorization (id, device_hash, user_code, name, interval_seconds, created_at, expires_at)
      values (gen_random_uuid(), ${name}::bytea, ${name}, ${name}, 5, ${ago(expired)}, ${ago(expired)})`
    yield* sql`
      insert into message_content (message_id, raw, headers, search_text, created_at)
      values (gen_random_uuid(), '', '[]', ${name}, ${ago(expired)})`
  }
  for (const [name, age] of [
    ["old", "61 minutes"],
    ["young", "50 minutes"],
  ] as const) {
    yield* sql`
      insert into message_slice (message_id, n, bytes, created_at)
      values (gen_random_uuid(), 0, ${name}::bytea, ${ago(age)})`
  }
  for (const [name, left] of [
    ["old", "-1 minute"],
    ["young", "1 minute"],
  ] as const) {
    const until = sql`now() + ${left}::interval`
    // A session that is in use was created long ago.
    yield* sql`
      insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
      values (gen_random_uuid(), ${org}, ${name}::bytea, ${ago("400 days")}, ${ago("29 days")}, ${until})`
    yield* sql`
      insert into export (id, org_id, handle, status, created_at, expires_at)
      values (gen_random_uuid(), ${org}, ${name}, 'ready', ${ago("7 days")}, ${until})`
    yield* sql`
      insert into signing_secret (identity_id, id, sealed, created_at, retires_at)
      values (${identity}, gen_random_uuid(), ${name}::bytea, ${ago("400 days")}, ${until})`
  }
  yield* sql`
    insert into signing_secret (identity_id, id, sealed, created_at) values (${identity}, gen_random_uuid(), 'current', ${ago("400 days")})`
  const webhook = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b01"
  yield* sql`
    insert into webhook (id, identity_id, url, event_types, status, created_at)
    values (${webhook}, ${identity}, 'http://127.0.0.1:9/', '{}', 'disabled', ${ago("400 days")})`
  for (const [name, status, age] of [
    ["old", "delivered", "91 days"],
    ["old", "failed", "91 days"],
    ["young", "delivered", "89 days"],
    ["young", "queued", "91 days"],
    ["young", "retrying", "91 days"],
  ] as const) {
    yield* sql`
      insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, created_at)
      values (gen_random_uuid(), ${webhook}, ${identity}, gen_random_uuid(), ${name}, ${status}, ${ago(age)})`
  }
  for (const [name, age] of [
    ["old", 91],
    ["young", 89],
  ] as const) {
    yield* sql`
      insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
      values (gen_random_uuid(), ${name}, '', ${name}, '', ${ago(`${age} days`)})`
  }
  for (const [name, minutes] of [
    ["old", 11],
    ["young", 9],
  ] as const) {
    yield* sql`insert into public_limit (key, window_start, used) values (${name}::bytea, ${ago(`${minutes} minutes`)}, 1)`
  }
  for (const [name, days] of [
    ["old", 401],
    ["young", 399],
  ] as const) {
    yield* sql`
      insert into page_view (day, host, path, language, views) values (current_date - ${days}::int, '', ${name}, '', 1)`
  }
  for (const days of [41, 39]) {
    yield* sql`insert into tunnel_transfer (org_id, day, bytes) values (${org}, current_date - ${days}::int, 1)`
  }
})

const names = {
  magic_link: "convert_from(token_hash, 'utf8')",
  device_authorization: "name",
  message_content: "search_text",
  session: "convert_from(token_hash, 'utf8')",
  export: "handle",
  signing_secret: "convert_from(sealed, 'utf8')",
  delivery: "event_type || ' ' || status",
  system_mail: "subject",
  public_limit: "convert_from(key, 'utf8')",
  page_view: "path",
  tunnel_transfer: "current_date - day || ' days'",
  message_slice: "convert_from(bytes, 'UTF8')",
} as const

const left = Effect.gen(function* () {
  const found: Record<string, ReadonlyArray<string>> = {}
  for (const [table, name] of Object.entries(names)) {
    const stored = yield* rows(
      (sql) => sql<{ name: string }>`select ${sql.literal(name)} as name from ${sql(table)} order by 1`,
    )
    found[table] = stored.map(({ name }) => name)
  }
  return found
})

const young = {
  magic_link: ["young"],
  device_authorization: ["young"],
  message_content: ["young"],
  session: ["young"],
  export: ["young"],
  signing_secret: ["current", "young"],
  delivery: ["young delivered", "young queued", "young retrying"],
  system_mail: ["young"],
  public_limit: ["young"],
  page_view: ["young"],
  tunnel_transfer: ["39 days"],
  message_slice: ["young"],
}

layer(actors())("housekeeping", (it) => {
  it.effect("removes expired rows and no others, at its start and every ten minutes", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const { id } = yield* makeIdentity(org, "ada")
      const shown = rows((sql) => sql`select 1 from show_once where identity_id = ${id}`)
      yield* seed(org, id)
      yield* Layer.build(Housekeeping.layer)
      const swept = (found: object) => !/"old|"41 days/.test(JSON.stringify(found))
      expect((yield* waitUntil(left, swept, 0)).value).toEqual(young)
      expect(yield* shown).toHaveLength(1)
      const sql = yield* Writes
      yield* sql`update show_once set expires_at = now() - interval '1 second'`
      yield* TestClock.adjust("9 minutes")
      expect(yield* shown).toHaveLength(1)
      yield* TestClock.adjust("1 minute")
      yield* waitUntil(shown, (found) => found.length === 0)
      expect(yield* left).toEqual(young)
    }),
  )
})
