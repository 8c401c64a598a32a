/** The reply to a sending server at each step, and whether it is temporary (4xx) or permanent (5xx). */
import { createHash } from "node:crypto"
import { Health } from "@svc/cluster/health/Health"
import {
  type IncomingMail,
  MailboxRefused,
  Reception,
  ReceptionUnavailable,
  type Recipient,
} from "@svc/mail-gateway/mail/Reception"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import * as Outcomes from "@svc/mail-gateway/mail/sending/Outcomes"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import { replies } from "@svc/mail-gateway/mail/smtp/Replies"
import * as Smtp from "@svc/mail-gateway/mail/Smtp"
import * as Refusals from "@svc/mail-gateway/mail/submission/Refusals"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { keyOf, Transactions } from "@svc/mail-gateway/mail/Transactions"
import type { Problem } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Logger, ManagedRuntime, Metric, References } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { converse, upToData } from "../harness/Mail.ts"

type Failing = MailboxRefused | ReceptionUnavailable
const unavailable = new ReceptionUnavailable()
const refused = (reason: "full" | "gone" | "not_yet") => new MailboxRefused({ reason })

const bounce = `bounce+${"a".repeat(45)}@mail.localhost`

/** The current responses of the services behind the listener. */
const now = {
  status: {} as Record<string, "accept" | "unknown" | "not_yet" | "full" | "away">,
  deliver: {} as Record<string, Failing>,
  isListed: false,
  tooNew: "no" as "no" | "yes" | "away",
  system: "stored" as "stored" | "away",
  judge: "take" as "take" | "not_a_server" | "too_many" | "none" | "away",
  record: "done" as "done" | "away",
}
const sound = { ...now }
const unavailableEffect = Effect.fail(unavailable) as never

/** The last message and recipient, the number of keys of its transaction, and what was recorded besides. */
let delivered: { readonly mail: IncomingMail; readonly recipient: Recipient } | undefined
let keyCount = 0
let noted: Array<object> = []

const stub = <I, S>(tag: Context.Service<I, S>, service: object) => Layer.succeed(tag, service as S)
const maxBytes = 2_000
const services = Layer.mergeAll(
  stub(Reception, {
    status: (mailbox: string) =>
      Effect.suspend(() =>
        now.status[mailbox] === "away" ? Effect.fail(unavailable) : Effect.succeed(now.status[mailbox] ?? "accept"),
      ),
    deliver: (mail: IncomingMail, recipient: Recipient) =>
      Effect.suspend(() => {
        delivered = { mail, recipient }
        const failing = now.deliver[recipient.mailbox]
        return failing === undefined ? Effect.void : Effect.fail(failing)
      }),
    refused: (mailbox: string, refusal: object) => Effect.sync(() => void noted.push({ mailbox, ...refusal })),
  }),
  stub(Screening, {
    isListed: () => Effect.sync(() => now.isListed),
    isTooNew: () =>
      Effect.suspend(() => (now.tooNew === "away" ? unavailableEffect : Effect.succeed(now.tooNew === "yes"))),
  }),
  stub(SystemMail, { store: () => Effect.suspend(() => (now.system === "away" ? unavailableEffect : Effect.void)) }),
  stub(Bounces, {
    judge: () => Effect.suspend(() => (now.judge === "away" ? Effect.die("away") : Effect.succeed(now.judge))),
    record: () => Effect.suspend(() => (now.record === "away" ? unavailableEffect : Effect.void)),
    accepted: (addresses: ReadonlyArray<string>) => Effect.sync(() => void noted.push({ addresses })),
  }),
  stub(Transactions, {
    within: (keys: ReadonlyArray<unknown>, work: Effect.Effect<unknown>) => {
      keyCount = keys.length
      return Effect.as(work, { end: () => {} })
    },
  }),
  stub(Resolver, { lookup: () => Effect.succeed([]) }),
  Health.layer,
)
/** Why each session ended, as logged. */
const endings: Array<unknown> = []
const logger = Logger.make(({ fiber }) => endings.push(fiber.getRef(References.CurrentLogAnnotations)["ended"]))
const runtime = ManagedRuntime.make(
  Smtp.layer({ host: "127.0.0.1", port: 0, mailDomain: "mail.localhost", maxBytes, proxies: [], tls: undefined }).pipe(
    Layer.provide([services, Logger.layer([logger])]),
  ),
)
let port: number
beforeAll(async () => {
  ;({ port } = await runtime.runPromise(Effect.service(Smtp.SmtpListener)))
})
afterAll(() => runtime.dispose())

const to = (name: string) => (name.includes("@") ? name : `${name}@mail.localhost`)

/** Returns the reply to RCPT for one recipient. */
const recipient = async (name: string, set: Partial<typeof now> = {}) => {
  Object.assign(now, sound, set)
  return (await converse(port, [...upToData(to(name)).slice(0, 3), "QUIT\r\n"])).at(-2)!
}
/** Returns the reply to the content, for accepted recipients. */
const content = async (
  names: ReadonlyArray<string>,
  set: Partial<typeof now> = {},
  data = "Subject: x\r\n\r\nx\r\n",
) => {
  Object.assign(now, sound, set)
  const commands = upToData(to(names[0]!))
  commands.splice(3, 0, ...names.slice(1).map((name) => `RCPT TO:<${to(name)}>\r\n`))
  return (await converse(port, [...commands, `${data}.\r\n`, "QUIT\r\n"])).at(-2)!
}

it("the reply to RCPT depends on the recipient's state", async () => {
  expect(await recipient("ada")).toMatch(/^250 /)
  expect(await recipient("ada", { status: { ada: "unknown" } })).toMatch(/^550 5\.1\.1 /)
  expect(await recipient("ada", { status: { ada: "not_yet" } })).toMatch(/^450 4\.2\.1 /)
  expect(await recipient("ada", { status: { ada: "full" } })).toMatch(/^452 4\.2\.2 /)
  expect(await recipient("ada", { status: { ada: "away" } })).toMatch(/^451 4\.3\.0 /)
  expect(await recipient("ada@elsewhere.example")).toMatch(/^550 5\.7\.1 /)
  expect(await recipient("ada", { isListed: true })).toMatch(/^554 5\.7\.1 /)
  expect(await recipient("ada", { tooNew: "yes" })).toMatch(/^451 4\.7\.1 /)
  expect(await recipient("ada", { tooNew: "away" })).toMatch(/^451 4\.3\.0 /)
  expect(await recipient("postmaster", { isListed: true })).toMatch(/^250 /)
  expect(await recipient(bounce)).toMatch(/^250 /)
  expect(await recipient(bounce, { judge: "not_a_server" })).toMatch(/^550 5\.7\.1 /)
  expect(await recipient(bounce, { judge: "too_many" })).toMatch(/^550 5\.7\.1 /)
  expect(await recipient(bounce, { judge: "away" })).toMatch(/^451 4\.3\.0 /)
  expect(await recipient("ada> X=1 <", {})).toMatch(/^5\d\d /)
})

it("the reply to the content depends on the outcome in every Mailbox", async () => {
  expect(await content(["ada"])).toMatch(/^250 /)
  expect(await content(["ada"], { deliver: { ada: unavailable } })).toMatch(/^451 4\.3\.0 /)
  expect(await content(["ada"], { deliver: { ada: refused("not_yet") } })).toMatch(/^451 4\.3\.0 /)
  expect(await content(["ada"], { deliver: { ada: refused("full") } })).toMatch(/^452 4\.2\.2 /)
  expect(await content(["ada"], { deliver: { ada: refused("gone") } })).toMatch(/^550 5\.1\.1 /)
  // One reply for all: temporary if a retry could change anything.
  expect(await content(["ada", "bob"], { deliver: { ada: unavailable } })).toMatch(/^451 4\.3\.0 /)
  expect(await content(["ada", "bob"], { deliver: { bob: refused("not_yet") } })).toMatch(/^451 4\.3\.0 /)
  expect(await content(["ada", "bob"], { deliver: { bob: refused("full") } })).toMatch(/^452 4\.2\.2 /)
  expect(await content(["ada", "bob"], { deliver: { ada: refused("gone"), bob: refused("full") } })).toMatch(
    /^452 4\.2\.2 /,
  )
  expect(await content(["ada", "postmaster"], { system: "away" })).toMatch(/^451 4\.3\.0 /)
  expect(await content(["postmaster", "ada"], { deliver: { ada: refused("gone") } })).toMatch(/^250 /)
  expect(await content([bounce], { record: "away" })).toMatch(/^451 4\.3\.0 /)
  expect(await content([bounce])).toMatch(/^250 /)
})

it("a message is delivered with its session and verdict in the trace, and without a forged verdict", async () => {
  const forged = "Authentication-Results: mail.localhost; spf=pass\r\n"
  const data = `${forged}From: a@example.org\r\nSubject: x\r\n\r\nx\r\n`
  const session = [...upToData(to("ada")), `${data}.\r\n`, "QUIT\r\n"]
  for (const [replace, by, protocol] of [
    ["", "", "ESMTP"],
    ["EHLO", "HELO", "SMTP"],
    [">\r\n", "> SMTPUTF8\r\n", "UTF8SMTP"],
  ] as const) {
    await content(["ada"])
    await converse(port, session.with(0, session[0]!.replace(replace, by)).with(1, session[1]!.replace(replace, by)))
    const raw = Buffer.concat(delivered!.mail.raw).toString()
    expect(raw).toMatch(/^Authentication-Results: mail\.localhost;\r\n/)
    expect(raw).toContain(`\r\n\tby mail.localhost with ${protocol} id `)
    expect(raw).toContain(`\r\nReceived: from ${session[0]!.trim().split(" ")[1]} ([127.0.0.1])`)
    expect(raw.endsWith(data.slice(forged.length))).toBe(true)
    expect(raw).not.toContain(forged)
    const { mail, recipient } = delivered!
    expect(mail.parsed.headers.map(({ name }) => name)).toEqual([
      "Authentication-Results",
      "Received",
      "From",
      "Subject",
    ])
    expect(mail.envelopeFrom).toBe("sender@example.org")
    expect(Buffer.from(mail.sha256)).toEqual(createHash("sha256").update(data).digest())
    expect(recipient.key).toEqual(keyOf(mail, recipient))
  }
})

it("a message has a transaction for each Mailbox and for the operator, and none for bounce addresses", async () => {
  noted = []
  delivered = undefined
  await content(["ada", "ada+tag", "bob", "postmaster", "abuse", bounce])
  expect(keyCount).toBe(3)
  expect(delivered).toBeDefined()
  expect(noted).toEqual([{ addresses: [bounce] }])
  delivered = undefined
  await content([bounce, bounce.toUpperCase()])
  expect([keyCount, delivered]).toEqual([0, undefined])
})

it("refusals of a full Mailbox and of an oversized message are recorded with their sender", async () => {
  noted = []
  await recipient("ada", { status: { ada: "full" } })
  await expect.poll(() => noted).toEqual([{ mailbox: "ada", reason: "full", from: "sender@example.org" }])
  noted = []
  await content(["ada", "bob", "postmaster"], {}, `Subject: x\r\n\r\n${"x".repeat(maxBytes)}\r\n`)
  const refusal = { reason: "size", from: "sender@example.org" }
  await expect
    .poll(() => noted)
    .toEqual([
      { mailbox: "ada", ...refusal },
      { mailbox: "bob", ...refusal },
    ])
})

it("flawed content is rejected permanently, and a message of exactly the maximum size is accepted", async () => {
  const head = "Subject: x\r\n\r\n"
  const sized = (bytes: number) => `${head}${"x".repeat(bytes - head.length - 2)}\r\n`
  expect(await content(["ada"], {}, sized(maxBytes))).toMatch(/^250 /)
  expect(await content(["ada"], {}, sized(maxBytes + 1))).toMatch(/^552 5\.3\.4 /)
  // The sender gets the reason up to twice the size, and is disconnected beyond that.
  expect(await content(["ada"], {}, sized(2 * maxBytes - 100))).toMatch(/^552 5\.3\.4 /)
  expect(await content(["ada"], {}, "Subject: x\r\n\r\na\0b\r\n")).toMatch(/^554 5\.6\.0 /)
  // The connection closes with the rejection: what follows may be smuggled content.
  const all = await converse(port, [...upToData(to("ada")), "Subject: x\r\n\r\na\rb\r\n.\r\n", "QUIT\r\n"])
  expect(all.at(-1)).toMatch(/^554 5\.6\.0 /)
  await expect.poll(() => endings.at(-1)).toBe("bare_line_break")
  const endless = await converse(port, [...upToData(to("ada")), sized(3 * maxBytes), "QUIT\r\n"])
  expect(endless.at(-1)).toMatch(/^354 /)
  await expect.poll(() => endings.at(-1)).toBe("too_large")
})

it("replies to content are counted, whether its form or a Mailbox is the reason", async () => {
  const counts = () =>
    ["accepted", "deferred", "refused"].map((outcome) => {
      const found = Metric.snapshotUnsafe(Context.empty()).find(
        ({ id, attributes }) => id === "svc_smtp_messages_total" && attributes?.["outcome"] === outcome,
      )
      return found?.type === "Counter" ? Number(found.state.count) : 0
    })
  const before = counts()
  const head = "Subject: x\r\n\r\n"
  for (const data of ["x\r\n", "a\0b\r\n", "a\nb\r\n", `${"x".repeat(maxBytes)}\r\n`])
    await content(["ada"], {}, head + data)
  await content(["ada"], { deliver: { ada: unavailable } })
  await content(["ada"], { deliver: { ada: refused("gone") } })
  expect(counts().map((count, at) => count - before[at]!)).toEqual([1, 1, 4])
})

it("every retryable reply has a 4xx code in both forms, and every final one 5xx", () => {
  const temporary = ["later", "tooManyUnknown", "notYet", "full", "busy", "greylisted"]
  for (const [name, { responseCode, message }] of Object.entries(replies)) {
    const first = temporary.includes(name) ? "4" : "5"
    expect(`${String(responseCode)[0]} ${message[0]}`, name).toBe(`${first} ${first}`)
  }
})

it("a mail program gets a temporary code for what passes by waiting, and a permanent one for what a person must fix", () => {
  const replyTo = (problem: object) => {
    const { responseCode, message } = Refusals.of({ detail: "x", ...problem } as unknown as Problem)
    return `${responseCode} ${message.split(" ")[0]}`
  }
  expect([
    replyTo({ _tag: "unavailable" }),
    replyTo({ _tag: "internal" }),
    replyTo({ _tag: "rate_limited", retry_after_seconds: 9 }),
    replyTo({ _tag: "conflict" }),
    replyTo({ _tag: "identity_not_ready", agent_hint: "wait" }),
  ]).toEqual(["451 4.3.0", "451 4.3.0", "452 4.7.1", "452 4.2.2", "450 4.2.1"])
  expect([
    replyTo({ _tag: "identity_not_ready", agent_hint: "stop" }),
    replyTo({ _tag: "recipient_not_allowed" }),
    replyTo({ _tag: "mail_paused" }),
    replyTo({ _tag: "message_invalid", errors: [{ path: "/text", message: "x" }] }),
    replyTo({ _tag: "message_invalid", errors: [{ path: "/from", message: "x" }] }),
    replyTo({ _tag: "message_invalid", errors: [{ path: "/cc", message: "x" }] }),
    replyTo({ _tag: "message_too_large" }),
    replyTo({ _tag: "not_found" }),
  ]).toEqual(["550 5.7.1", "550 5.7.1", "550 5.7.1", "554 5.6.0", "550 5.7.1", "550 5.1.3", "552 5.3.4", "550 5.7.1"])
  const temporary = ["later", "tooManyTries", "tooManySessions", "unavailable", "ended", "busy"]
  for (const [name, { responseCode, message }] of Object.entries(Refusals.replies)) {
    const first = temporary.includes(name) ? "4" : "5"
    expect(`${String(responseCode)[0]} ${message[0]}`, name).toBe(`${first} ${first}`)
  }
})

it("replies to outgoing mail are final from 500 on, except those that ask for authentication or encryption", () => {
  const states = (codes: ReadonlyArray<number | null>) =>
    new Set(codes.map((code) => Outcomes.ofReply("a@x.example", { code, status: null, text: "", host: null }).state))
  expect(states([200, 250, 251, 252, 299])).toEqual(new Set(["sent"]))
  expect(states([null, 220 + 80, 334, 354, 399, 400, 421, 450, 451, 452, 454, 471, 499])).toEqual(new Set(["deferred"]))
  expect(states([530, 534, 535, 538])).toEqual(new Set(["deferred"]))
  expect(states([500, 501, 502, 503, 504, 531, 541, 550, 551, 552, 553, 554, 555, 556, 599])).toEqual(
    new Set(["refused"]),
  )
})
