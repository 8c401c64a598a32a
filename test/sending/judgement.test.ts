/** Rules for outgoing mail: recipients, limits, format, and errors. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as Approvals from "@svc/cluster/mail/sending/Approvals"
import { Reads } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { makeUuidV7 } from "@svc/domain/Ids"
import { actors, waitUntil } from "../harness/Actors.ts"
import { receivedMail } from "../harness/Mail.ts"
import { recordingTransport } from "../harness/Transport.ts"
import { correspondent, keyOf } from "./Correspondent.ts"

const transport = recordingTransport()

const stored = (identityId: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ n: number }>`
        select count(*)::int as n from message where identity_id = ${identityId} and direction = 'outbound'`,
      ([row]) => row!.n,
    ),
  )

layer(actors({ transport, limits: { mailHourly: 10 } }))("sending", (it) => {
  it.effect("rejects a message if any recipient is not allowed, expired or suppressed, and names each of them", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgeone", ["good@x.example"])
      // A reply to a verified sender is allowed for 30 days.
      const from = { address: "old@x.example", name: null }
      const verified = { verdict: "verified" as const, spf: "pass", dkim: "pass", dmarc: "pass", domain: "x.example" }
      yield* ask(ada.actor.ReceiveMail(yield* receivedMail({ from, origin: verified })))
      expect((yield* ada.send({ to: ["old@x.example"], text: "In time." })).status).toBe("queued")
      yield* TestClock.adjust("30 days")
      const refused = yield* Effect.flip(
        ada.send({
          to: ["good@x.example", "old@x.example"],
          cc: ["stranger@x.example"],
          subject: "Hi",
          text: "Hello.",
        }),
      )
      expect(refused).toMatchObject({ code: "recipient_not_allowed" })
      expect(refused.errors?.map(({ path }) => path)).toEqual(["/to/1", "/cc/0"])
      for (const count of [5, 6]) {
        const to = Array.from({ length: count }, (_, n) => `n${n}@x.example`)
        const { detail } = yield* Effect.flip(ada.send({ to, text: "Hello." }))
        expect(detail.split("; ").length).toBe(count)
        expect(detail.endsWith("; and others.")).toBe(count > 5)
      }
      expect(yield* stored(ada.id)).toBe(1)
      const blocked = (yield* ada.events).filter(({ type }) => type === "email.recipient_blocked").slice(0, 1)
      expect(blocked.map(({ data }) => data)).toEqual([
        {
          subject: "Hi",
          recipients: expect.arrayContaining([
            { address: "old@x.example", reason: "expired" },
            { address: "stranger@x.example", reason: "not_allowed" },
          ]),
        },
      ])
    }),
  )

  it.effect("parses each recipient as exactly one address and reports an invalid one by its path", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgethree", ["b@c.example"])
      const hostile = [
        "b@c.example, evil@x.example",
        "b@c.example <evil@x.example>",
        "evil@x.example (b@c.example)",
        "friends: b@c.example, evil@x.example;",
        '"b@c.example"@x.example',
        '"evil@x.example,"b@c.example',
        "b@c.example\r\nBcc: evil@x.example",
        "b@c.example\0",
        "@x.example:b@c.example",
        "b@[127.0.0.1]",
        "b@127.0.0.1",
        "b@c.example;evil@x.example",
        "b c@c.example",
        "",
        "b@c..example",
        ".b@c.example",
        "b@c.example%00",
        "b@exa\u200bmple.org",
        "b@c.example/evil@x.example",
      ]
      for (const to of hostile) {
        const refused = yield* Effect.flip(ada.send({ to: ["b@c.example", to], text: "Hello." }))
        expect([to, refused]).toMatchObject([to, { code: "message_invalid", errors: [{ path: "/to/1" }] }])
      }
      expect(yield* stored(ada.id)).toBe(0)
      const sent = yield* ada.send({ to: [" B@C.example "], text: "Hello." })
      expect(sent.recipients).toEqual([{ address: "B@c.example", status: "queued" }])
    }),
  )

  it.effect("treats a Unicode domain and its A-labels as the same", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgefour", ["info@xn--bcher-kva.example"])
      const sent = yield* ada.send({ to: ["info@Bücher.example"], text: "Hallo." })
      expect(sent.recipients).toEqual([{ address: "info@xn--bcher-kva.example", status: "queued" }])
    }),
  )

  it.effect("uses the name of the card unless it repeats the Handle or looks like an address", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgenine", ["b@c.example"])
      const patch = (name: string) =>
        ask(ada.actor.PatchCard({ org_id: ada.org_id, patch: { name }, if_version: null }, onBehalfOf(ada.by)))
      const sql = yield* Reads
      const shown = Effect.fnUntraced(function* () {
        const { id } = yield* ada.send({ to: ["b@c.example"], text: "Hello." })
        const sent = () => transport.transmissions.find((one) => one.id === id)
        yield* waitUntil(Effect.sync(sent), (found) => found !== undefined)
        const [kept] = yield* sql<{ from: unknown }>`
          select summary -> 'from' as from from message where identity_id = ${ada.id} order by uid desc limit 1`
        const unfolded = Buffer.from(sent()!.content).toString().replaceAll("\r\n ", " ")
        return [/^From: (.*)\r$/m.exec(unfolded)?.[1], kept?.from]
      })
      const address = `${ada.handle}@mail.localhost`
      expect(yield* shown()).toEqual([address, { address, name: null }])
      yield* patch("Ada, of Ännchen")
      expect(yield* shown()).toEqual([
        expect.stringMatching(new RegExp(`^=\\?UTF-8\\?.*\\?= <${address}>$`)),
        { address, name: "Ada, of Ännchen" },
      ])
      yield* patch('Grace "the" \u202eHopper')
      expect(yield* shown()).toEqual([`"Grace \\"the\\" Hopper" <${address}>`, { address, name: 'Grace "the" Hopper' }])
      yield* patch("ceo@bank.example")
      expect(yield* shown()).toEqual([address, { address, name: null }])
    }),
  )

  it.effect("sends a repeated command once with the same response", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgefive", ["b@c.example"])
      const id = yield* makeUuidV7
      const first = yield* ada.send({ to: ["b@c.example"], text: "Once." }, { id })
      const repeated = yield* ada.send({ to: ["b@c.example"], text: "Once." }, { id })
      expect(repeated).toEqual(first)
      expect(yield* stored(ada.id)).toBe(1)
      yield* waitUntil(ada.rows, ([row]) => row?.next === null)
      const own = transport.transmissions.filter(({ id: sent }) => sent === first.id)
      expect(own.length).toBe(1)
    }),
  )

  it.effect("allows 10 messages per hour, raises limit.near once at four fifths, and reports when to retry", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgesix", ["b@c.example"])
      const near = Effect.flatMap(
        Reads,
        (sql) => sql<{ data: unknown }>`select data from event where org_id = ${ada.org_id} and type = 'limit.near'`,
      )
      for (let n = 0; n < 10; n++) {
        yield* ada.send({ to: ["b@c.example"], text: `Number ${n}.` })
        expect((yield* near).length).toBe(n >= 7 ? 1 : 0)
        // Half a second shows whether the time to wait is rounded up.
        if (n === 0) yield* TestClock.adjust("600500 millis")
      }
      expect((yield* near)[0]!.data).toMatchObject({ limit: "mail_hourly", identity: ada.handle, used: 8, quota: 10 })
      const over = yield* Effect.flip(ada.send({ to: ["b@c.example"], text: "One too many." }))
      expect(over).toMatchObject({ code: "rate_limited" })
      expect(over.retry_after_seconds).toBeLessThanOrEqual(50 * 60)
      expect(over.retry_after_seconds).toBeGreaterThan(49 * 60)
      yield* TestClock.adjust({ seconds: over.retry_after_seconds! })
      expect((yield* ada.send({ to: ["b@c.example"], text: "Again." })).status).toBe("queued")
      expect(yield* Effect.flip(ada.send({ to: ["b@c.example"], text: "And again." }))).toMatchObject({
        code: "rate_limited",
      })
    }),
  )

  it.effect("enforces the hourly limit for concurrent sends", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgeseven", ["b@c.example"])
      const fibers = yield* Effect.forEach(
        Array.from({ length: 25 }, (_, n) => n),
        (n) => Effect.forkChild(Effect.exit(ada.send({ to: ["b@c.example"], text: `Number ${n}.` }))),
      )
      const exits = yield* Effect.forEach(fibers, (fiber) => Fiber.join(fiber))
      expect(exits.filter(({ _tag }) => _tag === "Success").length).toBe(10)
      expect(yield* stored(ada.id)).toBe(10)
    }),
  )

  it.effect("rejects header fields that a sender may not set", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("judgeeight", ["b@c.example"])
      const names = ["From", "AI-Disclosure", "Auto-Submitted", "Bcc", "Content-Type", "X-A:B", "x y", "Received", ""]
      // Header fields from which some relays read additional recipients or content.
      const orders = [
        "X-SMTPAPI",
        "x-smtpapi",
        "X-MC-BccAddress",
        "X-MSYS-API",
        "X-Mailgun-Template-Name",
        "X-MJ-TemplateID",
      ]
      for (const name of [...names, ...orders]) {
        const refused = yield* Effect.flip(
          ada.send({ to: ["b@c.example"], text: "Hello.", headers: { [name]: "value" } }),
        )
        expect([name, refused]).toMatchObject([name, { code: "message_invalid" }])
      }
      const headers = {
        "List-Unsubscribe": "<https://example.org/u>, <mailto:u@example.org>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "X-Campaign": "näher",
      }
      yield* ada.send({ to: ["b@c.example"], text: "Hello.", headers })
      yield* waitUntil(ada.rows, ([row]) => row?.next === null)
      const raw = Buffer.from(transport.transmissions.at(-1)!.content).toString()
      expect(raw).toContain("List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n")
      expect(raw).toMatch(/^X-Campaign: =\?/im)
    }),
  )
})

const approving = recordingTransport()

const approvals = Approvals.ApprovalExpiry.layer.pipe(
  Layer.provideMerge(actors({ transport: approving, limits: { mailHourly: 100 } })),
)

layer(approvals)("approval", (it) => {
  const attempts = (address: string) => approving.transmissions.filter(({ recipients }) => recipients.includes(address))

  it.effect(
    "holds messages sent with the Identity's key until a person approves them, and checks them again then",
    () =>
      Effect.gen(function* () {
        const ada = yield* correspondent("approveone", ["a@one.example"])
        yield* ada.switchMail({ approval: "required" })
        const sent = yield* ada.send({ to: ["a@one.example"], subject: "Offer", text: "We offer." })
        expect(sent.status).toBe("awaiting_approval")
        const message_id = yield* idOf(ada.id)
        yield* ask(ada.actor.Work(undefined, { discard: true }))
        yield* TestClock.adjust("1 day")
        expect(attempts("a@one.example")).toEqual([])
        expect((yield* ada.events).map(({ type }) => type)).toEqual(["email.approval_requested"])

        const approve = ask(ada.actor.DecideMail({ org_id: ada.org_id, message_id, approve: true, reason: null }))
        yield* ask(ada.actor.DisallowRecipient({ org_id: ada.org_id, address: "a@one.example" }))
        expect(yield* Effect.flip(approve)).toMatchObject({ code: "recipient_not_allowed" })
        yield* ask(ada.actor.AllowRecipient({ org_id: ada.org_id, address: "a@one.example" }))
        yield* ada.switchMail({ outgoing: "stopped" })
        expect(yield* Effect.flip(approve)).toMatchObject({ code: "mail_paused" })
        yield* ada.switchMail({ outgoing: "active" })
        yield* approve
        yield* waitUntil(ada.events, (found) => found.some(({ type }) => type === "email.sent"))
        expect(attempts("a@one.example").length).toBe(1)
        expect(yield* Effect.flip(approve)).toMatchObject({ code: "conflict" })
      }),
  )

  it.effect("is not needed for the account holder or for a key that may approve", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("approvetwo", ["a@two.example"])
      yield* ada.switchMail({ approval: "required" })
      expect((yield* ada.send({ to: ["a@two.example"], text: "Mine." }, { by: keyOf("session") })).status).toBe(
        "queued",
      )
      const approver = { ...keyOf("admin_key"), approves: true }
      expect((yield* ada.send({ to: ["a@two.example"], text: "Mine." }, { by: approver })).status).toBe("queued")
      expect((yield* ada.send({ to: ["a@two.example"], text: "Mine." }, { by: keyOf("admin_key") })).status).toBe(
        "awaiting_approval",
      )
    }),
  )

  it.effect("does not send rejected messages and shows the reason", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("approvethree", ["a@three.example"])
      yield* ada.switchMail({ approval: "required" })
      yield* ada.send({ to: ["a@three.example"], text: "No." })
      const message_id = yield* idOf(ada.id)
      yield* ask(ada.actor.DecideMail({ org_id: ada.org_id, message_id, approve: false, reason: "Too early." }))
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* TestClock.adjust("10 days")
      expect(attempts("a@three.example")).toEqual([])
      expect((yield* ada.events).map(({ type, data }) => [type, data["reason"]])).toEqual([
        ["email.approval_requested", undefined],
        ["email.approval_refused", "Too early."],
      ])
    }),
  )

  it.effect("expires after 7 days as rejected with the reason expired", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("approvefour", ["a@four.example"])
      yield* ada.switchMail({ approval: "required" })
      yield* ada.send({ to: ["a@four.example"], text: "Old." })
      // Concurrent queries each get their own result.
      const { next } = yield* Approvals.ApprovalExpiry
      const others = [yield* makeUuidV7, yield* makeUuidV7]
      const due = yield* Effect.forEach([others[0]!, ada.id, others[1]!], next, { concurrency: "unbounded" })
      expect(due).toEqual([null, expect.any(Date), null])
      yield* TestClock.adjust("6 days")
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* TestClock.adjust("23 hours")
      expect((yield* ada.events).map(({ type }) => type)).toEqual(["email.approval_requested"])
      yield* TestClock.adjust("1 hour")
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      const { value: events } = yield* waitUntil(ada.events, (found) => found.length > 1, 0)
      expect(events.map(({ type, data }) => [type, data["reason"]])).toEqual([
        ["email.approval_requested", undefined],
        ["email.approval_refused", "expired"],
      ])
      const message_id = yield* idOf(ada.id)
      const late = ask(ada.actor.DecideMail({ org_id: ada.org_id, message_id, approve: true, reason: null }))
      expect(yield* Effect.flip(late)).toMatchObject({ code: "conflict" })
      expect(attempts("a@four.example")).toEqual([])
    }),
  )

  it.effect("ends at its expiry time even if nothing has processed it", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("approvefive", ["a@five.example"])
      yield* ada.switchMail({ approval: "required" })
      yield* ada.send({ to: ["a@five.example"], text: "Old." })
      const message_id = yield* idOf(ada.id)
      yield* TestClock.adjust("7 days")
      const late = ask(ada.actor.DecideMail({ org_id: ada.org_id, message_id, approve: true, reason: null }))
      expect(yield* Effect.flip(late)).toMatchObject({ code: "conflict" })
      expect(attempts("a@five.example")).toEqual([])
    }),
  )
})

const idOf = (identityId: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ id: string }>`
        select message_id as id from outgoing where identity_id = ${identityId} order by created_at desc limit 1`,
      ([row]) => row!.id,
    ),
  )
