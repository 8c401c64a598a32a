/** The SMTP listener: limits of clients, and the reply to DATA for every outcome of its recipients. */
import { connect, type Socket } from "node:net"
import { Health } from "@svc/cluster/health/Health"
import * as VerdictPool from "@svc/mail-gateway/mail/judging/VerdictPool"
import { MailboxRefused, Reception, ReceptionUnavailable } from "@svc/mail-gateway/mail/Reception"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import * as Clients from "@svc/mail-gateway/mail/smtp/Clients"
import * as Smtp from "@svc/mail-gateway/mail/Smtp"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { Transactions } from "@svc/mail-gateway/mail/Transactions"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Exit, Layer, Logger, References, Scope } from "effect"
import { Timing } from "@svc/mail-gateway/Timing"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { converse, send, upToData } from "../harness/Mail.ts"
import { patience } from "../harness/Eventually.ts"
import { holdTimers } from "../harness/HeldTimers.ts"

const maxBytes = 10_000
/** All actions, in order. */
const done: Array<string> = []
let systemFails = false
/** The Received field of each delivered message. */
const received: Array<string> = []
/** How each session ended, by its log entry. */
const ended: Array<unknown> = []
const logger = Logger.make(({ fiber }) => ended.push(fiber.getRef(References.CurrentLogAnnotations)["ended"]))

/** Delivers by the name of the Mailbox. */
const reception = Layer.mock(Reception, {
  status: () => Effect.succeed("accept"),
  deliver: ({ parsed }, { mailbox }) =>
    Effect.suspend((): Effect.Effect<boolean, MailboxRefused | ReceptionUnavailable> => {
      received.push(parsed.headers.find(({ name }) => name === "Received")!.value)
      done.push(`deliver ${mailbox}`)
      if (mailbox.startsWith("down")) return Effect.fail(new ReceptionUnavailable())
      if (mailbox.startsWith("stored")) return Effect.succeed(true)
      const reason = /^(?:full|gone|new)/.exec(mailbox)![0] as "full" | "gone" | "new"
      return Effect.fail(new MailboxRefused({ reason: reason === "new" ? "not_yet" : reason }))
    }),
  refused: (mailbox, { reason }) => Effect.sync(() => void done.push(`refused ${mailbox} ${reason}`)),
})
const parts = Layer.mergeAll(
  reception,
  Health.layer,
  Layer.mock(SystemMail, {
    store: () =>
      Effect.suspend(() => {
        done.push("system")
        return systemFails ? Effect.fail(new Unavailable({ detail: "down", retry_after_seconds: 1 })) : Effect.void
      }),
  }),
  Layer.mock(Bounces, { judge: () => Effect.succeed("not_ours") }),
  Layer.mock(Screening, { isListed: () => Effect.succeed(false), isTooNew: () => Effect.succeed(false) }),
  Layer.mock(Transactions, {
    within: (_, work) =>
      Effect.as(work, { end: (answered: boolean) => void done.push(answered ? "answered" : "not answered") }),
  }),
  Layer.mock(Resolver, {}),
)

/** Opens a listener until the scope ends, and returns its port. */
const listening = async (scope: Scope.Scope) => {
  const listener = Smtp.layer({
    host: "127.0.0.1",
    port: 0,
    mailDomain: "mail.localhost",
    maxBytes,
    proxies: [],
    tls: undefined,
  }).pipe(Layer.provide([parts, Logger.layer([logger])]))
  const context = await Effect.runPromise(Effect.provideService(Layer.build(listener), Scope.Scope, scope))
  return (await Effect.runPromise(Effect.provide(Effect.service(Smtp.SmtpListener), context))).port
}

const scope = Scope.makeUnsafe()
let port: number
beforeAll(async () => {
  port = await listening(scope)
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** Sends a message and returns the reply to its content, and what happened. */
const sent = async (...to: ReadonlyArray<string>) => {
  done.length = 0
  const replies = await converse(port, [
    "EHLO client.example.org\r\n",
    "MAIL FROM:<>\r\n",
    ...to.map((name) => `RCPT TO:<${name}@mail.localhost>\r\n`),
    "DATA\r\n",
    "From: a@example.org\r\nSubject: x\r\n\r\nx\r\n.\r\n",
    "QUIT\r\n",
  ])
  return { reply: replies.at(-2), done: done.splice(0).sort() }
}

describe("The reply to a message", () => {
  const later = "451 4.3.0 Temporary failure, try again later"
  const full = "452 4.2.2 The mailbox is full"
  const unknown = "550 5.1.1 No such mailbox here"
  it.each([
    [["stored"], "250"],
    [["stored", "stored2"], "250"],
    // With 250 the message would be lost for the full Mailbox. A retry stores no second copy where it is stored.
    [["stored", "full"], full],
    [["gone", "stored"], "250"],
    [["full"], full],
    [["gone"], unknown],
    [["full", "gone"], full],
    [["gone", "full"], full],
    [["down"], later],
    [["new"], later],
    [["stored", "down"], later],
    [["full", "new"], later],
    [["gone", "down"], later],
    [["postmaster"], "250"],
    [["full", "abuse"], full],
    [["gone", "abuse"], "250"],
    [["postmaster", "down"], later],
  ])("to %j is %s", async (to, expected) => {
    const { reply, done } = await sent(...to)
    expect(reply).toMatch(expected === "250" ? /^250 / : expected)
    const mailboxes = to.filter((name) => name !== "postmaster" && name !== "abuse")
    expect(done).toEqual(
      [
        ...(expected === "250" ? ["answered"] : []),
        ...mailboxes.map((name) => `deliver ${name}`),
        ...(mailboxes.length < to.length ? ["system"] : []),
      ].sort(),
    )
  })

  it("is temporary if mail for the operator cannot be stored", async () => {
    systemFails = true
    expect((await sent("stored", "postmaster")).reply).toBe(later)
    systemFails = false
  })

  it.each(["stored", "postmaster"])("to %s is temporary if there are too many messages to judge", async (to) => {
    const limits: { waiting: number } = VerdictPool.limits
    const before = limits.waiting
    limits.waiting = 0
    expect(await sent(to)).toEqual({ reply: later, done: [] })
    limits.waiting = before
  })
})

it("A message has a Received field with the name and address of its client, and its protocol", async () => {
  const fields = async (first: string, from: string) => {
    const to = "RCPT TO:<stored@mail.localhost>\r\n"
    await converse(port, [
      `${first} client.example.org\r\n`,
      from,
      to,
      "DATA\r\n",
      "From: a@example.org\r\n\r\n.\r\n",
      "QUIT\r\n",
    ])
    return received.splice(0)
  }
  received.length = 0
  for (const [first, from, protocol] of [
    ["HELO", "MAIL FROM:<>\r\n", "SMTP"],
    ["EHLO", "MAIL FROM:<>\r\n", "ESMTP"],
    ["EHLO", "MAIL FROM:<> SMTPUTF8\r\n", "UTF8SMTP"],
  ] as const) {
    const expected = `from client.example.org ([127.0.0.1])\tby mail.localhost with ${protocol} id `
    expect(await fields(first, from)).toEqual([expect.stringContaining(expected)])
  }
  await send(port, { from: "a@example.org", to: "stored@mail.localhost", text: "by STARTTLS" })
  expect(received.splice(0)).toEqual([expect.stringContaining(" with ESMTPS id ")])
})

/** A connection that records all replies. */
const opened = (host: string, at = port) => {
  const socket: Socket = connect({ port: at, host: "127.0.0.1", localAddress: host })
  let text = ""
  socket.on("data", (bytes) => (text += bytes.toString())).on("error", () => {})
  return {
    socket,
    until: (pattern: RegExp) => vi.waitUntil(() => pattern.exec(text)?.[0], patience),
    closed: () => vi.waitUntil(() => socket.destroyed, patience).then(() => text),
  }
}

it("A client above its limit of connections gets 421, and is admitted after one of them has ended", async () => {
  const held = Array.from({ length: Clients.limits.atOnce }, () => opened("127.0.0.7"))
  for (const one of held) await one.until(/^220 /)
  const busy = "421 4.7.0 Too many connections, try again in a moment\r\n"
  // The end of a refused connection does not free a place.
  for (const _ of [1, 2]) expect(await opened("127.0.0.7").closed()).toBe(busy)
  const other = opened("127.0.0.8")
  await other.until(/^220 /)
  held[0]!.socket.destroy()
  const admitted = async () => {
    const next = opened("127.0.0.7")
    const code = await next.until(/^(?:220|421)/)
    next.socket.destroy()
    return code
  }
  await vi.waitUntil(async () => (await admitted()) === "220", patience)
  for (const { socket } of [...held, other]) socket.destroy()
})

it("A message that is too large is refused and reported to its Mailboxes, and far above the limit ends the session", async () => {
  const line = `${"x".repeat(98)}\r\n`
  const letter = (bytes: number) => [
    "EHLO x\r\n",
    "MAIL FROM:<a@example.org>\r\n",
    "RCPT TO:<stored@mail.localhost>\r\n",
    "DATA\r\n",
    line.repeat(bytes / line.length),
  ]
  // Up to twice the limit the rest is read.
  for (const bytes of [maxBytes + 100, 2 * maxBytes]) {
    done.length = 0
    const [content, ...commands] = letter(bytes).reverse()
    const replies = await converse(port, [...commands.reverse(), `${content}.\r\n`, "QUIT\r\n"])
    expect(replies.at(-2)).toMatch(/^552 5\.3\.4 /)
    await vi.waitUntil(() => done.length > 0, patience)
    expect(done).toEqual(["refused stored size"])
  }
  ended.length = 0
  const client = opened("127.0.0.1")
  await client.until(/^220 /)
  for (const line of letter(2 * maxBytes + 100)) client.socket.write(line)
  expect(await client.closed()).not.toContain("552")
  await vi.waitUntil(() => ended.includes("too_large"), patience)
})

it("The time limit of a message ends when the message is discarded", async () => {
  const timers = holdTimers("mail-gateway", Timing.smtpDataMillis)
  const client = opened("127.0.0.1")
  await client.until(/^220 /)
  const [ehlo, from, to] = upToData("stored@mail.localhost")
  client.socket.write(`${ehlo}${from}${to}BDAT 1\r\nx`)
  await client.until(/1 bytes received/)
  expect(timers.running()).toContain(Timing.smtpDataMillis)
  client.socket.write("RSET\r\n")
  await vi.waitUntil(() => !timers.running().includes(Timing.smtpDataMillis), patience)
  client.socket.destroy()
  timers.restore()
})

it("A session that the shutdown ends is logged as such, and no other begins", async () => {
  const own = Scope.makeUnsafe()
  const ownPort = await listening(own)
  const client = opened("127.0.0.6", ownPort)
  await client.until(/^220 /)
  ended.length = 0
  const timers = holdTimers("smtp-server", Timing.smtpCloseMillis)
  const closed = Effect.runPromise(Scope.close(own, Exit.void))
  await vi.waitUntil(() => timers.running().includes(Timing.smtpCloseMillis), patience)
  timers.fire(Timing.smtpCloseMillis)
  timers.restore()
  await closed
  expect(ended).toEqual(["shutdown"])
  expect(await client.closed()).toContain("421 ")
  await expect(converse(ownPort, [])).rejects.toThrow("ECONNREFUSED")
})
