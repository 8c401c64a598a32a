/** Expectations of mail server operators: replies, limits, load balancers, lists. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { SMTPServerSession } from "smtp-server"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import { Reception } from "@svc/mail-gateway/mail/Reception"
import * as Recipients from "@svc/mail-gateway/mail/Recipients"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import * as Clients from "@svc/mail-gateway/mail/smtp/Clients"
import { LookupFailed, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { converse, upToData } from "../harness/Mail.ts"
import { startService, type OwnService } from "../harness/Service.ts"

/** DNS in which 198.51.100.66 is on a block list, and 127.0.0.1 would be if it were queried. */
const listed = Layer.succeed(Resolver, {
  lookup: (name) =>
    name === "66.100.51.198.list.example"
      ? Effect.succeed(["127.0.0.2"])
      : name === "67.100.51.198.list.example"
        ? Effect.succeed(["127.255.255.254"])
        : Effect.fail(new LookupFailed({ code: "ENOTFOUND" })),
})

let service: OwnService
let session: string
let to: string
let handle: string
beforeAll(async () => {
  service = await startService({
    env: { SVC_PROXY_PROTOCOL_FROM: "127.0.0.0/8", SVC_DNSBL: "list.example", SVC_GREYLIST: "false" },
    parts: { resolver: listed },
  })
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
  to = `${handle}@mail.localhost`
})
afterAll(() => service.stop())

const proxied = (from = "203.0.113.7") => `PROXY TCP4 ${from} 10.0.0.1 12345 25\r\n`
/** A session that starts with the load balancer's header, sent without waiting. */
const behind = (header: string | Buffer, lines: ReadonlyArray<string | Buffer>) =>
  converse(service.smtpPort, lines, header)
const newest = async () => {
  const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages?limit=1`, { token: session })
  return (
    await call(service.base, "GET", `/api/identities/${handle}/messages/${body.messages[0].id}`, { token: session })
  ).body
}
const data = "From: a@example.org\r\nSubject: s\r\n\r\nx\r\n.\r\n"

describe("Behind a load balancer", () => {
  it("the client is the one in the PROXY header, also in trace fields", async () => {
    const replies = await behind(proxied(), [...upToData(to), data, "QUIT\r\n"])
    expect(replies[5]).toMatch(/^250 2\.6\.0 /)
    const received = (await newest()).headers.find(({ name }: { name: string }) => name === "Received")
    expect(received.value).toContain("([203.0.113.7])")
  })
  it("a connection without the header is closed silently", async () => {
    expect(await converse(service.smtpPort, ["EHLO x\r\n"], "EHLO x\r\n")).toEqual([])
  })
  it("a client on a block list is rejected but can reach the operator, and a list that does not respond lists nobody", async () => {
    const rcpt = async (from: string, address: string) =>
      (await behind(proxied(from), ["EHLO x\r\n", "MAIL FROM:<>\r\n", `RCPT TO:<${address}>\r\n`, "QUIT\r\n"]))[3]
    expect(await rcpt("198.51.100.66", to)).toMatch(/^554 5\.7\.1 /)
    expect(await rcpt("198.51.100.66", "postmaster@mail.localhost")).toMatch(/^250 /)
    expect(await rcpt("198.51.100.67", to)).toMatch(/^250 /)
    expect(await rcpt("198.51.100.68", to)).toMatch(/^250 /)
  })
})

describe("Commands", () => {
  const replyTo = async (...commands: ReadonlyArray<string>) =>
    (await behind(proxied("203.0.113.50"), ["EHLO x\r\n", ...commands, "QUIT\r\n"])).at(-2)
  const mail = "MAIL FROM:<a@example.org>\r\n"

  it("get exactly one enhanced code, which matches", async () => {
    expect(await replyTo(mail, "RCPT TO:<someone@elsewhere.example>\r\n")).toMatch(/^550 5\.7\.1 \D/)
    expect(await replyTo(mail, "RCPT TO:<nobodyhasthis@mail.localhost>\r\n")).toMatch(/^550 5\.1\.1 \D/)
    expect(await replyTo("MAIL FROM:<a@example.org> FOO=bar\r\n")).toMatch(/^555 5\.5\.4 \D/)
    expect(await replyTo("MAIL FROM:<a@example.org> RET=HDRS\r\n")).toMatch(/^555 5\.5\.4 \D/)
    expect(await replyTo(mail, `RCPT TO:<${to}> NOTIFY=SUCCESS\r\n`)).toMatch(/^555 5\.5\.4 \D/)
    expect(await replyTo("MAIL FROM:<a@example.org> SIZE=100 BODY=8BITMIME SMTPUTF8\r\n")).toMatch(/^250 2\.1\.0 /)
  })
  it("are ASCII unless SMTPUTF8 is announced, and DATA has no parameters", async () => {
    expect(await replyTo("MAIL FROM:<bücher@example.org>\r\n")).toMatch(/^553 5\.6\.7 \D/)
    expect(await replyTo("MAIL FROM:<a@bücher.example> BODY=8BITMIME\r\n")).toMatch(/^553 5\.6\.7 \D/)
    expect(await replyTo("MAIL FROM:<bücher@bücher.example> smtputf8\r\n")).toMatch(/^250 /)
    expect(await replyTo("MAIL FROM:<a@xn--bcher-kva.example>\r\n")).toMatch(/^250 /)
    expect(await replyTo(mail, `RCPT TO:<${to}>\r\n`, "DATA x\r\n")).toMatch(/^501 5\.5\.4 \D/)
    expect(await replyTo(mail, `RCPT TO:<${to}>\r\n`, "DATA \r\n.\r\n")).toMatch(/^250 /)
  })
  it("reach postmaster without a domain", async () => {
    expect(await replyTo(mail, "RCPT TO:<Postmaster>\r\n")).toMatch(/^250 /)
    const before = await service.query((sql) => sql`select 1 from system_mail`)
    await behind(proxied(), ["EHLO x\r\n", mail, "RCPT TO:<postmaster>\r\n", "DATA\r\n", data, "QUIT\r\n"])
    expect(await service.query((sql) => sql`select 1 from system_mail`)).toHaveLength(before.length + 1)
  })
  it("may quote local parts", async () => {
    const from = '"john \\"q\\" @ : doe"@example.org'
    const commands = ["EHLO x\r\n", `MAIL FROM:<${from}>\r\n`, `RCPT TO:<"${handle}"@mail.localhost>\r\n`, "DATA\r\n"]
    expect((await behind(proxied(), [...commands, data, "QUIT\r\n"]))[5]).toMatch(/^250 /)
    expect((await newest()).headers[0]).toEqual({ name: "Return-Path", value: `<${from}>` })
    expect(await replyTo('MAIL FROM:<"a\x01b"@example.org>\r\n')).toMatch(/^501 /)
    expect(await replyTo('MAIL FROM:<"ab@example.org>\r\n')).toMatch(/^501 /)
  })
  it("after a rejected line ending are not read", async () => {
    const behindIt = `RSET\r\n${mail}RCPT TO:<${to}>\r\nDATA\r\n${data}`
    const replies = await behind(proxied(), [
      ...upToData(to),
      `From: a@example.org\r\n\r\none\ntwo\r\n.\r\n${behindIt}`,
    ])
    expect(replies.slice(5)).toEqual([expect.stringMatching(/^554 5\.6\.0 /)])
  })
})

layer(Layer.empty)("A client that guesses recipients", (it) => {
  const rcpt = Effect.gen(function* () {
    const clients = Clients.make()
    const judge = yield* Recipients.make({ mailDomain: "mail.localhost" }, clients)
    /** Returns the reply to a guess, and its delay in milliseconds. */
    return Effect.fnUntraced(function* (session: SMTPServerSession) {
      const start = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkChild(
        Effect.flip(judge({ address: "guess@mail.localhost", args: false }, session)),
      )
      while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(50)
      return [(yield* Fiber.join(fiber)).responseCode, (yield* Clock.currentTimeMillis) - start] as const
    })
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.mock(Reception, { status: () => Effect.succeed("unknown") }),
        Layer.mock(Bounces, {}),
        Layer.mock(Screening, { isListed: () => Effect.succeed(false) }),
      ),
    ),
  )
  const from = (remoteAddress: string) => ({ remoteAddress }) as SMTPServerSession

  it.effect("is delayed more with every guess, and disconnected in the end", () =>
    Effect.gen(function* () {
      const guess = yield* rcpt
      const session = from("203.0.113.9")
      const answers: Array<readonly [number, number]> = []
      for (let i = 0; i < 20; i++) answers.push(yield* guess(session))
      expect(answers.map(([code]) => code)).toEqual([...Array<number>(19).fill(550), 421])
      expect(answers.slice(0, 3).every(([, millis]) => millis <= 50)).toBe(true)
      for (let i = 4; i < 20; i++) expect(answers[i]![1]).toBeGreaterThan(answers[i - 1]![1])
    }),
  )

  it.effect("is counted across sessions", () =>
    Effect.gen(function* () {
      const guess = yield* rcpt
      const codes: Array<number> = []
      for (let i = 0; i < 100; i++) codes.push((yield* guess(from(`2001:db8::${i.toString(16)}`)))[0])
      expect(codes.indexOf(421)).toBe(99)
      expect((yield* guess(from("2001:db8:1::1")))[0]).toBe(550)
      yield* TestClock.adjust("10 minutes")
      yield* TestClock.adjust(1)
      expect((yield* guess(from("2001:db8::1")))[0]).toBe(550)
    }),
  )
})

describe("A client", () => {
  it("is an IPv6 /64 or an IPv4 address", () => {
    const clients = Clients.make()
    for (let i = 0; i < Clients.limits.atOnce; i++)
      expect(clients.enter(`2001:db8:0:1::${i.toString(16)}`, 0)).toBe(true)
    expect(clients.enter("2001:db8:0:1:ffff::1", 0)).toBe(false)
    expect(clients.enter("2001:db8:0:2::1", 0)).toBe(true)
    expect(clients.enter("203.0.113.1", 0)).toBe(true)
    clients.leave("2001:db8:0:1::0")
    expect(clients.enter("2001:db8:0:1:ffff::1", 0)).toBe(true)
    expect([
      clients.unknown("2001:db8::1", 0),
      clients.unknown("2001:db8::2", 1),
      clients.unknown("2001:db8:1::", 1),
    ]).toEqual([1, 2, 1])
    expect(clients.unknown("2001:db8::1", 3_600_000)).toBe(1)
  })
})

describe("The MTA-STS policy", () => {
  it("names the mail servers and only asks for reports by default", async () => {
    const answer = await fetch(`${service.base}/.well-known/mta-sts.txt`)
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain/)])
    expect(await answer.text()).toBe("version: STSv1\r\nmode: testing\r\nmx: mail.localhost\r\nmax_age: 604800\r\n")
  })
})
