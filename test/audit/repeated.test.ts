/** Requests that are repeated after a crash, and repeated reads of the log: neither records operations that did not happen. */
import { makeUuidV7 } from "@svc/domain/Ids"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Effect } from "effect"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
let ada: { readonly handle: string }
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session, "onceada")
})
afterAll(() => service.stop())

const recordsOf = (action: string) =>
  service.query<{
    id: string
    at: Date
    outcome: string
    code: string | null
    target_id: string | null
    count: number
  }>(
    (sql) =>
      sql`select id::text as id, at, outcome, code, target_id, count from audit where action = ${action} order by at, id`,
  )

/** Restores the state after a crash: the operation was executed, and its response was not stored. */
const withoutAnswer = (key: string) =>
  service.query(
    (
      sql,
    ) => sql`update idempotency_record set status = null, headers = null, body = null, started_at = now() - interval '1 hour'
      where key = ${key}`,
  )

describe("a request repeated with its Idempotency-Key after a crash", () => {
  const requests: ReadonlyArray<readonly [action: string, path: () => string, body: unknown]> = [
    ["identities.create", () => "/api/identities", { handle: "crashed-once" }],
    [
      "mail_settings.allow",
      () => `/api/identities/${ada.handle}/allowed-recipients`,
      { address: "onceada@mail.localhost" },
    ],
    [
      "sending.send",
      () => `/api/identities/${ada.handle}/messages/send`,
      { to: ["onceada@mail.localhost"], text: "hi" },
    ],
  ]
  for (const [action, path, body] of requests) {
    it(`is one record of ${action}`, async () => {
      const key = await Effect.runPromise(makeUuidV7)
      const before = await recordsOf(action)
      const headers = { "idempotency-key": key }
      const first = await call(service.base, "POST", path(), { token: session, body, headers })
      expect(first.status, JSON.stringify(first.body)).toBeLessThan(300)
      await withoutAnswer(key)
      const repeated = await call(service.base, "POST", path(), { token: session, body, headers })
      expect(repeated.status, JSON.stringify(repeated.body)).toBeLessThan(300)
      expect(repeated.headers.get("idempotent-replayed")).toBeNull()
      const found = (await recordsOf(action)).slice(before.length)
      expect(found).toMatchObject([{ outcome: "allowed", count: 1 }])
      // The id contains the time, so the record is found by its id.
      const list = await call(service.base, "GET", `/api/audit?action=${action}`, { token: session })
      const shown = list.body["records"][0]
      const read = await call(service.base, "GET", `/api/audit/${shown.id}`, { token: session })
      expect(read.body).toMatchObject({ id: shown.id, action, outcome: "allowed" })
    })
  }

  it("creates one record of the new key and one of the refusal to show it again", async () => {
    const headers = { "idempotency-key": "made-once" }
    const body = { name: "made-once" }
    expect((await call(service.base, "POST", "/api/keys", { token: session, body, headers })).status).toBe(201)
    await withoutAnswer("made-once")
    expect((await call(service.base, "POST", "/api/keys", { token: session, body, headers })).status).toBe(409)
    expect(await recordsOf("api_keys.create")).toMatchObject([
      { outcome: "allowed", code: null },
      { outcome: "refused", code: "conflict" },
    ])
  })
})

describe("reading the audit log", () => {
  it("creates one record per credential and hour, and is counted", async () => {
    const { body } = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "reader" } })
    const key: string = body["key"]
    const readsOf = async () =>
      (
        await service.query<{ n: number; outcomes: Array<string> }>(
          (sql) => sql`select count(*)::int as n, array_agg(outcome) as outcomes from audit
            where action in ('audit.list', 'audit.read') and actor_id = ${body["api_key"].id}`,
        )
      )[0]!
    let cursor: string | null = null
    for (let pages = 0; pages < 5; pages++) {
      const page: { readonly body: any } = await call(
        service.base,
        "GET",
        `/api/audit?limit=1${cursor === null ? "" : `&cursor=${cursor}`}`,
        { token: key },
      )
      // The first read is recorded before any data are returned.
      expect(await readsOf()).toMatchObject({ n: 1, outcomes: ["allowed"] })
      await call(service.base, "GET", `/api/audit/${page.body.records[0].id}`, { token: key })
      cursor = page.body.next_cursor
    }
    expect((await readsOf()).n).toBe(1)
    // Every download is recorded, and so is every other reader.
    for (let downloads = 0; downloads < 2; downloads++)
      await call(service.base, "GET", "/api/audit/export", { token: key })
    const exports = await service.query(
      (sql) => sql`select from audit where action = 'audit.export' and actor_id = ${body["api_key"].id}`,
    )
    expect(exports).toHaveLength(2)
    const counted = () =>
      service.query<{ action: string; n: number }>(
        (sql) => sql`select action, sum(count)::int as n from audit_usage where actor_id = ${body["api_key"].id}
          and action like 'audit.%' group by action order by action`,
      )
    await expect.poll(counted).toEqual([
      { action: "audit.list", n: 5 },
      { action: "audit.read", n: 5 },
    ])
  })
})

describe("a command that has nothing to change", () => {
  it("is recorded like one that changes something", async () => {
    const at = `/api/identities/${ada.handle}`
    for (const [action, path] of [
      ["identities.retry", `${at}/retry`],
      ["identities.acknowledge", `${at}/identity-key/ack`],
      ["identities.acknowledge", `${at}/identity-key/ack`],
    ] as const) {
      const before = await recordsOf(action)
      const answer = await call(service.base, "POST", path, { token: session })
      expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
      await eventually(
        () => recordsOf(action),
        ({ length }) => length === before.length + 1,
      )
    }
  })
})
