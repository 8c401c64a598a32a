/** Reading over HTTP: flags and their conditions, attachments and ranges, threads, waiting. */
import { beforeAll, expect, it } from "vitest"
import { disposition, rangeOf, safeName, safeType } from "@svc/api/mail/Download"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

const mailbox = async () => {
  const { handle } = await makeIdentity(service.base, session)
  const path = `/api/identities/${handle}`
  const get = (rest: string, headers: Record<string, string> = {}) =>
    call(service.base, "GET", `${path}${rest}`, { token: session, headers })
  const patch = (id: string, body: object, headers: Record<string, string> = {}) =>
    call(service.base, "PATCH", `${path}/messages/${id}`, { token: session, body, headers })
  const deliver = (message: object) =>
    send(service.smtpPort, { from: "Grace <grace@example.org>", to: `${handle}@mail.localhost`, ...message })
  return { path, get, patch, deliver }
}

it("flags of a message change under a condition on its version, if one is given", async () => {
  const { get, patch, deliver } = await mailbox()
  await deliver({ subject: "One", text: "Yes.\n\nOn 3/12/25 14:02, Ada wrote:\n> No?\n" })
  const [listed] = (await get("/messages?seen=false")).body.messages
  expect(listed).toMatchObject({ seen: false, flagged: false, labels: [] })
  const read = await get(`/messages/${listed.id}`)
  expect(read.body).toMatchObject({ seen: false, text_reply: "Yes." })
  const etag = read.headers.get("etag")!
  const first = await patch(listed.id, { seen: true, labels: ["Work", "a"] }, { "if-match": etag })
  expect([first.status, first.body]).toMatchObject([200, { seen: true, flagged: false, labels: ["a", "work"] }])
  const stale = await patch(listed.id, { flagged: true }, { "if-match": etag })
  expect([stale.status, stale.body.code]).toEqual([412, "precondition_failed"])
  expect((await patch(listed.id, { flagged: true })).body).toMatchObject({
    seen: true,
    flagged: true,
    labels: ["a", "work"],
  })
  expect((await get("/messages?seen=false")).body.messages).toEqual([])
  expect((await get("/messages?flagged=true&label=WORK&from=grace@example.org")).body.messages).toHaveLength(1)
  const wrong = await patch(listed.id, { labels: ["no space"] })
  expect([wrong.status, wrong.body.code, wrong.body.errors[0].path]).toEqual([400, "invalid_request", "/labels/0"])
  expect((await patch(listed.id, { answered: true })).status).toBe(400)
  expect((await patch("msg_01kjr8xr3v7k2t9m4q6w8y0zab", { seen: true })).body.code).toBe("not_found")
  const search = await get(`/messages?query=${encodeURIComponent("is:nice")}`)
  expect([search.status, search.body.errors[0].path]).toEqual([400, "/query"])
})

it("a message of another Identity or another Org is not found", async () => {
  const { get, deliver } = await mailbox()
  await deliver({ subject: "mine", text: "secret", attachments: [{ filename: "a.txt", content: "secret" }] })
  const [{ id }] = (await get("/messages")).body.messages
  const { handle: sister } = await makeIdentity(service.base, session)
  const stranger = (await signUp(service.base)).session
  const { handle: foreign } = await makeIdentity(service.base, stranger)
  for (const [token, handle] of [
    [session, sister],
    [stranger, foreign],
  ] as const) {
    for (const rest of ["", "/raw", "/attachments/0"]) {
      expect((await get(`/messages/${id}${rest}`)).status, rest).toBe(200)
      const answer = await call(service.base, "GET", `/api/identities/${handle}/messages/${id}${rest}`, { token })
      expect([answer.status, answer.body.code], rest).toEqual([404, "not_found"])
    }
  }
})

it("the links of a message come from its HTML, or from its text", async () => {
  const { get, deliver } = await mailbox()
  await deliver({
    subject: "html",
    html: '<div style="display:none">hidden</div><a href="https://evil.example/x">bank.example</a>',
  })
  await deliver({ subject: "text", text: "See https://example.org/x." })
  const { messages } = (await get("/messages")).body
  const read = async (subject: string) =>
    (await get(`/messages/${messages.find((one: { subject: string }) => one.subject === subject).id}`)).body
  expect(await read("html")).toMatchObject({
    text: "bank.example (https://evil.example/x)",
    links: [{ url: "https://evil.example/x", text: "bank.example", deceptive: true }],
  })
  const url = "https://example.org/x"
  expect((await read("text")).links).toEqual([{ url, text: url, deceptive: false }])
})

it("attachments are downloaded as files, whole or a range", async () => {
  const { path, get, deliver } = await mailbox()
  const content = Buffer.from(Array.from({ length: 700_000 }, (_, n) => n % 251))
  await deliver({
    subject: "files",
    text: "x",
    attachments: [
      { filename: "Über\u202egpj.exe", content, contentType: "application/octet-stream" },
      { filename: "../../page.html", content: "<script>alert(1)</script>", contentType: "text/html" },
      { filename: "empty.csv", content: "", contentType: "text/csv" },
    ],
  })
  const { id, attachments } = (await get("/messages?query=has:attachment")).body.messages[0]
  const download = (index: number, headers: Record<string, string> = {}, method = "GET") =>
    fetch(`${service.base}${path}/messages/${id}/attachments/${index}`, {
      method,
      headers: { authorization: `Bearer ${session}`, ...headers },
    })
  expect(attachments[0].size).toBe(content.length)
  const complete = await download(0)
  expect(Buffer.from(await complete.arrayBuffer()).equals(content)).toBe(true)
  expect(complete.headers.get("content-length")).toBe(String(content.length))
  expect(complete.headers.get("accept-ranges")).toBe("bytes")
  expect(complete.headers.get("content-disposition")).toBe(
    `attachment; filename="_ber_gpj.exe"; filename*=UTF-8''%C3%9Cber_gpj.exe`,
  )
  const etag = complete.headers.get("etag")!
  const part = await download(0, { range: "bytes=300000-600000" })
  expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 300000-600000/${content.length}`])
  expect(Buffer.from(await part.arrayBuffer()).equals(content.subarray(300_000, 600_001))).toBe(true)
  expect(Buffer.from(await (await download(0, { range: "bytes=-5" })).arrayBuffer())).toEqual(content.subarray(-5))
  const beyond = await download(0, { range: `bytes=${content.length}-` })
  expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, `bytes */${content.length}`])
  expect(await beyond.json()).toMatchObject({ code: "range_not_satisfiable" })
  const same = await download(0, { range: "bytes=0-0", "if-range": etag })
  expect([same.status, (await same.arrayBuffer()).byteLength]).toEqual([206, 1])
  const other = await download(0, { range: "bytes=0-0", "if-range": '"another"' })
  expect([other.status, (await other.arrayBuffer()).byteLength]).toEqual([200, content.length])
  expect((await download(0, { "if-none-match": etag })).status).toBe(304)
  const head = await download(0, {}, "HEAD")
  expect([head.status, head.headers.get("content-length")]).toEqual([200, String(content.length)])
  expect(head.headers.get("content-type")).toBe("application/octet-stream")
  const empty = await download(2)
  expect([empty.status, empty.headers.get("content-type"), await empty.text()]).toEqual([200, "text/csv", ""])
  const page = await download(1)
  expect(page.headers.get("content-type")).toBe("application/octet-stream")
  expect(page.headers.get("content-disposition")).toBe(`attachment; filename="_.._page.html"`)
  expect((await download(3)).status).toBe(404)
})

it("conversations are listed, and a wait returns what arrives in them", async () => {
  const { get, deliver } = await mailbox()
  const waited = get("/messages/wait?seconds=30&from=grace@example.org")
  await deliver({ from: "nobody@example.org", subject: "else", text: "x" })
  await deliver({ subject: "Plan", text: "first", messageId: "<plan@example.org>" })
  const { body: come } = await waited
  expect(come.messages).toMatchObject([{ subject: "Plan" }])
  expect(come.after).toBe(come.messages[0].id)
  await deliver({ subject: "Re: Plan", text: "second", inReplyTo: "<plan@example.org>" })
  const next = await get(`/messages/wait?after=${come.after}`)
  expect(next.body.messages).toMatchObject([{ subject: "Re: Plan" }])
  const { body: list } = await get("/threads")
  expect(list.threads).toMatchObject([
    { subject: "Plan", messages: 2, unread: 2, snippet: "second" },
    { subject: "else", messages: 1 },
  ])
  const { body: thread } = await get(`/threads/${list.threads[0].id}`)
  expect(thread.messages.map((message: { text_reply: string }) => message.text_reply)).toEqual(["first", "second"])
  expect(thread.thread).toEqual(list.threads[0])
  const nothing = await get(`/messages/wait?seconds=1&after=${next.body.after}`)
  expect(nothing.body).toEqual({ messages: [], after: next.body.after })
})

it("a message whose bodies exceed the driver's limit is readable", async () => {
  const { get, deliver } = await mailbox()
  await deliver({ subject: "large", text: "x" })
  const [{ id }] = (await get("/messages")).body.messages
  await service.query(
    (sql) => sql`
      update message_content set text = repeat('ä', 5000000), html = repeat('<p>x</p>', 1500000)
      where message_id = (select id from message where summary ->> 'subject' = 'large')`,
  )
  // A slow machine may respond with a retry first.
  const { status, body } = await eventually(
    () => get(`/messages/${id}`),
    (answer) => answer.status !== 503,
  )
  expect([status, body.text.length, body.html.length, body.text.slice(-1)]).toEqual([200, 5_000_000, 12_000_000, "ä"])
})

it("a file name in a response contains no path", () => {
  expect(safeName("../../etc/passwd")).toBe("_.._etc_passwd")
  expect(safeName(".htaccess ")).toBe("htaccess")
  expect(safeName("a\r\nb\u0000\u202e\u2066c")).toBe("a__b___c")
  expect(safeName(`${"x".repeat(1_000)}.tar.gz`)).toMatch(/^x{147}\.gz$/)
  // An ending of more than 11 characters is no extension.
  expect(safeName(`${"x".repeat(1_000)}.${"y".repeat(11)}`)).toBe(`${"x".repeat(138)}.${"y".repeat(11)}`)
  expect(safeName(`${"x".repeat(1_000)}.${"y".repeat(12)}`)).toBe("x".repeat(150))
  expect([safeName("x".repeat(150)), safeName("x".repeat(151))]).toEqual(["x".repeat(150), "x".repeat(150)])
  expect(disposition("é'(1)*.txt")).toBe(`attachment; filename="__(1)_.txt"; filename*=UTF-8''%C3%A9%27%281%29_.txt`)
  expect(disposition(null)).toBe("attachment")
  expect(disposition("...")).toBe("attachment")
  expect(disposition('a"b;c.txt')).toBe(`attachment; filename="a_b_c.txt"; filename*=UTF-8''a_b%3Bc.txt`)
  const markup = ["text/html", "image/svg+xml", "application/xhtml+xml", "application/xml", "text/xml", "text/css"]
  const scripts = ["text/javascript", "text/x-script.python", "application/javascript", "text/cache-manifest"]
  const programs = ["x-msdos-executable", "x-shockwave-flash", "java-archive", "wasm", "hta", "pdf+x"]
  const wholes = ["multipart/mixed", "message/rfc822", "model/vrml", "text/x-component"]
  for (const type of [...markup, ...scripts, ...programs.map((name) => `application/${name}`), ...wholes]) {
    expect(safeType(type), type).toBe("application/octet-stream")
  }
  for (const type of ["application/pdf", "image/png", "text/plain", "text/csv"]) expect(safeType(type)).toBe(type)
})

it("an invalid range returns the whole content", () => {
  expect(rangeOf("bytes=0-", 10)).toEqual({ start: 0, end: 10 })
  expect(rangeOf("bytes=2-3", 10)).toEqual({ start: 2, end: 4 })
  expect(rangeOf("bytes=2-99", 10)).toEqual({ start: 2, end: 10 })
  expect(rangeOf("bytes=-99", 10)).toEqual({ start: 0, end: 10 })
  for (const none of ["bytes=10-", "bytes=-0"]) expect(rangeOf(none, 10), none).toBe("none")
  expect(rangeOf("bytes=-1", 0)).toBe("none")
  for (const ignored of [undefined, "", "bytes=", "bytes=-", "bytes=3-2", "lines=0-1", "bytes=0-1,4-5", "bytes=a-b"]) {
    expect(rangeOf(ignored, 10), ignored).toBe(undefined)
  }
})
