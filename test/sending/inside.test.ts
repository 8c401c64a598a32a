/** Delivery between Identities for every state of the receiving Mailbox: sent, deferred or rejected. */
import { createHash } from "node:crypto"
import { InsideDelivery } from "@svc/cluster/mail/sending/MailTransport"
import { type IncomingMail, MailboxRefused, Reception, ReceptionUnavailable } from "@svc/mail-gateway/mail/Reception"
import * as InternalDelivery from "@svc/mail-gateway/mail/sending/InternalDelivery"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import type { Recipient } from "@svc/mail-gateway/mail/RecipientAddress"
import { type Context, Effect, Layer, ManagedRuntime } from "effect"
import { afterAll, expect, it } from "vitest"
import { addresses } from "../harness/Stores.ts"

type Status = "accept" | "unknown" | "not_yet" | "full"
const now: {
  status: Effect.Effect<Status, ReceptionUnavailable>
  deliver: Effect.Effect<void, MailboxRefused | ReceptionUnavailable>
} = { status: Effect.succeed("accept"), deliver: Effect.void }
const delivered: Array<Recipient | "operator"> = []
let mail: IncomingMail | undefined
const stub = <I, S>(tag: Context.Service<I, S>, service: object) => Layer.succeed(tag, service as S)
const runtime = ManagedRuntime.make(
  InternalDelivery.layer({ mailDomain: "mail.localhost" }).pipe(
    Layer.provide([
      addresses,
      stub(Reception, {
        status: () => Effect.suspend(() => now.status),
        deliver: (brought: IncomingMail, recipient: Recipient, isPermitted: () => boolean) =>
          Effect.suspend(() => {
            mail = brought
            delivered.push(recipient)
            return isPermitted() ? Effect.as(now.deliver, true) : Effect.succeed(false)
          }),
      }),
      stub(SystemMail, {
        store: () =>
          Effect.suspend(() => {
            delivered.push("operator")
            return now.deliver
          }),
      }),
    ]),
  ),
)
afterAll(() => runtime.dispose())

let content = Buffer.from("Subject: x\r\n\r\nx\r\n")

const outcomes = (set: Partial<typeof now>, recipients: ReadonlyArray<string>, may = true, isPermitted = may) => {
  Object.assign(now, { status: Effect.succeed("accept"), deliver: Effect.void }, set)
  return runtime.runPromise(
    Effect.flatMap(InsideDelivery, ({ deliver }) =>
      deliver({
        id: "msg_x",
        envelopeFrom: "ada@mail.localhost",
        recipients,
        domain: "mail.localhost",
        content,
        mayLeave: Effect.succeed(may),
        isPermitted: () => isPermitted,
      } as never),
    ),
  )
}
const outcome = async (set: Partial<typeof now>, recipient = "grace@mail.localhost", may = true, isPermitted = may) => {
  const [found] = await outcomes(set, [recipient], may, isPermitted)
  return `${found!.state} ${found!.reply?.code ?? "-"} ${found!.reply?.status ?? "-"}`
}
const status = (one: Status) => ({ status: Effect.succeed(one) })
const refused = (reason: "full" | "gone" | "not_yet") => ({ deliver: Effect.fail(new MailboxRefused({ reason })) })
const unavailable = Effect.fail(new ReceptionUnavailable())

it("internal mail is stored, deferred for temporary failures, and rejected if the Mailbox does not exist", async () => {
  expect(await outcome({})).toBe("sent 250 2.6.0")
  expect(await outcome(status("full"))).toBe("deferred 451 4.2.2")
  expect(await outcome(status("not_yet"))).toBe("deferred 451 4.2.1")
  expect(await outcome(status("unknown"))).toBe("refused 550 5.1.1")
  expect(await outcome({ status: unavailable })).toBe("deferred 451 4.3.0")
  expect(await outcome(refused("full"))).toBe("deferred 451 4.2.2")
  expect(await outcome(refused("not_yet"))).toBe("deferred 451 4.2.1")
  expect(await outcome(refused("gone"))).toBe("refused 550 5.1.1")
  expect(await outcome({ deliver: unavailable })).toBe("deferred 451 4.3.0")
  expect(await outcome({ deliver: Effect.die("broken") })).toBe("deferred 451 4.3.0")
  expect(await outcome({ deliver: unavailable }, "postmaster@mail.localhost")).toBe("deferred 451 4.3.0")
  expect(await outcome({}, "postmaster@mail.localhost")).toBe("sent 250 2.6.0")
  expect(await outcome({}, '"not a mailbox"@mail.localhost')).toBe("refused 550 5.1.1")
  expect(await outcome({}, "grace@mail.localhost", false)).toBe("held - -")
  expect(await outcome({}, "grace@mail.localhost", false, true)).toBe("held - -")
  // The permission expired before the message was handed over.
  expect(await outcome({}, "grace@mail.localhost", true, false)).toBe("held - -")
  expect(await outcome({}, "postmaster@mail.localhost", true, false)).toBe("held - -")
})

it("internal mail to several tags of a Mailbox is delivered once, and each recipient has its outcome", async () => {
  delivered.length = 0
  const local = ["grace+a", "ada", "postmaster", "Gra-ce+B", "not a mailbox", "grace+a", "grace", "abuse"]
  const recipients = local.map((one) => `${one}@mail.localhost`)
  const found = await outcomes({}, recipients)
  expect(found.map(({ recipient }) => recipient)).toEqual(recipients)
  expect(found.map(({ state }) => state)).toEqual(local.map((one) => (one === "not a mailbox" ? "refused" : "sent")))
  const grace = ["grace+a", "Gra-ce+B", "grace"].map((one, n) => ({
    address: `${one}@mail.localhost`,
    tag: ["a", "b", null][n],
  }))
  expect(delivered).toEqual([
    { mailbox: "grace", addresses: grace },
    { mailbox: "ada", addresses: [{ address: "ada@mail.localhost", tag: null }] },
    "operator",
  ])
})

it("internal mail has trace fields, and the hash of its content without them, so that a repeat is recognized", async () => {
  await outcome({})
  const raw = Buffer.concat(mail!.raw).toString()
  expect(raw).toMatch(
    /^Authentication-Results: mail\.localhost; auth=pass [^\r\n]+\r\nReceived: by mail\.localhost \(inside\) id msg_x; \w{3}, [^\r\n]+ \+0000\r\nSubject: x\r\n\r\nx\r\n$/,
  )
  expect(Buffer.from(mail!.sha256)).toEqual(createHash("sha256").update(content).digest())
  expect(mail).toMatchObject({
    envelopeFrom: "ada@mail.localhost",
    parsed: { subject: "x", text: "x\n" },
    origin: { verdict: "verified", spf: "internal", dkim: "internal", dmarc: "internal", domain: "mail.localhost" },
  })
})

it("internal mail proves its agent only if the agent is its author", async () => {
  const agent = async (from: string, did: string) => {
    content = Buffer.from(`From: ${from}\r\nAgent-Identity: ${did}\r\n\r\nx\r\n`)
    await outcome({})
    return mail!.origin.agent?.did
  }
  const ada = "did:web:localhost%3A8080:%40ada"
  expect(await agent("Ada <ada@mail.localhost>", ada)).toBe(ada)
  expect(await agent("grace@mail.localhost", ada)).toBeUndefined()
  expect(await agent("ada@mail.localhost", "did:web:elsewhere.example:%40ada")).toBeUndefined()
})
