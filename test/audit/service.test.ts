/** The audit log with the whole service: the records of calls over every protocol. */
import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { send } from "../harness/Mail.ts"
import { type Announcements, listenToAnnouncements } from "../harness/Announcements.ts"
import { startService } from "../harness/Service.ts"
import { at, changes, watchWrites } from "./RecordedChanges.ts"

type Service = Awaited<ReturnType<typeof startService>>
type Json = Record<string, any>

let service: Service
let session = ""
let key = ""
let keyId = ""
let identityKey = ""

const call = async (
  method: string,
  path: string,
  options: { key?: string; body?: unknown; headers?: Record<string, string> } = {},
) => {
  const response = await fetch(service.base + path, {
    method,
    headers: {
      ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }),
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
      "user-agent": "test-client/1",
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  })
  const text = await response.text()
  const body =
    (response.headers.get("content-type") ?? "").includes("json") && text !== "" && !text.includes("}\n{")
      ? JSON.parse(text)
      : text
  return {
    status: response.status,
    headers: response.headers,
    body: body as Json,
    text,
    requestId: response.headers.get("request-id")!,
  }
}

/** Returns the records of one request. */
const of = async (requestId: string): Promise<ReadonlyArray<Json>> => {
  const { body } = await call("GET", "/api/audit?limit=200", { key })
  return body["records"].filter((record: Json) => record["request_id"] === requestId)
}

beforeAll(async () => {
  service = await startService()
  const link = await call("POST", "/api/auth/magic-link", { body: { email: "ada@example.org", tos_accepted: true } })
  const token = new URL(link.body["dev_magic_link"]).searchParams.get("token")
  const opened = await call("POST", "/api/auth/magic-link/consume", { body: { token } })
  session = opened.body["session_token"]
  const minted = await call("POST", "/api/keys", { key: session, body: { name: "ci" } })
  key = minted.body["key"]
  keyId = minted.body["api_key"].id
  expect(await of(opened.requestId)).toMatchObject([
    { class: "auth", action: "sign_in.consumeMagicLink", outcome: "allowed" },
  ])
  expect(await of(minted.requestId)).toMatchObject([
    {
      class: "secret",
      action: "api_keys.create",
      outcome: "allowed",
      actor: { kind: "session" },
      scope: "account:admin",
    },
  ])
  for (const handle of ["ada", "bob"]) {
    await call("POST", "/api/identities", { key, body: { handle } })
    for (let n = 0; n < 200; n++) {
      if ((await call("GET", `/api/identities/${handle}`, { key })).body["status"] === "ready") break
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  const shown = await call("GET", "/api/identities/ada/identity-key", { key })
  identityKey = shown.body["identity_key"]
  expect(await of(shown.requestId)).toMatchObject([
    { class: "secret", action: "identities.secrets", identity: "ada", scope: "identity:secret" },
  ])
})

afterAll(() => service.stop())

describe("the audit log", () => {
  it("contains a change before its response is sent, with actor, target and origin", async () => {
    const changed = await call("PATCH", "/api/identities/ada/card", {
      key,
      body: { description: "a secret word: xyzzy" },
    })
    expect(changed.status).toBe(200)
    const [record] = await service.query<Json>(
      (sql) => sql`select action, class, outcome from audit where request_id = ${changed.requestId}`,
    )
    expect(record).toMatchObject({ action: "cards.patch", class: "change", outcome: "allowed" })
    const records = await of(changed.requestId)
    expect(records).toMatchObject([
      {
        class: "change",
        action: "cards.patch",
        actor: { kind: "admin_key", id: keyId, name: "ci", client: null },
        identity: "ada",
        target: { type: "card", name: "ada" },
        outcome: "allowed",
        code: null,
        scope: "card:write",
        source: { address: "127.0.0.1", via: "rest", tool: null, user_agent: "test-client/1" },
        count: 1,
      },
    ])
    const one = await call("GET", `/api/audit/${records[0]!["id"]}`, { key })
    expect(one.body).toMatchObject({ id: records[0]!["id"], action: "cards.patch" })
  })

  it("contains changed flags of a message once, and the rejected change", async () => {
    await send(service.smtpPort, { from: "grace@example.org", to: "ada@mail.localhost", subject: "marked", text: "x" })
    const [message] = (await call("GET", "/api/identities/ada/messages", { key })).body["messages"]
    const path = `/api/identities/ada/messages/${message.id}`
    const etag = (await fetch(service.base + path, { headers: { authorization: `Bearer ${key}` } })).headers.get(
      "etag",
    )!
    const changed = await call("PATCH", path, { key, body: { seen: true } })
    expect(await of(changed.requestId)).toMatchObject([
      { class: "change", action: "messages.patch", outcome: "allowed", identity: "ada", target: { id: message.id } },
    ])
    const stale = await call("PATCH", path, { key, body: { flagged: true }, headers: { "if-match": etag } })
    expect(await of(stale.requestId)).toMatchObject([{ action: "messages.patch", outcome: "refused" }])
  })

  it("contains a tool's operation as the tool call", async () => {
    const called = await call("POST", "/api/mcp", {
      key: identityKey,
      body: {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "svc_card_update", arguments: { handle: "ada", description: "by a tool" } },
      },
    })
    expect(called.status).toBe(200)
    expect(await of(called.requestId)).toMatchObject([
      { action: "cards.patch", actor: { kind: "identity_key" }, source: { via: "mcp", tool: "svc_card_update" } },
    ])
  })

  it("contains rejections, at most two records a minute per credential and code", async () => {
    const first = await call("PATCH", "/api/identities/bob/card", { key: identityKey, body: { description: "x" } })
    expect(first.body["code"]).toBe("foreign_identity")
    for (let n = 0; n < 5; n++) await call("GET", "/api/identities/bob/messages", { key: identityKey })
    expect(await of(first.requestId)).toMatchObject([
      {
        class: "change",
        action: "cards.patch",
        outcome: "refused",
        code: "foreign_identity",
        count: 1,
        target: { name: "bob" },
      },
    ])
    const { body } = await call("GET", "/api/audit?outcome=refused&class=auth", { key })
    expect(body["records"]).toMatchObject([{ action: "messages.list", code: "foreign_identity" }])
  })

  it("contains attempts with a revoked key", async () => {
    const made = await call("POST", "/api/keys", { key: session, body: { name: "old" } })
    await call("DELETE", `/api/keys/${made.body["api_key"].id}`, { key: session })
    const tried = await call("GET", "/api/identities", { key: made.body["key"] })
    expect(tried.status).toBe(401)
    expect(await of(tried.requestId)).toMatchObject([
      { class: "auth", outcome: "refused", code: "unauthenticated", actor: { kind: "admin_key", name: "old" } },
    ])
  })

  it("contains who read a Vault value, which is not shown if it cannot be recorded", async () => {
    await call("PUT", "/api/vault/secrets/github.token", { key, body: { value: "hunter2hunter2" } })
    const shown = await call("GET", "/api/vault/secrets/github.token/value", { key })
    expect(shown.body["value"]).toBe("hunter2hunter2")
    expect(await of(shown.requestId)).toMatchObject([
      {
        class: "secret",
        action: "vault.value",
        target: { type: "secret", name: "github.token" },
        scope: "vault:secret",
      },
    ])
    const none = await call("GET", "/api/vault/secrets/nothing/value", { key })
    expect(none.status).toBe(404)
    expect(await of(none.requestId)).toMatchObject([{ class: "secret", outcome: "refused", code: "not_found" }])
  })

  it("contains IMAP logins and wrong passwords", async () => {
    const login = (password: string) =>
      new Promise<string>((resolve, reject) => {
        const socket = connect(service.imapPort, "127.0.0.1")
        let text = ""
        socket.on("error", reject)
        socket.on("data", (data) => {
          text += data.toString("latin1")
          if (/^a1 /m.test(text)) {
            socket.destroy()
            resolve(text)
          } else if (text.startsWith("* OK") && !text.includes("a1") && text.split("\r\n").length === 2) {
            socket.write(`a1 LOGIN ada ${password}\r\n`)
          }
        })
      })
    const shown = await call("GET", "/api/identities/ada/identity-key", { key })
    expect(await login(shown.body["imap_password"] ?? shown.body["imap"]?.password)).toMatch(/^a1 OK/m)
    expect(await login("wrong-wrong-wrong")).toMatch(/^a1 NO/m)
    const { body } = await call("GET", "/api/audit?action=imap.login", { key })
    expect(body["records"]).toMatchObject([
      { outcome: "refused", identity: "ada", source: { via: "imap" } },
      { outcome: "allowed", identity: "ada", actor: { kind: "imap_password" } },
    ])
  })

  it("shows an Identity Key only its Identity's records", async () => {
    await call("PATCH", "/api/identities/bob/card", { key, body: { description: "bob's" } })
    const mine = await call("GET", "/api/audit?limit=200", { key: identityKey })
    expect(mine.body["records"].length).toBeGreaterThan(2)
    expect(new Set(mine.body["records"].map((record: Json) => record["identity"]))).toEqual(new Set(["ada"]))
    const [foreign] = (await call("GET", "/api/audit?identity=bob", { key })).body["records"]
    expect((await call("GET", `/api/audit/${foreign.id}`, { key: identityKey })).status).toBe(404)
    expect((await call("GET", "/api/audit/export", { key: identityKey })).status).toBe(403)
    expect((await call("GET", "/api/audit/usage", { key: identityKey })).status).toBe(403)
  })

  it("supports pages and filters, and rejects foreign cursors", async () => {
    const seen: Array<string> = []
    let cursor: string | null = null
    do {
      const page: Json = (await call("GET", `/api/audit?limit=3${cursor === null ? "" : `&cursor=${cursor}`}`, { key }))
        .body
      seen.push(...page["records"].map((record: Json) => record["id"]))
      cursor = page["next_cursor"]
    } while (cursor !== null && seen.length < 500)
    // Each read is recorded as well, and sorts before the following pages.
    expect(new Set(seen).size).toBe(seen.length)
    const all = await service.query<{ n: number }>((sql) => sql`select count(*)::int as n from audit where at < now()`)
    expect(seen.length).toBeGreaterThan(10)
    expect(seen.length).toBeLessThanOrEqual(all[0]!.n)
    expect((await call("GET", "/api/audit?cursor=x", { key })).body["code"]).toBe("invalid_cursor")
    const only = await call("GET", `/api/audit?actor=${keyId}&class=change&since=2020-01-01T00:00:00Z`, { key })
    expect(only.body["records"].every((one: Json) => one["class"] === "change" && one["actor"].id === keyId)).toBe(true)
    const { address } = only.body["records"][0].source
    const found = (filter: string) =>
      call("GET", `/api/audit?${filter}`, { key }).then(({ body }) => body["records"].length > 0)
    expect([await found(`address=${address}`), await found("address=198.51.100.9")]).toEqual([true, false])
    expect([await found("identity=A-Da"), await found("identity=nobody")]).toEqual([true, false])
  })

  /** The response of the case before. */
  let last: Json
  describe("in the transaction of the change", () => {
    let announced: Announcements
    beforeAll(async () => {
      await watchWrites(service)
      announced = await listenToAnnouncements(service)
    })
    afterAll(() => announced.stop())

    it.each(changes)("contains %s", async (action, method, path, body, table) => {
      const changed = await call(method, await path(service, last), { key: session, body })
      expect(changed.status, changed.text).toBeLessThan(300)
      const records = await service.query(
        (sql) => sql`
          select exists (select from test_written where name = ${table} and xid = audit.xmin) as "isOfChange"
          from audit where request_id = ${changed.requestId}`,
      )
      expect(records).toEqual([{ isOfChange: true }])
      const location = changed.headers.get("location")?.split("/").at(-1)
      const [record] = await of(changed.requestId)
      expect(record).toMatchObject({ action, outcome: "allowed" })
      if (location !== undefined && /^(?:wh|msg)_/.test(location)) expect(record!["target"].id).toBe(location)
      last = changed.text === "" ? last : changed.body
      await announced.ofEventsOf(changed.requestId)
    })
  })

  it("contains a command that changes nothing", async () => {
    const again = await call("PATCH", at("/mail"), { key, body: { approval: "none" } })
    expect(again.status, again.text).toBe(200)
    expect(await of(again.requestId)).toMatchObject([{ action: "mail_settings.switch", outcome: "allowed" }])
    const card = await call("PATCH", at("/card"), { key, body: { description: "at once" } })
    expect(await of(card.requestId)).toMatchObject([{ action: "cards.patch", outcome: "allowed" }])
  })

  it("rejects changes by SQL", async () => {
    for (const statement of [
      "update audit set outcome = 'allowed'",
      "delete from audit",
      "truncate audit",
      "delete from audit_seal",
    ]) {
      const refused = await service
        .query((sql) => sql.unsafe(statement))
        .then(
          () => "done",
          () => "refused",
        )
      // Deleting no rows is not rejected.
      if (statement !== "delete from audit_seal") expect(refused, statement).toBe("refused")
    }
  })
})
