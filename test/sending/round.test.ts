/**
 * Sending mail with the whole service: two agents without a relay, and one that sends through a relay, gets a reply
 * over SMTP, and replies in the thread.
 */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { freePort } from "../harness/Ports.ts"
import { startRelay } from "../harness/Relay.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"
import { allow, type Json, messagesOf, type Pair, startPair } from "./Pair.ts"

describe("development without a relay", () => {
  let service: TestService
  let session: string
  let ada: Pair["ada"]
  let grace: Pair["grace"]
  let as: Pair["as"]

  beforeAll(async () => {
    ;({ service, session, ada, grace, as } = await startPair())
  })

  it("lets two agents exchange mail, reply in the thread and attach files", async () => {
    const sent = await as(ada, "POST", "/messages/send", {
      to: [grace.identity.email],
      subject: "Numbers",
      text: "Here they are.",
      attachments: [
        { filename: "n.csv", content_type: "text/csv", content_base64: Buffer.from("1,2\n").toString("base64") },
      ],
    })
    expect([sent.status, sent.body.status]).toEqual([202, "queued"])
    expect(sent.headers.get("location")).toBe(`/api/identities/${ada.handle}/messages/${sent.body.id}`)
    const [arrived] = await eventually(
      () => messagesOf(service, session, grace.handle),
      (found) => found.length === 1,
    )
    expect(arrived).toMatchObject({
      direction: "inbound",
      subject: "Numbers",
      message_id: sent.body.message_id,
      origin: { verdict: "verified", spf: "internal" },
      attachments: [{ filename: "n.csv", content_type: "text/csv", size: 4 }],
    })
    const complete = (await as(grace, "GET", `/messages/${arrived!["id"]}`)).body
    expect(complete.text).toContain("Here they are.")
    expect(complete.text).toContain("AI agent")
    expect(complete.html).toContain("AI agent")
    expect(complete.headers).toEqual(
      expect.arrayContaining([
        { name: "AI-Disclosure", value: "mode=ai-originated" },
        { name: "Auto-Submitted", value: "auto-generated" },
      ]),
    )
    const own = await eventually(
      async () => (await as(ada, "GET", `/messages/${sent.body.id}`)).body,
      (found) => found.status === "done",
    )
    expect(own).toMatchObject({
      direction: "outbound",
      delivery: [{ address: grace.identity.email, status: "sent", reply: { code: 250 } }],
    })

    // The sender is an Allowed Recipient of the recipient.
    const answer = await as(grace, "POST", "/messages/send", {
      to: [],
      text: "Thank you.",
      reply_to_message: arrived!["id"],
    })
    expect(answer.status).toBe(202)
    expect(answer.body.recipients).toEqual([{ address: ada.identity.email, status: "queued" }])
    const [back] = await eventually(
      () => messagesOf(service, session, ada.handle, "?direction=inbound"),
      (found) => found.length === 1,
    )
    expect(back).toMatchObject({
      subject: "Re: Numbers",
      in_reply_to: sent.body.message_id,
      references: [sent.body.message_id],
      thread_id: own.thread_id,
    })
  })

  it("keeps mail to other domains queued and shows the reason", async () => {
    await allow(service, session, ada.handle, "someone@example.org")
    const sent = await as(ada, "POST", "/messages/send", { to: ["someone@example.org"], text: "Hello." })
    expect(sent.status).toBe(202)
    const stored = await eventually(
      async () => (await as(ada, "GET", `/messages/${sent.body.id}`)).body,
      (found) => found.delivery[0].reason !== null,
    )
    expect(stored).toMatchObject({ status: "queued", delivery: [{ status: "queued", reply: null }] })
    expect(stored.delivery[0].reason).toContain("relay")
  })

  it("bounces mail to an unknown local address", async () => {
    const nobody = `nobody${ada.handle}@mail.localhost`
    await allow(service, session, ada.handle, nobody)
    const sent = await as(ada, "POST", "/messages/send", { to: [nobody], text: "Hello?" })
    const bounced = await eventually(
      async () => (await as(ada, "GET", `/messages/${sent.body.id}`)).body,
      (found) => found.status === "done",
    )
    expect(bounced.delivery).toMatchObject([{ status: "bounced", reply: { code: 550, status: "5.1.1" } }])
    const listed = (await as(ada, "GET", "/allowed-recipients")).body.allowed_recipients as ReadonlyArray<Json>
    expect(listed.find(({ address }) => address === nobody)).toMatchObject({
      suppressed: { reason: "No such Mailbox" },
    })
    const repeated = await as(ada, "POST", "/messages/send", { to: [nobody], text: "Hello?" })
    expect([repeated.status, repeated.body.code]).toEqual([403, "recipient_not_allowed"])
    const lifted = await call(
      service.base,
      "DELETE",
      `/api/identities/${ada.handle}/allowed-recipients/${nobody}/suppression`,
      { token: session },
    )
    expect(lifted.status).toBe(204)
  })

  it("returns the same response for the same Idempotency-Key and sends once", async () => {
    const before = (await messagesOf(service, session, grace.handle)).length
    const body = { to: [grace.identity.email], text: "Only once." }
    const first = await as(ada, "POST", "/messages/send", body, { "idempotency-key": "once" })
    const repeated = await as(ada, "POST", "/messages/send", body, { "idempotency-key": "once" })
    expect(repeated.body).toEqual(first.body)
    await eventually(
      async () => (await as(ada, "GET", `/messages/${first.body.id}`)).body.status,
      (status) => status === "done",
    )
    expect((await messagesOf(service, session, grace.handle)).length).toBe(before + 1)
  })

  it("accepts a message of up to 10 MiB and rejects a larger one", async () => {
    const attachment = (bytes: number) => ({
      to: [grace.identity.email],
      text: "Large.",
      attachments: [
        {
          filename: "a.bin",
          content_type: "application/octet-stream",
          content_base64: Buffer.alloc(bytes, 7).toString("base64"),
        },
      ],
    })
    const taken = await as(ada, "POST", "/messages/send", attachment(7 * 1024 * 1024))
    expect(taken.status).toBe(202)
    expect((await as(ada, "POST", "/messages/send", attachment(8 * 1024 * 1024))).body.code).toBe("payload_too_large")
    await eventually(
      async () => (await as(ada, "GET", `/messages/${taken.body.id}`)).body.status,
      (status) => status === "done",
    )
  })

  it("stores drafts, sends each once, and reports missing fields", async () => {
    const draft = await as(ada, "POST", "/drafts", { subject: "Later", text: "Draft." })
    expect(draft.status).toBe(201)
    const one = `/drafts/${draft.body.id}`
    expect((await as(ada, "POST", `${one}/send`)).body).toMatchObject({
      code: "message_invalid",
      errors: [{ path: "/to" }],
    })
    const tag = (await as(ada, "GET", one)).headers.get("etag")!
    const put = { to: [grace.identity.email], subject: "Later", text: "Ready." }
    expect((await as(ada, "PUT", one, put, { "if-match": '"v9"' })).status).toBe(412)
    expect((await as(ada, "PUT", one, put, { "if-match": tag })).status).toBe(200)
    expect((await as(ada, "GET", "/drafts")).body.drafts).toMatchObject([{ id: draft.body.id, snippet: "Ready." }])
    const sent = await as(ada, "POST", `${one}/send`)
    expect([sent.status, sent.body.id]).toEqual([202, draft.body.id])
    expect((await as(ada, "GET", one)).status).toBe(404)
    expect((await as(ada, "POST", `${one}/send`)).status).toBe(404)
    expect((await as(ada, "GET", `/messages/${draft.body.id}`)).body.text).toContain("Ready.")
    expect((await as(ada, "POST", "/messages/send", { to: [grace.identity.email] })).body).toMatchObject({
      code: "message_invalid",
    })
  })

  it("requires approval for messages sent with the key if enabled", async () => {
    expect((await as(ada, "PATCH", "/mail", { approval: "none" })).body.code).toBe("admin_required")
    const path = `/api/identities/${ada.handle}`
    const patched = await call(service.base, "PATCH", `${path}/mail`, {
      token: session,
      body: { approval: "required" },
    })
    expect(patched.body).toMatchObject({ outgoing: "active", approval: "required" })
    const first = await as(ada, "POST", "/messages/send", { to: [grace.identity.email], subject: "A", text: "A?" })
    const second = await as(ada, "POST", "/messages/send", { to: [grace.identity.email], subject: "B", text: "B?" })
    expect(first.body.status).toBe("awaiting_approval")
    const waiting = (await as(ada, "GET", "/approvals")).body.approvals
    expect(waiting).toMatchObject([
      { id: first.body.id, subject: "A" },
      { id: second.body.id, subject: "B" },
    ])
    const content = { content_sha256: waiting[0].content_sha256 }
    expect((await as(ada, "POST", `/approvals/${first.body.id}/approve`, content)).body.code).toBe("admin_required")
    const approved = await call(service.base, "POST", `${path}/approvals/${first.body.id}/approve`, {
      token: session,
      body: content,
    })
    expect(approved.body).toMatchObject({ approval: { decided_by: "session" } })
    const refused = await call(service.base, "POST", `${path}/approvals/${second.body.id}/refuse`, {
      token: session,
      body: { reason: "Not now." },
    })
    expect(refused.body).toMatchObject({ status: "refused", approval: { reason: "Not now." } })
    await eventually(
      () => messagesOf(service, session, grace.handle),
      (found) => found.some(({ subject }) => subject === "A"),
    )
    expect((await messagesOf(service, session, grace.handle)).some(({ subject }) => subject === "B")).toBe(false)
    await call(service.base, "PATCH", `${path}/mail`, { token: session, body: { approval: "none" } })
  })

  it("stops and starts all Identities of an Org with one request each", async () => {
    const patch = (token: string, body: object) => call(service.base, "PATCH", "/api/account/mail", { token, body })
    expect((await patch(ada.secrets.identity_key, { outgoing: "stopped" })).body.code).toBe("org_scope_required")
    const stopped = await patch(session, { outgoing: "stopped", reason: "Audit" })
    expect(stopped.body).toMatchObject({ outgoing: "stopped", stopped_by: "session", reason: "Audit", identities: 2 })
    for (const who of [ada, grace]) {
      expect((await as(who, "GET", "/mail")).body).toMatchObject({ outgoing: "stopped", reason: "Audit" })
      const refused = await as(who, "POST", "/messages/send", { to: [grace.identity.email], text: "No." })
      expect([refused.status, refused.body.code]).toEqual([409, "mail_paused"])
    }
    expect((await patch(session, { outgoing: "active" })).body).toMatchObject({ outgoing: "active", identities: 2 })
    const sent = await as(ada, "POST", "/messages/send", { to: [grace.identity.email], text: "Yes." })
    expect(sent.status).toBe(202)
  })
})

describe("sending through a relay", () => {
  it("delivers a message, receives the reply over SMTP, and replies in the thread", async () => {
    const port = await freePort()
    const relay = await startRelay(port)
    const service = await startService({
      env: { SVC_SMTP_RELAY_URL: `smtp://svc:secret@127.0.0.1:${port}`, SVC_SYSTEM_FROM: "no-reply@mail.localhost" },
    })
    try {
      const { session } = await signUp(service.base)
      const ada = await makeIdentity(service.base, session)
      await allow(service, session, ada.handle, "grace@example.org")
      const as = (method: string, path: string, body?: unknown) =>
        call(service.base, method, `/api/identities/${ada.handle}${path}`, {
          token: ada.secrets.identity_key,
          ...(body === undefined ? {} : { body }),
        })
      const sent = await as("POST", "/messages/send", { to: ["grace@example.org"], subject: "Plan", text: "Shall we?" })
      const first = await eventually(
        () => Promise.resolve(relay.taken.find(({ to }) => to.includes("grace@example.org"))),
        (found) => found !== undefined,
      )
      expect(first!.raw).toContain(`Message-ID: ${sent.body.message_id}`)
      expect(first!.from).not.toBe("")

      await send(service.smtpPort, {
        from: "grace@example.org",
        to: ada.identity.email,
        subject: "Re: Plan",
        text: "We shall.",
        inReplyTo: sent.body.message_id,
        references: [sent.body.message_id],
        messageId: "<answer-1@example.org>",
      })
      const [answer] = await eventually(
        () => messagesOf(service, session, ada.handle, "?direction=inbound"),
        (found) => found.length === 1,
      )
      const own = (await as("GET", `/messages/${sent.body.id}`)).body
      expect(answer!["thread_id"]).toBe(own.thread_id)
      const back = await as("POST", "/messages/send", { text: "Good.", reply_to_message: answer!["id"] })
      expect(back.status).toBe(202)
      const second = await eventually(
        () => Promise.resolve(relay.taken.find(({ raw }) => raw.includes("In-Reply-To: <answer-1@example.org>"))),
        (found) => found !== undefined,
      )
      expect(second!.raw).toContain("Subject: Re: Plan")
      expect(second!.raw).toContain("Auto-Submitted: auto-replied")
      expect((await as("GET", `/messages/${back.body.id}`)).body.thread_id).toBe(own.thread_id)
    } finally {
      await service.stop()
      await relay.stop()
    }
  })
})
