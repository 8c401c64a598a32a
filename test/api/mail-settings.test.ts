import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let owner: Awaited<ReturnType<typeof signUp>>
let handle: string
let key: string
beforeAll(async () => {
  service = await sharedService()
  owner = await signUp(service.base)
  const made = await makeIdentity(service.base, owner.session)
  handle = made.handle
  key = made.secrets.identity_key
})

const at = (
  method: string,
  path: string,
  token = owner.session,
  body?: unknown,
  headers: Record<string, string> = {},
) =>
  call(service.base, method, `/api/identities/${handle}${path}`, {
    token,
    headers,
    ...(body === undefined ? {} : { body }),
  })

describe("Allowed Recipients", () => {
  it("start with the account's own address, which cannot be removed", async () => {
    const { body } = await at("GET", "/allowed-recipients", key)
    expect(body.allowed_recipients).toMatchObject([
      { address: owner.email, reason: "account_owner", expired: false, expires_at: null },
    ])
    const kept = await at("DELETE", `/allowed-recipients/${encodeURIComponent(owner.email)}`)
    expect([kept.status, kept.body.code]).toEqual([409, "conflict"])
  })

  it("are added and removed by the account, not by the agent", async () => {
    expect((await at("POST", "/allowed-recipients", key, { address: "x@example.org" })).body.code).toBe(
      "admin_required",
    )
    const added = await at("POST", "/allowed-recipients", owner.session, { address: "Friend@Example.org" })
    expect(added.status).toBe(201)
    expect(added.body).toMatchObject({
      address: "friend@example.org",
      reason: "manual",
      expired: false,
      expires_at: null,
    })
    expect((await at("POST", "/allowed-recipients", owner.session, { address: "a@b, c@d" })).status).toBe(400)
    expect((await at("DELETE", "/allowed-recipients/FRIEND@example.org")).status).toBe(204)
    expect((await at("DELETE", "/allowed-recipients/friend@example.org")).status).toBe(404)
  })

  it("are searched by prefix, including whole addresses", async () => {
    for (const address of ["grace@example.org", "grace@example.org.test", "grow@example.org", "g_ace@example.org"])
      await at("POST", "/allowed-recipients", owner.session, { address })
    const found = async (address: string) => {
      const { body } = await at("GET", `/allowed-recipients?address=${encodeURIComponent(address)}`, key)
      return body.allowed_recipients.map((one: { address: string }) => one.address)
    }
    expect(await found("GRACE@example.org")).toEqual(["grace@example.org", "grace@example.org.test"])
    expect(await found("gr")).toHaveLength(3)
    expect(await found("g_")).toEqual(["g_ace@example.org"])
    expect(await found("%")).toEqual([])
    expect(await found(owner.email)).toEqual([owner.email])
    for (const address of await found("g")) await at("DELETE", `/allowed-recipients/${address}`)
  })

  it("that expired are listed and allow nothing", async () => {
    await service.query(
      (sql) => sql`insert into allowed_recipient (identity_id, address, reason, created_at, expires_at)
        select id, 'past@example.org', 'inbound', now() - interval '40 days', now() - interval '10 days' from identity`,
    )
    const { body } = await at("GET", "/allowed-recipients")
    expect(body.allowed_recipients.find(({ address }: any) => address === "past@example.org")).toMatchObject({
      reason: "inbound",
      expired: true,
    })
    const repeated = await at("POST", "/allowed-recipients", owner.session, { address: "past@example.org" })
    expect(repeated.body).toMatchObject({ reason: "manual", expired: false })
  })
})

describe("AI disclosure", () => {
  it("can be changed by the account and reset to the default", async () => {
    const first = await at("GET", "/ai-disclosure", key)
    expect(first.body).toMatchObject({ overridden: false, updated_at: null })
    expect(first.body.text).toContain(handle)
    expect((await at("PUT", "/ai-disclosure", key, { text: "no" })).body.code).toBe("admin_required")
    expect((await at("PUT", "/ai-disclosure", owner.session, { text: "   " })).status).toBe(400)
    const put = await at("PUT", "/ai-disclosure", owner.session, { text: "An <agent> wrote this." })
    expect(put.body).toMatchObject({
      text: "An <agent> wrote this.",
      html: "<p>An &lt;agent&gt; wrote this.</p>",
      overridden: true,
    })
    const stale = await at("PUT", "/ai-disclosure", owner.session, { text: "x" }, { "if-match": '"v1"' })
    expect(stale.status).toBe(412)
    const other = await at("DELETE", "/ai-disclosure", owner.session, undefined, { "if-match": '"v1"' })
    expect([other.status, other.body.code]).toEqual([412, "precondition_failed"])
    expect((await at("DELETE", "/ai-disclosure")).status).toBe(204)
    expect((await at("GET", "/ai-disclosure")).body).toMatchObject({ overridden: false, text: first.body.text })
  })
})

describe("Outgoing mail", () => {
  it("can be stopped by anyone and resumed by the account, and each change raises an Event", async () => {
    expect((await at("GET", "/mail", key)).body).toEqual({
      outgoing: "active",
      stopped_at: null,
      stopped_by: null,
      reason: null,
      approval: "none",
      tag_folders: false,
    })
    const stopped = await at("PATCH", "/mail", key, { outgoing: "stopped", reason: "it talks too much" })
    expect(stopped.body).toMatchObject({ outgoing: "stopped", stopped_by: "identity_key", reason: "it talks too much" })
    expect((await at("PATCH", "/mail", key, { outgoing: "active" })).body.code).toBe("admin_required")
    expect((await at("PATCH", "/mail", owner.session, { outgoing: "stopped" })).body.stopped_by).toBe("identity_key")
    expect((await at("PATCH", "/mail", owner.session, { outgoing: "active" })).body).toMatchObject({
      outgoing: "active",
    })
    const { body } = await eventually(
      () => call(service.base, "GET", `/api/events?handle=${handle}`, { token: owner.session }),
      ({ body }) => body.events.length === 3,
    )
    expect(body.events.map(({ type }: any) => type)).toEqual(["mail.started", "mail.stopped", "identity.ready"])
  })
})

describe("The switch of all Identities", () => {
  it("counts those that were switched, leaves out failed ones and fails while one is unreachable", async () => {
    const { session } = await signUp(service.base)
    const made = [await makeIdentity(service.base, session), await makeIdentity(service.base, session)] as const
    const [ready, other] = [made[0].handle, made[1].handle]
    const turn = (body: object, token = session) => call(service.base, "PATCH", "/api/account/mail", { token, body })
    const outgoing = async (name: string) =>
      (await call(service.base, "GET", `/api/identities/${name}/mail`, { token: session })).body.outgoing
    /** Another process takes the actor over, and the Identity has this status. */
    const become = (status: string) =>
      service.query(
        (sql) => sql`
          with moved as (update identity set status = ${status} where handle = ${other} returning canonical)
          update actor set epoch = epoch + 1 where kind = 'Identity' and id = (select canonical from moved)`,
      )
    const active = { outgoing: "active", stopped_at: null, stopped_by: null, reason: null }
    const stopped = { outgoing: "stopped", stopped_at: expect.any(String), stopped_by: "session" }
    const { body: minted } = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "ci" } })
    expect((await turn({ outgoing: "stopped", reason: "All stop" })).body).toEqual({
      ...stopped,
      reason: "All stop",
      identities: 2,
    })
    expect([await outgoing(ready), await outgoing(other)]).toEqual(["stopped", "stopped"])
    expect((await turn({ outgoing: "active" })).body).toEqual({ ...active, identities: 2 })
    expect((await turn({ outgoing: "stopped" }, minted.key)).body).toEqual({
      ...stopped,
      stopped_by: "admin_key",
      reason: null,
      identities: 2,
    })

    await become("failed")
    expect((await turn({ outgoing: "active" })).body).toEqual({ ...active, identities: 1 })
    await become("provisioning")
    const { status, body } = await turn({ outgoing: "stopped" })
    expect([status, body.code, body.retry_after_seconds]).toEqual([503, "unavailable", 1])
    expect(body.detail).toContain("Some Identities could not be reached")
    expect(await outgoing(ready)).toBe("stopped")
  })
})

describe("Messages", () => {
  const mail = (subject: string, text: string, tag = "") =>
    send(service.smtpPort, {
      from: '"Grace Hopper" <grace@example.org>',
      to: `${handle}${tag === "" ? "" : `+${tag}`}@mail.localhost`,
      subject,
      text,
      attachments: [{ filename: "näme.txt", content: `content of ${subject}`, contentType: "text/plain" }],
    })

  it("are searched by sender, recipient, subject and body, and filtered by tag, thread and direction", async () => {
    await mail("Invoice 17", "Please pay 400 € soon", "invoices")
    await mail("Lunch", "Shall we have Gemüse?", "private")
    const found = async (query: string) =>
      (await at("GET", `/messages?${query}`, key)).body.messages.map(({ subject }: any) => subject)
    expect(await found("query=GEMÜSE")).toEqual(["Lunch"])
    expect(await found("query=hopper")).toEqual(["Lunch", "Invoice 17"])
    expect(await found("query=invoice")).toEqual(["Invoice 17"])
    expect(await found("query=100%25")).toEqual([])
    expect(await found("tag=Invoices")).toEqual(["Invoice 17"])
    expect(await found("direction=outbound")).toEqual([])
    expect(await found("limit=1&offset=1")).toEqual(["Invoice 17"])
    const [{ thread_id, id }] = (await at("GET", "/messages?tag=private")).body.messages
    expect(await found(`thread_id=${thread_id}`)).toEqual(["Lunch"])
    expect(await found(`after=${id}`)).toEqual([])
  })

  it("are returned as received with their attachments, and are gone when removed", async () => {
    const [{ id, attachments }] = (await at("GET", "/messages?query=lunch")).body.messages
    expect(attachments).toMatchObject([{ index: 0, filename: "näme.txt", content_type: "text/plain" }])
    const raw = await fetch(`${service.base}/api/identities/${handle}/messages/${id}/raw`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(raw.headers.get("content-type")).toBe("message/rfc822")
    expect(await raw.text()).toMatch(/^Return-Path: <grace@example.org>\r\n[^]*Subject: Lunch\r\n/)
    const attachment = await fetch(`${service.base}/api/identities/${handle}/messages/${id}/attachments/0`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(await attachment.text()).toBe("content of Lunch")
    expect(attachment.headers.get("content-disposition")).toBe(
      `attachment; filename="n_me.txt"; filename*=UTF-8''n%C3%A4me.txt`,
    )
    expect((await at("GET", `/messages/${id}/attachments/1`)).status).toBe(404)
    expect((await at("DELETE", `/messages/${id}`, key)).status).toBe(204)
    expect((await at("GET", `/messages/${id}`)).status).toBe(404)
    expect((await at("DELETE", `/messages/${id}`)).status).toBe(404)
  })

  it("are waited for: those after the call, or immediately if a newer one exists", async () => {
    const waiting = at("GET", "/messages?wait=30", key)
    const { body } = await at("GET", "/messages")
    await eventually(
      async () => {
        await mail("Waited for", "x")
        return Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 200))])
      },
      (answer) => answer !== undefined,
    )
    expect((await waiting).body.messages.map(({ subject }: any) => subject)).toContain("Waited for")
    const newer = await at("GET", `/messages?wait=30&after=${body.messages[0].id}`, key)
    expect(newer.body.messages.length).toBeGreaterThan(0)
    const start = Date.now()
    expect((await at("GET", "/messages?wait=1", key)).body.messages).toEqual([])
    expect(Date.now() - start).toBeGreaterThanOrEqual(900)
  })
})
