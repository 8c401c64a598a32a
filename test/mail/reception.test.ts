import { connect, Socket } from "node:net"
import { Timing } from "@svc/mail-gateway/Timing"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import * as Dialogues from "./Dialogues.ts"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { holdTimers } from "../harness/HeldTimers.ts"
import { converse, send, upToData } from "../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
beforeAll(async () => {
  service = await startService({
    env: { SVC_MESSAGE_BYTES: String(1024 * 1024), SVC_MAILBOX_BYTES: String(4 * 1024 * 1024) },
  })
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const messages = async (handle: string) =>
  (await call(service.base, "GET", `/api/identities/${handle}/messages`, { token: session })).body.messages
const message = (handle: string, id: string) =>
  call(service.base, "GET", `/api/identities/${handle}/messages/${id}`, { token: session })

describe("A message", () => {
  it("arrives decoded, with its tag, trace and verdict, and raises email.received", async () => {
    const { handle, identity } = await makeIdentity(service.base, session)
    const spelled = `${handle.slice(0, 3)}-${handle.slice(3)}`.toUpperCase()
    await send(service.smtpPort, {
      from: { name: "Grace Höpper", address: "grace@example.org" },
      to: `${spelled}+Invoices+2026@MAIL.localhost`,
      subject: "Grüße aus Köln",
      text: "Hallo Welt",
      html: "<p>Hallo <b>Welt</b></p>",
      attachments: [{ filename: "räume.pdf", content: Buffer.from("%PDF-1.7"), contentType: "application/pdf" }],
    })
    const [summary] = await messages(handle)
    expect(summary).toMatchObject({
      direction: "inbound",
      from: { address: "grace@example.org", name: "Grace Höpper" },
      subject: "Grüße aus Köln",
      snippet: "Hallo Welt",
      tag: "invoices+2026",
      attachments: [{ index: 0, filename: "räume.pdf", content_type: "application/pdf", size: 8 }],
      origin: { verdict: expect.stringMatching(/^(unverified|error)$/) },
    })
    expect(Object.keys(summary)).not.toContain("text")
    const { body } = await message(handle, summary.id)
    expect(body).toMatchObject({ text: "Hallo Welt", html: "<p>Hallo <b>Welt</b></p>" })
    const names = body.headers.map(({ name }: { name: string }) => name)
    expect(names.slice(0, 3)).toEqual(["Return-Path", "Delivered-To", "Authentication-Results"])
    expect(names).toContain("Received")
    const events = await eventually(
      () => call(service.base, "GET", `/api/events?type=email.received&handle=${handle}`, { token: session }),
      ({ body }) => body.events.length === 1,
    )
    expect(events.body.events[0]).toMatchObject({
      identity_id: identity.id,
      handle,
      data: { message_id: summary.id, subject: "Grüße aus Köln", tag: "invoices+2026" },
    })
  })

  it("over 256 KiB arrives complete", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const text = "0123456789abcdef".repeat(40_000)
    await send(service.smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject: "large", text })
    const [summary] = await messages(handle)
    expect(summary.size).toBeGreaterThan(600_000)
    expect((await message(handle, summary.id)).body.text.replaceAll(/\s/g, "")).toBe(text)
  })

  it("joins the thread of the message it replies to", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const to = `${handle}@mail.localhost`
    await send(service.smtpPort, {
      from: "a@example.org",
      to,
      subject: "q",
      text: "1",
      messageId: "<first@example.org>",
    })
    await send(service.smtpPort, {
      from: "a@example.org",
      to,
      subject: "re",
      text: "2",
      inReplyTo: "<first@example.org>",
    })
    await send(service.smtpPort, { from: "a@example.org", to, subject: "other", text: "3" })
    const [other, answer, first] = await messages(handle)
    expect(answer.thread_id).toBe(first.thread_id)
    expect(other.thread_id).not.toBe(first.thread_id)
  })

  it("for several recipients is stored for each", async () => {
    const one = await makeIdentity(service.base, session)
    const two = await makeIdentity(service.base, session)
    await send(service.smtpPort, {
      from: "a@example.org",
      to: [`${one.handle}@mail.localhost`, `${two.handle}+t@mail.localhost`],
      text: "x",
    })
    expect((await messages(one.handle))[0].tag).toBeNull()
    expect((await messages(two.handle))[0].tag).toBe("t")
  })
})

describe("Recipients", () => {
  const rcpt = async (address: string) =>
    (
      await converse(service.smtpPort, [
        "EHLO x\r\n",
        "MAIL FROM:<a@example.org>\r\n",
        `RCPT TO:<${address}>\r\n`,
        "QUIT\r\n",
      ])
    )[3]

  it("that do not exist, or are of another domain, are rejected permanently", async () => {
    expect(await rcpt("nobodyhasthis@mail.localhost")).toMatch(/^550 5\.1\.1 /)
    expect(await rcpt("a@example.org")).toMatch(/^550 5\.7\.1 /)
    expect(await rcpt("no_such.name@mail.localhost")).toMatch(/^550 5\.1\.1 /)
  })
  it("that every domain must have are accepted", async () => {
    expect(await rcpt("postmaster@mail.localhost")).toMatch(/^250 /)
    const data = "From: a@example.org\r\nSubject: help\r\n\r\nplease\r\n.\r\n"
    const replies = await converse(service.smtpPort, [...upToData("Abuse@mail.localhost"), data, "QUIT\r\n"])
    expect(replies[5]).toMatch(/^250 /)
    expect(await service.query((sql) => sql`select subject from system_mail`)).toEqual([{ subject: "help" }])
  })
  it("that were deleted are rejected permanently", async () => {
    const { handle } = await makeIdentity(service.base, session)
    await call(service.base, "DELETE", `/api/identities/${handle}`, { token: session })
    expect(await rcpt(`${handle}@mail.localhost`)).toMatch(/^550 /)
  })
  it("that are full are deferred, and the Identity is notified once an hour", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const big = "y".repeat(900_000)
    const outcomes: Array<string> = []
    for (let i = 0; i < 6; i++) {
      await send(service.smtpPort, {
        from: "a@example.org",
        to: `${handle}@mail.localhost`,
        subject: String(i),
        text: big,
      }).then(
        () => outcomes.push("ok"),
        (error) => outcomes.push(String(error.responseCode)),
      )
    }
    expect(outcomes.slice(-2)).toEqual(["452", "452"])
    const before = (await messages(handle)).length
    expect(before).toBeLessThan(6)
    expect(before).toBe(outcomes.filter((outcome) => outcome === "ok").length)
  })
})

describe("Hostile input", () => {
  let to: string
  let handle: string
  beforeAll(async () => {
    handle = (await makeIdentity(service.base, session, newHandle("hostile"))).handle
    to = `${handle}@mail.localhost`
  })
  const data = async (bytes: string | Buffer) =>
    (await converse(service.smtpPort, [...upToData(to), bytes, "QUIT\r\n"]))[5]
  const head = "From: a@example.org\r\nSubject: s\r\n\r\n"

  const cases: ReadonlyArray<readonly [string, string, RegExp]> = [
    ["a bare LF", `${head}one\ntwo\r\n.\r\n`, /^554 5\.6\.0 /],
    ["a bare CR", `${head}one\rtwo\r\n.\r\n`, /^554 5\.6\.0 /],
    [
      "an end of data between bare LFs, and a second message smuggled behind it",
      `${head}one\n.\nMAIL FROM:<evil@example.org>\r\n.\r\n`,
      /^554 /,
    ],
    ["an end of data after a bare LF", `${head}one\n.\r\nMAIL FROM:<evil@example.org>\r\n.\r\n`, /^554 /],
    ["NUL", `${head}a\0b\r\n.\r\n`, /^554 5\.6\.0 /],
    [
      "more hops than any message has",
      `${"Received: from a by b; now\r\n".repeat(101)}${head}x\r\n.\r\n`,
      /^554 5\.4\.6 /,
    ],
    [
      "more than the limit",
      `${head}${"z".repeat(998)}\r\n`.repeat(1) + `${"z".repeat(998)}\r\n`.repeat(1100) + ".\r\n",
      /^552 5\.3\.4 /,
    ],
    ["a megabyte of headers", `${"X-Junk: abcdefghijklmnop\r\n".repeat(35_000)}${head}x\r\n.\r\n`, /^554 5\.6\.0 /],
    [
      "a header folded over and over",
      `From: a@example.org\r\nX-Junk: a\r\n${" b\r\n".repeat(2_000)}\r\nx\r\n.\r\n`,
      /^554 5\.6\.0 /,
    ],
    [
      "ten thousand parts",
      `From: a@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${"--b\r\n\r\nx\r\n".repeat(10_000)}--b--\r\n.\r\n`,
      /^250 /,
    ],
    [
      "a nesting of a hundred",
      `From: a@example.org\r\n${Array.from({ length: 100 }, (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\r\n\r\n--b${i}\r\n`).join("")}\r\nx\r\n.\r\n`,
      /^250 /,
    ],
    ["no header at all", "just text\r\n.\r\n", /^250 /],
  ]
  for (const [what, bytes, reply] of cases) {
    it(`${what}: ${reply.source}`, async () => expect(await data(bytes)).toMatch(reply))
  }

  it("changes no sender and leaves the server responsive", async () => {
    const list = await messages(handle)
    expect(
      list.every(({ from }: { from: { address: string } | null }) => from === null || from.address === "a@example.org"),
    ).toBe(true)
    await send(service.smtpPort, { from: "a@example.org", to, subject: "still here", text: "x" })
    expect((await messages(handle))[0].subject).toBe("still here")
    await eventually(
      () => call(service.base, "GET", `/api/events?type=email.refused&handle=${handle}`, { token: session }),
      ({ body }) => body.events.length === 1 && body.events[0].data.reason === "size",
    )
  })

  it("for a full Mailbox is refused temporarily, and its owner is notified", async () => {
    const full = (await makeIdentity(service.base, session, newHandle("full"))).handle
    await service.query(
      (sql) => sql`
        update mailbox m set bytes_used = 1::bigint << 50 from identity i where i.id = m.identity_id and i.handle = ${full}`,
    )
    const replies = await converse(service.smtpPort, [...upToData(`${full}@mail.localhost`).slice(0, 3), "QUIT\r\n"])
    expect(replies.find((reply) => reply.startsWith("452 4.2.2"))).toBeDefined()
    await eventually(
      () => call(service.base, "GET", `/api/events?type=email.refused&handle=${full}`, { token: session }),
      ({ body }) => body.events.length === 1 && body.events[0].data.reason === "full",
    )
  })

  it("finds no authentication and must wait for the greeting", async () => {
    const [, ehlo] = await converse(service.smtpPort, ["EHLO x\r\n", "QUIT\r\n"])
    expect(ehlo).toMatch(/SIZE 1048576/)
    expect(ehlo).toMatch(/STARTTLS/)
    expect(ehlo).not.toMatch(/AUTH/)
  })
})

describe("Every command and limit", () => {
  // After an intended change, `vitest run test/mail/reception --update=all` writes the files in `dialogues/` anew.
  const inFile = async (name: string, port: number, dialogues: ReturnType<typeof Dialogues.smtp>) => {
    const held = await Promise.all(
      Object.entries(dialogues).map(async ([title, lines]) => [
        `# ${title}`,
        ...(await Dialogues.held(port, lines)),
        "",
      ]),
    )
    await expect(held.flat().join("\n")).toMatchFileSnapshot(`dialogues/${name}.txt`)
  }
  it("is answered by the SMTP server as the protocol demands", async () => {
    const { handle } = await makeIdentity(service.base, session, "dialogues")
    await service.query((sql) => sql`update mailbox m set bytes_used = 0 from identity i where i.id = m.identity_id`)
    await inFile("smtp", service.smtpPort, Dialogues.smtp(`${handle}@mail.localhost`, 1024 * 1024))
  })
  it("is answered by the submission server as the protocol demands", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session, "submissions")
    const allowed = "bob@elsewhere.example"
    await call(service.base, "POST", `/api/identities/${handle}/allowed-recipients`, {
      token: session,
      body: { address: allowed },
    })
    const { username, password } = secrets.smtp
    const own = {
      user: username,
      pass: password,
      key: secrets.identity_key,
      address: `${handle}@mail.localhost`,
      allowed,
    }
    await inFile("submission", service.submissionPort, Dialogues.submission(own, 1024 * 1024))
  })
})

describe("The time limits of a session", () => {
  const { smtpSessionMillis, smtpDataMillis, smtpIdleMillis } = Timing
  const { submissionLoginMillis, submissionSessionMillis, submissionDataMillis, submissionIdleMillis } = Timing
  let to: string
  let login: ReadonlyArray<string>
  let mail: ReadonlyArray<string>
  beforeAll(async () => {
    const { handle, secrets } = await makeIdentity(service.base, session, newHandle("slow"))
    to = `${handle}@mail.localhost`
    const { username, password } = secrets.smtp
    const plain = (word: string) => `AUTH PLAIN ${Buffer.from(`\0${username}\0${word}`).toString("base64")}\r\n`
    login = ["EHLO laptop\r\n", plain("wrong"), plain(password)]
    mail = [`MAIL FROM:<${to}>\r\n`, `RCPT TO:<${to}>\r\n`, "DATA\r\n", `From: ${to}\r\n\r\nx\r\n.\r\n`]
  })

  /** Sends the lines, each after a reply, and then fires the timers of a length. Idle connections are not ended. */
  const limitsAfter = async (port: number, lines: ReadonlyArray<string>, length: number | undefined) => {
    const timers = holdTimers("mail-gateway", 60_000)
    const idle = vi.spyOn(Socket.prototype, "setTimeout").mockReturnThis()
    const socket = connect(port, "127.0.0.1")
    const closed = new Promise((resolve) => socket.on("error", () => {}).once("close", resolve))
    try {
      for (const line of [undefined, ...lines]) {
        if (line !== undefined) socket.write(line)
        for (let reply = ""; !/^\d{3} .*\r\n$/m.test(reply);) {
          reply += await new Promise<Buffer>((resolve) => socket.once("data", resolve))
        }
      }
      const calls = idle.mock.contexts.map((own, n) => [own, idle.mock.calls[n]![0]] as const)
      const idleMillis = calls.findLast(([own]) => (own as Socket).remotePort === socket.localPort)?.[1]
      const running = timers.running()
      if (length !== undefined) timers.fire(length)
      else socket.end()
      await closed
      await expect.poll(() => timers.running()).toEqual([])
      return { running, idle: idleMillis }
    } finally {
      socket.destroy()
      timers.restore()
      idle.mockRestore()
    }
  }

  it.each([
    ["before the first command", 0, undefined, { running: [smtpSessionMillis], idle: smtpIdleMillis }],
    ["as a whole", 1, smtpSessionMillis, { running: [smtpSessionMillis], idle: smtpIdleMillis }],
    ["during a message", 4, smtpDataMillis, { running: [smtpDataMillis, smtpSessionMillis], idle: smtpIdleMillis }],
    ["if the client leaves", 4, undefined, { running: [smtpDataMillis, smtpSessionMillis] }],
    ["after a message", 5, undefined, { running: [smtpSessionMillis] }],
  ])("with a mail server end with it, %s", async (_, steps, fired, expected) => {
    const lines = [...upToData(to), mail.at(-1)!].slice(0, steps)
    expect(await limitsAfter(service.smtpPort, lines, fired)).toMatchObject(expected)
  })

  it.each([
    ["before the first command", 0, submissionLoginMillis, { running: [submissionLoginMillis] }],
    ["before the login", 1, undefined, { running: [submissionLoginMillis], idle: submissionLoginMillis }],
    ["after a failed login", 2, submissionLoginMillis, { running: [submissionLoginMillis] }],
    ["after the login", 3, undefined, { running: [submissionSessionMillis], idle: submissionIdleMillis }],
    ["as a whole", 4, submissionSessionMillis, { running: [submissionSessionMillis], idle: submissionIdleMillis }],
    ["during a message", 6, submissionDataMillis, { running: [submissionDataMillis, submissionSessionMillis] }],
    ["if the client leaves", 6, undefined, { running: [submissionDataMillis, submissionSessionMillis] }],
    ["after a message", 7, undefined, { running: [submissionSessionMillis], idle: submissionIdleMillis }],
  ])("with a mail program end with it, %s", async (_, steps, fired, expected) => {
    const lines = [...login, ...mail].slice(0, steps)
    expect(await limitsAfter(service.submissionPort, lines, fired)).toMatchObject(expected)
  })
})
