/**
 * The whole path: an Identity sends, the relay receives the signed message, a bounce returns; and bounces that must not
 * count.
 */
import { LookupFailed, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Effect, Layer } from "effect"
import { authenticate } from "mailauth"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { converse } from "../../harness/Mail.ts"
import { eventually } from "../../harness/Service.ts"
import { verify } from "./Dkimpy.ts"
import { startOutbound, writer } from "./Outbound.ts"
import { has } from "../../harness/Programs.ts"

let service: Awaited<ReturnType<typeof startOutbound>>
let ada: Awaited<ReturnType<typeof writer>>

const recipients = ["grace@example.org", "bob@example.org", "eve@other.example"]
/** An Identity whose mail bounces, so that other tests are unaffected. */
const later = "later@example.org"

/** DNS with the service's DKIM keys, which a receiver of its mail sees. */
const zone: Record<string, string> = {}
const publicDns = Layer.succeed(Resolver, {
  lookup: (name) =>
    zone[name] === undefined ? Effect.fail(new LookupFailed({ code: "ENOTFOUND" })) : Effect.succeed([[zone[name]]]),
})

beforeAll(async () => {
  service = await startOutbound({ parts: { resolver: publicDns } })
  ada = await writer(service.base, [...recipients, later, "shared@example.org", "beside@example.org"])
})
afterAll(() => service.stop())

/** Sends a message and returns what the relay received. */
const sent = async (to: ReadonlyArray<string>, subject: string) => {
  const answer = await ada.send({ to, subject, text: "hello\n.\n..\n" })
  expect(answer.status).toBe(202)
  const arrived = await eventually(
    async () => service.relay.taken.filter(({ raw }) => raw.includes(`Subject: ${subject}`)),
    (found) => found.flatMap((one) => one.to).length === to.length,
  )
  return { id: answer.body.id ?? answer.body.message_id, arrived }
}

const report = (recipient: string, action = "failed", status = "5.1.1") =>
  [
    "From: MAILER-DAEMON@mx.example.org",
    "Subject: Undelivered Mail Returned to Sender",
    "Auto-Submitted: auto-replied",
    "MIME-Version: 1.0",
    "Content-Type: multipart/report; report-type=delivery-status; boundary=b",
    "",
    "--b",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; mx.example.org",
    "",
    `Final-Recipient: rfc822; ${recipient}`,
    `Action: ${action}`,
    `Status: ${status}`,
    "Diagnostic-Code: smtp; 550 5.1.1 no such user",
    "",
    "--b--",
    "",
  ].join("\r\n")

/** Delivers a bounce as a mail server. Returns the last reply before QUIT. */
const deliver = async (to: string, letter: string, sender = "", client?: string) => {
  const deliver = [
    "EHLO mx.example.org\r\n",
    `MAIL FROM:<${sender}>\r\n`,
    `RCPT TO:<${to}>\r\n`,
    "DATA\r\n",
    `${letter}.\r\n`,
    "QUIT\r\n",
  ]
  return (await converse(service.smtpPort, deliver, undefined, client)).slice(3)
}

/** Connects to a bounce address repeatedly without sending a message. */
const names = (to: string, times: number) =>
  converse(service.smtpPort, [
    "EHLO mx.example.org\r\n",
    ...Array.from({ length: times }, () => ["MAIL FROM:<>\r\n", `RCPT TO:<${to}>\r\n`, "RSET\r\n"]).flat(),
    "QUIT\r\n",
  ])

const bounced = () => ada.events("email.bounced")

describe("Mail of an Identity", () => {
  it("reaches the relay signed by both published keys, with an unforgeable return path", async () => {
    const { arrived } = await sent(["grace@example.org"], "signed")
    const [one] = arrived
    expect(one!.from).toMatch(/^bounce\+[a-z2-7]{45}@mail\.localhost$/)
    expect(one!.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m)
    const keys = await service.query(
      (sql) => sql<{ name: string; record: string }>`
        select selector || '._domainkey.' || domain as name,
               'v=DKIM1; k=' || split_part(algorithm, '-', 1) || '; p=' || public_key as record from dkim_key`,
    )
    Object.assign(zone, Object.fromEntries(keys.map(({ name, record }) => [name, record])))
    const { dkim } = await authenticate(Buffer.from(one!.raw, "latin1"), {
      ip: "192.0.2.1",
      helo: "x",
      sender: one!.from,
      disableBimi: true,
      resolver: async (name: string) => {
        if (zone[name] !== undefined) return [[zone[name]]]
        throw Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" })
      },
    })
    expect(dkim.results.map(({ status }) => [status.result, status.aligned])).toEqual([
      ["pass", "mail.localhost"],
      ["pass", "mail.localhost"],
    ])
    if (has("dkimpy")) expect(verify([Buffer.from(one!.raw, "latin1")], zone, 2)).toEqual([[true, true]])
  })

  it("is mail of a verified agent for a receiver who sees the published keys", async () => {
    const { arrived } = await sent(["grace@example.org"], "signed agent")
    const { raw } = arrived[0]!
    const did = `did:web:${encodeURIComponent(new URL(service.base).host)}:%40${ada.handle}`
    const receiver = await writer(service.base, [])
    const received = async (letter: string) => {
      const subject = /^Subject: (.*)\r$/m.exec(letter)![1]
      const stuffed = letter.replace(/^\./gm, "..")
      await deliver(`${receiver.handle}@mail.localhost`, stuffed, "forwarder@elsewhere.example")
      const found = await eventually(
        async () => (await receiver.list()).body.messages.find((one: any) => one.subject === subject),
        (message) => message !== undefined,
      )
      return () => receiver.read(found.id).then(({ body }) => body.origin)
    }
    const origin = await received(raw)
    const { agent } = await eventually(origin, (found) => found.agent !== undefined)
    expect(agent).toEqual({ did, domain: "mail.localhost", checked_at: expect.stringMatching(/Z$/) })
    const [event] = await eventually(
      () => receiver.events("email.agent_verified"),
      (found) => found.length === 1,
    )
    const { id, from } = (await receiver.list()).body.messages[0]
    expect(from.address).toBe(`${ada.handle}@mail.localhost`)
    expect(event!.data).toEqual({ email_id: id, message_id: id, agent, from })
    // The list shows what the message shows.
    expect((await receiver.list()).body.messages[0].origin.agent).toEqual(agent)
    expect((await (await received(raw.replace(/^Agent-Identity: .*\r\n/m, "")))()).agent).toBeUndefined()
  })

  it("is sent once to each domain", async () => {
    const { arrived } = await sent(recipients, "two domains")
    expect(arrived.map(({ to }) => to.toSorted()).toSorted()).toEqual([
      ["bob@example.org", "grace@example.org"],
      ["eve@other.example"],
    ])
    expect(new Set(arrived.map(({ from }) => from)).size).toBe(2)
    expect(new Set(arrived.map(({ raw }) => /^Message-ID: .*$/im.exec(raw)![0])).size).toBe(1)
  })
})

describe("A bounce", () => {
  it("for one recipient is recorded once, suppresses that address, and is stored in no Mailbox", async () => {
    const { arrived } = await sent(["bob@example.org"], "bouncing")
    const before = (await ada.list()).body.messages.length
    for (const _ of [1, 2]) expect((await deliver(arrived[0]!.from, report("bob@example.org"))).at(-2)).toMatch(/^250 /)
    const found = await eventually(bounced, (events) => events.length > 0)
    expect(found).toHaveLength(1)
    expect(found[0]!.data).toMatchObject({ recipient: "bob@example.org", kind: "hard", status: "5.1.1" })
    expect((await ada.list()).body.messages).toHaveLength(before)
    const { allowed_recipients } = (await ada.allowed()).body
    const states = allowed_recipients.map((one: any) => [one.address, one.suppressed !== null])
    expect(Object.fromEntries(states)).toMatchObject({ "bob@example.org": true, "grace@example.org": false })
  })

  // Recipients at the same domain share a bounce address and can all see it.
  it("does not suppress an address if another recipient could have forged it", async () => {
    const people = ["grace@example.org", "shared@example.org"]
    const { id, arrived } = await sent(people, "shared")
    expect((await deliver(arrived[0]!.from, report("shared@example.org"))).at(-2)).toMatch(/^250 /)
    const found = await eventually(bounced, (events) => events.some(({ data }) => data.message_id === id))
    expect(found.filter(({ data }) => data.message_id === id)).toMatchObject([
      { data: { recipient: "shared@example.org", kind: "hard" } },
    ])
    const nameless = "From: MAILER-DAEMON@x.example\r\nSubject: failure notice\r\n\r\nUser unknown. 5.1.1\r\n"
    const all = await sent(["shared@example.org", "beside@example.org"], "nameless")
    expect((await deliver(all.arrived[0]!.from, nameless)).at(-2)).toMatch(/^250 /)
    await eventually(bounced, (events) => events.filter(({ data }) => data.message_id === all.id).length === 2)
    const { allowed_recipients } = (await ada.allowed()).body
    const suppressed = allowed_recipients.filter((one: any) => one.suppressed !== null)
    expect(suppressed.map((one: any) => one.address)).toEqual(["bob@example.org"])
  })

  it("is accepted only from mail servers, at authentic addresses, and in limited number", async () => {
    const { arrived } = await sent(["grace@example.org"], "guarded")
    const { from } = arrived[0]!
    expect((await deliver(from, report("grace@example.org"), "grace@example.org"))[0]).toMatch(/^550 5\.7\.1 /)
    const forged = from.replace(/.@/, (end) => (end.startsWith("a") ? "b@" : "a@"))
    expect((await deliver(forged, report("grace@example.org")))[0]).toMatch(/^550 5\.1\.1 /)
    expect((await deliver("bounce@mail.localhost", report("grace@example.org")))[0]).toMatch(/^550 5\.1\.1 /)
    const replies: Array<string> = []
    for (let i = 0; i < 25; i++) replies.push((await deliver(from, report("grace@example.org", "delayed")))[0]!)
    expect(replies.filter((one) => one.startsWith("250")).length).toBe(20)
    expect(replies.at(-1)).toMatch(/^550 5\.7\.1 /)
    expect((await bounced()).some(({ data }) => data.recipient === "grace@example.org")).toBe(false)
  })

  it("is accepted regardless of what other clients sent to its address", async () => {
    const people = ["shared@example.org", "beside@example.org"]
    const { id, arrived } = await sent(people, "used up")
    const { from } = arrived[0]!
    const about = async () => (await bounced()).filter(({ data }) => data.message_id === id).length
    const named = await names(from, 30)
    expect(named.filter((one) => one.startsWith("550"))).toEqual([])
    for (let i = 0; i < 25; i++) await deliver(from, report("nobody@example.org", "delayed"))
    expect((await deliver(from, report("shared@example.org")))[0]).toMatch(/^550 5\.7\.1 /)
    expect((await deliver(from, report("shared@example.org"), "", "127.0.0.2")).at(-2)).toMatch(/^250 /)
    await eventually(about, (count) => count === 1)
  })

  it("is retried if it could not be recorded, and recorded then", async () => {
    const { arrived } = await sent([later], "told later")
    const about = async () => (await bounced()).filter(({ data }) => data.recipient === later).length
    // Makes the actor's write fail.
    await service.query((sql) => sql`alter table event add constraint held check (type <> 'email.bounced') not valid`)
    expect((await deliver(arrived[0]!.from, report(later))).at(-2)).toMatch(/^451 /)
    expect(await about()).toBe(0)
    await service.query((sql) => sql`alter table event drop constraint held`)
    expect((await deliver(arrived[0]!.from, report(later))).at(-2)).toMatch(/^250 /)
    await eventually(about, (count) => count === 1)
  })

  it("sends no mail and reveals nothing beyond the message's own recipients", async () => {
    const { arrived } = await sent(["grace@example.org", "eve@other.example"], "strangers")
    const allowed = JSON.stringify((await ada.allowed()).body)
    const bounceCount = (await bounced()).length
    const toExample = arrived.find(({ to }) => to.includes("eve@other.example"))!
    // A forged bounce that claims to be verified and allowed, and is about another address.
    const hostile = [
      report("stranger@evil.example").replace(
        "From: MAILER-DAEMON@mx.example.org",
        "From: stranger@evil.example\r\nReply-To: stranger@evil.example",
      ),
      "From: stranger@evil.example\r\nSubject: hello\r\n\r\nPlease write to me.\r\n",
      report("eve@other.example", "delayed"),
    ]
    for (const letter of hostile.slice(1)) expect((await deliver(toExample.from, letter)).at(-2)).toMatch(/^250 /)
    expect((await bounced()).length).toBe(bounceCount)
    const two = await sent(["grace@example.org"], "one more")
    expect((await deliver(two.arrived[0]!.from, hostile[1]!)).at(-2)).toMatch(/^250 /)
    expect(JSON.stringify((await ada.allowed()).body)).toBe(allowed)
    expect(service.relay.taken.filter(({ to }) => to.some((one) => one.includes("evil")))).toEqual([])
    expect((await ada.list()).body.messages.some((one: any) => one.direction === "inbound")).toBe(false)
  })
})
