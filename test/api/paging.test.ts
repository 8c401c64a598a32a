/** Every list can be read page by page to its end and returns each entry once. */
import { randomUUID } from "node:crypto"
import { document } from "@svc/api/openapi/Document"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { mcp } from "../oauth/Consent.ts"
import { operations } from "./Operations.ts"

const many = 5
let service: TestService
let token: string
let handle: string
let webhook: string
beforeAll(async () => {
  service = await sharedService()
  token = (await signUp(service.base)).session
  const made = []
  for (let i = 0; i < many; i++) made.push(await makeIdentity(service.base, token))
  handle = made[0]!.handle
  const post = (path: string, body: unknown, by = token) => {
    // A busy machine can answer that a component did not respond in time.
    const headers = { "idempotency-key": randomUUID() }
    return eventually(
      () => call(service.base, "POST", path, { token: by, body, headers }),
      ({ status, body }) => status !== 503 && body.code !== "idempotency_key_in_progress",
    )
  }
  const receiver = await startReceiver()
  for (let i = 0; i < many; i++) {
    await post("/api/keys", { name: `key ${i}` })
    await post("/api/exports", undefined)
    await post(`/api/identities/${handle}/allowed-recipients`, { address: `person${i}@example.org` })
    const { body } = await post(`/api/identities/${handle}/webhooks`, {
      url: receiver.url,
      event_types: ["email.sent"],
    })
    webhook = body.id
    await call(service.base, "PUT", `/api/vault/secrets/name${i}`, { token, body: { value: "v" } })
    await call(service.base, "PUT", `/api/vault/secrets/name0`, { token, body: { value: `v${i}` } })
  }
  for (let i = 0; i < many; i++) await post(`/api/identities/${handle}/webhooks/${webhook}/test`, undefined)
  const at = `/api/identities/${handle}`
  for (let i = 0; i < many; i++) await post(`${at}/drafts`, { to: ["grace@example.org"], text: `Draft ${i}` })
  await call(service.base, "PATCH", `${at}/mail`, { token, body: { approval: "required" } })
  const key: string = (await post(`${at}/keys`, { name: "agent" })).body.key
  const to = ["person0@example.org"]
  for (let i = 0; i < many; i++) await post(`${at}/messages/send`, { to, text: `May I ${i}?` }, key)
  // Apps, sign-ins at sites and sessions in other browsers.
  await service.query(
    (sql) => sql`
      with owner as (select id, org_id from identity where handle = ${handle}),
      apps as (
        insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
        select uuidv7(), org_id, 'oc_' || n, 'x', 'x', '', '', '{mail:read}', now(), now() + interval '1 day'
        from owner, generate_series(1, ${many}::int) n
      ),
      sites as (
        insert into agent_sign_in (id, identity_id, client_id, client_name, redirect, site, scopes, status, created_at, expires_at,
          challenge, algorithm, credential_kind, credential_id)
        select uuidv7(), id, 'oc_' || n, 'x', 'https://x/', 'x', '{openid}', 'ended', now(), now(), '', 'RS256', 'session', uuidv7()
        from owner, generate_series(1, ${many}::int) n
      )
      insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
      select uuidv7(), org_id, decode(md5(n::text || org_id), 'hex'), now(), now(), now() + interval '1 day'
      from owner, generate_series(1, ${many}::int) n returning 1`,
  )
  await receiver.stop()
})

type List = readonly [name: string, path: () => string, member: string, keyOf: (entry: any) => string, length: number]
const below = (rest: string) => () => `/api/identities/${handle}/${rest}`
const idOf = ({ id }: { readonly id: string }) => id
const lists: ReadonlyArray<List> = [
  ["sessions", () => "/api/auth/sessions", "sessions", idOf, many + 1],
  ["grants", () => "/api/grants", "grants", idOf, many],
  ["sign-ins", below("sign-ins"), "sign_ins", idOf, many],
  ["drafts", below("drafts"), "drafts", idOf, many],
  ["approvals", below("approvals"), "approvals", idOf, many],
  ["threads", below("threads"), "threads", idOf, many],
  ["identities", () => "/api/identities", "identities", ({ id }) => id, many],
  ["keys", () => "/api/keys", "api_keys", ({ id }) => id, 2 * many + 1],
  ["exports", () => "/api/exports", "exports", ({ id }) => id, many],
  ["webhooks", () => `/api/identities/${handle}/webhooks`, "webhooks", ({ id }) => id, many],
  ["deliveries", () => `/api/identities/${handle}/webhooks/${webhook}/deliveries`, "deliveries", ({ id }) => id, many],
  [
    "recipients",
    () => `/api/identities/${handle}/allowed-recipients`,
    "allowed_recipients",
    ({ address }) => address,
    many + 1,
  ],
  ["secrets", () => "/api/vault/secrets", "secrets", ({ name }) => name, many],
  ["versions", () => "/api/vault/secrets/name0/versions", "versions", ({ version }) => String(version), many + 1],
]

/** Lists whose pages another test reads. */
const elsewhere: Readonly<Record<string, string>> = {
  "audit.list": "audit/service",
  "messages.list": "mail/pages",
  "threads.read": "mail/threads",
  "events.list": "events/lists",
  "events.listOfIdentity": "events/lists",
  "connectors.posts": "connectors/service",
  "connectors.dms": "connectors/service",
  "connectors.notifications": "connectors/service",
}

describe("Pages", () => {
  it("are read for each list", () => {
    const paths = new Set(
      lists.map(([, path]) => path().replace(handle, ":handle").replace(webhook, ":id").replace("name0", ":name")),
    )
    const unread = operations.filter(({ id, path, method }) => {
      const { parameters = [] } = document["paths"][path.replace(/:(\w+)/g, "{$1}")][method.toLowerCase()]
      const isList = parameters.some(({ name }: { readonly name: string }) => name === "cursor")
      return isList && !paths.has(path) && elsewhere[id] === undefined
    })
    expect(unread.map(({ id }) => id)).toEqual([])
  })

  it.each(lists)("cover all of %s", async (_, path, member, keyOf, length) => {
    const complete = await call(service.base, "GET", path(), { token })
    expect(complete.status).toBe(200)
    expect(complete.body.next_cursor).toBeNull()
    const all = complete.body[member].map(keyOf)
    expect(new Set(all).size).toBe(length)
    const walked: Array<string> = []
    let cursor: string | null = null
    do {
      const query = new URLSearchParams({ limit: "2", ...(cursor === null ? {} : { cursor }) })
      const { status, body } = await call(service.base, "GET", `${path()}?${query}`, { token })
      expect(status).toBe(200)
      expect(body[member].length).toBeGreaterThan(0)
      expect(body[member].length).toBeLessThanOrEqual(2)
      walked.push(...body[member].map(keyOf))
      cursor = body.next_cursor
    } while (cursor !== null && walked.length <= length)
    expect(walked).toEqual(all)
  })

  it.each(lists.filter(([name]) => name !== "deliveries"))(
    "of %s reject the cursor of another account",
    async (_, path) => {
      const first = await call(service.base, "GET", `${path()}?limit=1`, { token })
      const other = (await signUp(service.base)).session
      const own = await makeIdentity(service.base, other)
      await call(service.base, "PUT", "/api/vault/secrets/name0", { token: other, body: { value: "v" } })
      const there = `${path().replace(handle, own.handle)}?cursor=${first.body.next_cursor}`
      expect((await call(service.base, "GET", there, { token: other })).body.code).toBe("invalid_cursor")
    },
  )

  it("reject a cursor of the same list of another resource", async () => {
    const one = "/api/vault/secrets/name0/versions"
    const versions = await call(service.base, "GET", `${one}?limit=1`, { token })
    const secrets = await call(service.base, "GET", "/api/vault/secrets?limit=1", { token })
    const identity = `identity=${handle}`
    await call(service.base, "PUT", `/api/vault/secrets/name0?${identity}`, { token, body: { value: "v" } })
    for (const path of [
      `/api/vault/secrets/name1/versions?cursor=${versions.body.next_cursor}`,
      `${one}?${identity}&cursor=${versions.body.next_cursor}`,
      `/api/vault/secrets?${identity}&cursor=${secrets.body.next_cursor}`,
    ])
      expect((await call(service.base, "GET", path, { token })).body.code, path).toBe("invalid_cursor")
  })

  it("reject a cursor of another filter", async () => {
    const mail = `/api/identities/${handle}/allowed-recipients`
    const filtered: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
      ["/api/events", "type=identity.ready", ["type=api_key.created", `handle=${handle}`, ""]],
      [mail, "address=person", ["address=pers", ""]],
      [`${mail.replace("allowed-recipients", "webhooks")}/${webhook}/deliveries`, "", ["status=failed"]],
      ["/api/audit", "outcome=allowed", ["outcome=refused", "action=vault.put", ""]],
    ]
    for (const [path, own, others] of filtered) {
      const first = await call(service.base, "GET", `${path}?limit=1&${own}`, { token })
      const cursor: string = first.body.next_cursor
      expect(cursor, path).toBeTypeOf("string")
      for (const other of others) {
        const { body } = await call(service.base, "GET", `${path}?cursor=${cursor}&${other}`, { token })
        expect(body.code, `${path}?${other}`).toBe("invalid_cursor")
        expect(body.detail).toContain("with the same path and filters")
      }
      // A cursor is valid with another order of the filters and with another page size.
      expect((await call(service.base, "GET", `${path}?${own}&cursor=${cursor}&limit=3`, { token })).status).toBe(200)
    }
  })

  it("are unnecessary for short lists, which REST returns whole up to 1,000 entries and tools by 50", async () => {
    const { session, org } = await signUp(service.base)
    const own = (await makeIdentity(service.base, session)).handle
    await service.query(
      (sql) => sql`
        insert into allowed_recipient (identity_id, address, reason, created_at)
        select i.id, 'p' || n || '@example.org', 'manual', now() from identity i, generate_series(1, 1000) n
        where i.org_id = ${org.id}`,
    )
    await service.query(
      (sql) => sql`
        insert into api_key (id, org_id, name, token_prefix, token_hash, created_at)
        select uuidv7(), ${org.id}, 'n', 'svc_admin_', decode(md5(n::text || ${org.id}), 'hex'), now()
        from generate_series(1, 120) n`,
    )
    const read = async (path: string) => (await call(service.base, "GET", path, { token: session })).body
    const people = `/api/identities/${own}/allowed-recipients`
    // The additional entry is the account's own address.
    const complete = await read(people)
    expect(complete.allowed_recipients).toHaveLength(1000)
    const rest = await read(`${people}?cursor=${complete.next_cursor}`)
    expect([rest.allowed_recipients.length, rest.next_cursor]).toEqual([1, null])
    expect((await read(`${people}?limit=50`)).allowed_recipients).toHaveLength(50)
    expect((await read("/api/keys")).api_keys.length).toBeGreaterThanOrEqual(121)
    const tool = async (more: object) => {
      const input = { name: "svc_allowed_recipient_list", arguments: { handle: own, ...more } }
      return (await mcp(service.base, session, "tools/call", input)).body["result"].structuredContent
    }
    const first = await tool({})
    expect(first.allowed_recipients).toEqual(complete.allowed_recipients.slice(0, 50))
    const second = await tool({ cursor: first.next_cursor })
    expect(second.allowed_recipients).toEqual(complete.allowed_recipients.slice(50, 100))
    expect((await tool({ limit: 200 })).allowed_recipients).toHaveLength(200)
  })

  it("reject cursors that the service did not create", async () => {
    const { body } = await call(service.base, "GET", "/api/identities?limit=2", { token })
    const mail = `/api/identities/${handle}`
    const { approvals } = (await call(service.base, "GET", `${mail}/approvals?limit=1`, { token })).body
    const { thread_id } = (await call(service.base, "GET", `${mail}/messages/${approvals[0].id}`, { token })).body
    for (const cursor of ["made-up", body.next_cursor]) {
      const thread = await call(service.base, "GET", `${mail}/threads/${thread_id}?cursor=${cursor}`, { token })
      expect([thread.status, thread.body.code]).toEqual([400, "invalid_cursor"])
    }
    const answers = await Promise.all(
      [`/api/keys?cursor=${body.next_cursor}`, "/api/identities?cursor=made-up", "/api/identities?limit=0"].map(
        (path) => call(service.base, "GET", path, { token }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400])
    expect(answers[0]!.body.code).toBe("invalid_cursor")
  })
})
