/** Mail between two Identities of one service: its content, delivery exactly once, and forms of the address. */
import { fromPublic } from "@svc/domain/Ids"
import { beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { eventually, type TestService } from "../harness/Service.ts"
import { allow, messagesOf, type Pair, startPair } from "./Pair.ts"

describe("mail between two agents", () => {
  let service: TestService
  let session: string
  let ada: Pair["ada"]
  let grace: Pair["grace"]
  let as: Pair["as"]

  beforeAll(async () => {
    ;({ service, session, ada, grace, as } = await startPair())
  })

  it("shows an inline picture, sent from a draft or directly", async () => {
    const picture = { filename: "dot.png", content_type: "image/png", content_base64: "UE5H", content_id: "dot@ada" }
    const mail = {
      to: [grace.identity.email],
      subject: "Picture",
      html: '<p>See <img src="cid:dot@ada" alt="dot"></p>',
      attachments: [picture],
    }
    const sent = await as(ada, "POST", "/messages/send", mail)
    expect(sent.status).toBe(202)
    const draft = await as(ada, "POST", "/drafts", mail)
    expect((await as(ada, "GET", `/drafts/${draft.body.id}`)).body.attachments).toEqual([picture])
    expect((await as(ada, "POST", `/drafts/${draft.body.id}/send`)).status).toBe(202)
    const arrived = await eventually(
      async () => (await messagesOf(service, session, grace.handle)).filter(({ subject }) => subject === "Picture"),
      (found) => found.length === 2,
    )
    for (const { id } of arrived) {
      const complete = (await as(grace, "GET", `/messages/${id}`)).body
      expect(complete.html).toContain('<img src="cid:dot@ada" alt="dot">')
      expect(complete.attachments).toMatchObject([{ filename: "dot.png", content_type: "image/png", size: 3 }])
    }
    const wrong = { ...mail, attachments: [{ ...picture, content_id: "<dot@ada>" }] }
    expect((await as(ada, "POST", "/messages/send", wrong)).body).toMatchObject({
      code: "invalid_request",
      errors: [{ path: "/attachments/0/content_id" }],
    })
  })

  it("is stored once if it is delivered again because the outcome was not recorded", async () => {
    const body = { to: [grace.identity.email], subject: "Left behind", text: "Once." }
    const sent = await as(ada, "POST", "/messages/send", body)
    const done = () =>
      eventually(
        async () => (await as(ada, "GET", `/messages/${sent.body.id}`)).body.status,
        (status) => status === "done",
      )
    await done()
    // The state after a process crashed between the delivery and its record; the lease has expired.
    const id = fromPublic("msg_", sent.body.id)!
    await service.query((sql) => sql`update outgoing set status = 'queued', rows_left = 1 where message_id = ${id}`)
    await service.query((sql) => sql`update outgoing_recipient set status = 'queued' where message_id = ${id}`)
    await service.query(
      (sql) => sql`
        update outbox set attempt_started_at = now() - interval '2 minutes', next_attempt_at = now() - interval '1 minute'
        where message_id = ${id}`,
    )
    // Any message of the Identity wakes its actor.
    await as(ada, "POST", "/messages/send", { ...body, subject: "Next" })
    await done()
    const [row] = await service.query(
      (sql) => sql<{ attempts: number }>`select attempts from outbox where message_id = ${id}`,
    )
    expect(row!.attempts).toBe(2)
    const stored = await messagesOf(service, session, grace.handle)
    expect(stored.filter(({ subject }) => subject === "Left behind")).toHaveLength(1)
  })

  it("treats an Allowed Recipient with a Unicode domain and with A-labels as the same", async () => {
    const allowed = await allow(service, session, ada.handle, "Info@Bücher.example")
    expect([allowed.status, allowed.body.address]).toEqual([201, "info@xn--bcher-kva.example"])
    expect(allowed.headers.get("location")).toContain(encodeURIComponent("info@xn--bcher-kva.example"))
    const list = `/allowed-recipients?address=${encodeURIComponent("info@bücher.example")}`
    expect((await as(ada, "GET", list)).body.allowed_recipients).toMatchObject([{ reason: "manual" }])
    const sent = await as(ada, "POST", "/messages/send", { to: ["info@bücher.example"], text: "Hallo." })
    expect(sent.body.recipients).toEqual([{ address: "info@xn--bcher-kva.example", status: "queued" }])
    const path = `/api/identities/${ada.handle}/allowed-recipients/${encodeURIComponent("info@bücher.example")}`
    expect((await call(service.base, "DELETE", path, { token: session })).status).toBe(204)
    expect((await as(ada, "GET", list)).body.allowed_recipients).toEqual([])
    expect((await allow(service, session, ada.handle, "Büro <info@bücher.example>")).body).toMatchObject({
      code: "invalid_request",
      errors: [{ path: "/address" }],
    })
  })
})
