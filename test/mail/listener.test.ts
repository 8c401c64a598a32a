/** The SMTP listener: limits of clients, and the reply to DATA for every outcome of its recipients. */
import { connect, type Socket } from "node:net"
import { Health } from "@svc/cluster/health/Health"
import { MailboxRefused, Reception, ReceptionUnavailable } from "@svc/mail-gateway/mail/Reception"
import { Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import * as Clients from "@svc/mail-gateway/mail/smtp/Clients"
import * as Smtp from "@svc/mail-gateway/mail/Smtp"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { Transactions } from "@svc/mail-gateway/mail/Transactions"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { converse } from "../harness/Mail.ts"
import { patience } from "../harness/Eventually.ts"

const maxBytes = 10_000
/** All actions, in order. */
const done: Array<string> = []
let systemFails = false

/** Delivers by the name of the Mailbox. */
const reception = Layer.mock(Reception, {
  status: () => Effect.succeed("accept"),
  deliver: (_, { mailbox }) =>
    Effect.suspend((): Effect.Effect<boolean, MailboxRefused | ReceptionUnavailable> => {
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

const scope = Scope.makeUnsafe()
let port: number
beforeAll(async () => {
  const listener = Smtp.layer({ host: "127.0.0.1", port: 0, mailDomain: "mail.localhost", maxBytes }).pipe(
    Layer.provide([parts, Logger.layer([])]),
  )
  const context = await Effect.runPromise(Effect.provideService(Layer.build(listener), Scope.Scope, scope))
  port = (await Effect.runPromise(Effect.provide(Effect.service(Smtp.SmtpListener), context))).port
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
})

/** A connection that records all replies. */
const opened = (host: string) => {
  const socket: Socket = connect({ port, host: "127.0.0.1", localAddress: host })
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
  const admitted = () => opened("127.0.0.7").until(/^(?:220|421)/)
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
  const client = opened("127.0.0.1")
  await client.until(/^220 /)
  for (const line of letter(2 * maxBytes + 100)) client.socket.write(line)
  expect(await client.closed()).not.toContain("552")
})
