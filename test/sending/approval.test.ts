/**
 * Approving exactly the content that was reviewed: what a person sees of a waiting message, and the hash in a decision.
 */
import { createHash } from "node:crypto"
import { beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { eventually } from "../harness/Service.ts"
import { messagesOf, type Pair, startPair } from "./Pair.ts"

let pair: Pair
let path: string
let to: ReadonlyArray<string>
beforeAll(async () => {
  pair = await startPair()
  path = `/api/identities/${pair.ada.handle}`
  to = [pair.grace.identity.email]
  await person("PATCH", "/mail", { approval: "required" })
})

const person = (method: string, rest: string, body?: unknown) =>
  call(pair.service.base, method, `${path}${rest}`, { token: pair.session, ...(body === undefined ? {} : { body }) })
const agent = (method: string, rest: string, body?: unknown) => pair.as(pair.ada, method, rest, body)

const asks = async (mail: object): Promise<string> => {
  const { body } = await agent("POST", "/messages/send", { to, ...mail })
  expect(body.status).toBe("awaiting_approval")
  return body.id
}
const listed = async (id: string) =>
  (await person("GET", "/approvals")).body.approvals.find((one: { id: string }) => one.id === id)
const rawOf = async (id: string): Promise<string> => (await person("GET", `/messages/${id}/raw`)).body
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")
const arrived = async (subject: string) =>
  (await messagesOf(pair.service, pair.session, pair.grace.handle)).some((one) => one["subject"] === subject)

describe("a message that waits for approval", () => {
  it("is shown completely with the SHA-256 of its content, in the list and by id", async () => {
    const id = await asks({ subject: "Short", text: "May I?", attachments: [file] })
    const [one, complete] = [await listed(id), (await person("GET", `/approvals/${id}`)).body]
    const hash = sha256(await rawOf(id))
    expect(one).toMatchObject({ truncated: false, content_sha256: hash, differences: null })
    expect(complete).toMatchObject({ id, content_sha256: hash, differences: null, bcc: [] })
    for (const shown of [one, complete]) {
      expect(shown.html).toContain("May I?")
      expect(shown.text).toContain("May I?")
      expect(shown.attachments).toMatchObject([{ index: 0, filename: "n.csv", content_type: "text/csv", size: 4 }])
    }
    expect(complete.headers).toContainEqual({ name: "AI-Disclosure", value: "mode=ai-originated" })
  })

  it("has no hash in the list if it is truncated there, and its complete content by id", async () => {
    const id = await asks({ subject: "Long", text: `${"word ".repeat(8_000)}the end` })
    expect(await listed(id)).toMatchObject({ truncated: true, content_sha256: null, html: null, text: null })
    const complete = (await person("GET", `/approvals/${id}`)).body
    expect(complete.content_sha256).toBe(sha256(await rawOf(id)))
    expect(complete.html).toContain("the end")
    // The message without its approval preview has no hash either.
    expect((await person("GET", `/messages/${id}`)).body.approval.content_sha256).toBeNull()
  })

  it("reports passages that differ between HTML and text", async () => {
    const id = await asks({ subject: "Two faces", text: "Harmless", html: "<p>wire EUR 9,000</p>" })
    const differences = { only_in_html: ["wire EUR 9,000"], only_in_text: ["Harmless"] }
    expect(await listed(id)).toMatchObject({ differences })
    expect((await person("GET", `/approvals/${id}`)).body).toMatchObject({ differences })
  })
})

describe("a decision", () => {
  it("approves only the content with the given hash", async () => {
    const id = await asks({ subject: "Named", text: "May I?" })
    const approve = (body?: object) => person("POST", `/approvals/${id}/approve`, body)
    const unnamed = await approve({})
    expect([unnamed.status, unnamed.body.code]).toEqual([400, "invalid_request"])
    expect(unnamed.body.errors).toEqual([
      { path: "/content_sha256", message: expect.stringContaining("GET …/approvals/{id}") },
    ])
    expect((await approve()).status).toBe(400)
    const other = await approve({ content_sha256: sha256("another message") })
    expect([other.status, other.body.code]).toEqual([409, "content_changed"])
    expect(other.body.detail).toContain(`${path}/approvals/${id}`)
    expect((await person("GET", `/messages/${id}`)).body.status).toBe("awaiting_approval")

    const { content_sha256 } = (await person("GET", `/approvals/${id}`)).body
    const approved = await approve({ content_sha256 })
    expect(approved.body.approval).toMatchObject({ decided_by: "session", content_sha256 })
    await eventually(
      () => arrived("Named"),
      (found) => found,
    )
    const { events } = (
      await call(pair.service.base, "GET", "/api/events?type=email.approved", { token: pair.session })
    ).body
    expect(events[0].data).toMatchObject({ message_id: id, content_sha256 })
    expect((await approve({ content_sha256 })).body.code).toBe("conflict")
    expect((await person("GET", `/approvals/${id}`)).body.code).toBe("conflict")
  })

  it("may omit the hash when it rejects, but a given hash is checked", async () => {
    const id = await asks({ subject: "Refused", text: "May I?" })
    const refuse = (body?: object) => person("POST", `/approvals/${id}/refuse`, body)
    expect((await refuse({ content_sha256: sha256("another message") })).body.code).toBe("content_changed")
    expect((await refuse()).body).toMatchObject({ status: "refused" })
  })

  it("sends nothing if the stored content changed since the review", async () => {
    const id = await asks({ subject: "Swapped", text: "May I?" })
    const { content_sha256 } = (await person("GET", `/approvals/${id}`)).body
    await pair.service.query(
      (
        sql,
      ) => sql`update message_content c set raw = convert_to(replace(convert_from(raw, 'UTF8'), 'May I?', 'Wire!'), 'UTF8')
        from message m where m.id = c.message_id and m.summary ->> 'subject' = 'Swapped'`,
    )
    const decided = await person("POST", `/approvals/${id}/approve`, { content_sha256 })
    expect([decided.status, decided.body.code]).toEqual([409, "conflict"])
    expect(await arrived("Swapped")).toBe(false)
  })

  it("applies to the latest content of a large draft that was rejected, changed and sent again", async () => {
    const mail = (text: string) => ({ to: ["nobody@example.org"], subject: "Draft", text: text.repeat(60_000) })
    const { id } = (await agent("POST", "/drafts", mail("first "))).body
    expect((await agent("POST", `/drafts/${id}/send`)).body.code).toBe("recipient_not_allowed")
    await agent("PUT", `/drafts/${id}`, { ...mail("second "), to })
    expect((await agent("POST", `/drafts/${id}/send`)).body.status).toBe("awaiting_approval")
    const [raw, complete] = [await rawOf(id), (await person("GET", `/approvals/${id}`)).body]
    expect(raw).toContain("second second")
    expect(raw).not.toContain("first first")
    expect(complete.text).toContain("second second")
    expect(complete.content_sha256).toBe(sha256(raw))
    expect((await person("POST", `/approvals/${id}/approve`, { content_sha256: complete.content_sha256 })).status).toBe(
      200,
    )
  })
})

describe("A message that may not be sent any more", () => {
  const limit = (mail: object) => person("PATCH", "/mail", mail)
  const stopped = { status: 409, code: "mail_paused", path: undefined }
  const unlisted = { status: 403, code: "recipient_not_allowed" }
  const allowed = async (isAllowed: boolean) =>
    isAllowed
      ? person("POST", "/allowed-recipients", { address: to[0] })
      : person("DELETE", `/allowed-recipients/${encodeURIComponent(to[0]!)}`)

  it("is neither approved nor sent as a draft while outgoing mail is stopped or its recipient is not allowed", async () => {
    const id = await asks({ subject: "Late", text: "May I?" })
    const { content_sha256 } = (await person("GET", `/approvals/${id}`)).body
    const { id: draft } = (await agent("POST", "/drafts", { to, subject: "Late draft", text: "May I?" })).body
    const both = async () => {
      const approved = await person("POST", `/approvals/${id}/approve`, { content_sha256 })
      const sent = await agent("POST", `/drafts/${draft}/send`)
      return [approved, sent].map(({ status, body }) => ({ status, code: body.code, path: body.errors?.[0]?.path }))
    }
    await limit({ outgoing: "stopped" })
    expect(await both()).toEqual([stopped, stopped])
    await limit({ outgoing: "active" })
    await allowed(false)
    expect(await both()).toEqual([
      { ...unlisted, path: "" },
      { ...unlisted, path: "/to/0" },
    ])
    const { events } = (
      await call(pair.service.base, "GET", "/api/events?type=email.recipient_blocked", { token: pair.session })
    ).body
    expect(events.slice(0, 2).map(({ data }: any) => data)).toEqual(
      ["Late draft", "Late"].map((subject) => ({ subject, recipients: [{ address: to[0], reason: "not_allowed" }] })),
    )
    expect((await person("GET", `/messages/${id}`)).body.status).toBe("awaiting_approval")
    await allowed(true)
    expect((await both()).map(({ status, code }) => [status, code])).toEqual([
      [200, undefined],
      [202, undefined],
    ])
    await eventually(
      () => arrived("Late"),
      (found) => found,
    )
  })

  it("is refused if its encoded form has more than 25 MiB", async () => {
    // The longest text triples in its encoding, also in the HTML that is made of it.
    const mail = (bytes: number) => ({
      to,
      text: "\u20ac".repeat(1_000_000),
      attachments: [{ ...file, content_base64: Buffer.alloc(bytes, 1).toString("base64") }],
    })
    const { id } = (await agent("POST", "/drafts", mail(5_500_000))).body
    for (const refused of [
      await agent("POST", "/messages/send", mail(5_500_000)),
      await agent("POST", `/drafts/${id}/send`),
    ]) {
      expect([refused.status, refused.body.code]).toEqual([413, "message_too_large"])
      expect(refused.body.detail).toMatch(/^The encoded message has 26\d{6} bytes\.$/)
    }
    expect((await person("GET", `/drafts/${id}`)).status).toBe(200)
  })
})

const file = {
  filename: "n.csv",
  content_type: "text/csv",
  content_base64: Buffer.from("1,2\n").toString("base64"),
}
