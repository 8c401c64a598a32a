/** Decisions about mail that waits for approval: who may decide, and when a decision is rejected. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as Approvals from "@svc/cluster/mail/sending/Approvals"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { outboundOf, SendingQueries } from "@svc/cluster/mail/sending/SendingQueries"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { fromPublic, makeUuidV7, toPublic } from "@svc/domain/Ids"
import { listedWhole } from "@svc/domain/mail/Sending"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { actors, waitUntil } from "../harness/Actors.ts"
import { recordingTransport, acceptAll } from "../harness/Transport.ts"
import { correspondent, keyOf } from "./Correspondent.ts"

const transport = recordingTransport()

/** Returns the number of messages that usage counts as sent. */
const counted = Effect.fnUntraced(function* (identityId: string) {
  yield* (yield* UsageCounters).flush
  const [row] = yield* (yield* Writes)<{ n: number }>`
    select coalesce(sum(count), 0)::int as n from usage_hour where identity_id = ${identityId} and kind = 'mail_sent'`
  return row!.n
})

layer(actors({ transport }))("A decision about waiting mail", (it) => {
  it.effect("is made by its own Identity, and an approval only while outgoing mail is active", () =>
    Effect.gen(function* () {
      transport.answering.outside = acceptAll
      const to = "grace@decided.example"
      const [ada, bob] = [yield* correspondent("adadecides", [to]), yield* correspondent("bobdecides", [to])]
      for (const one of [ada, bob]) yield* one.switchMail({ approval: "required" })
      const sent = yield* ada.send({ to: [to], text: "May I?" })
      const message_id = fromPublic("msg_", sent.id)!
      const decide = ({ actor, org_id }: typeof ada, approve: boolean) =>
        ask(actor.DecideMail({ org_id, message_id, approve, reason: "Fine." }, onBehalfOf(keyOf("admin_key"))))
      for (const approve of [true, false]) {
        expect(yield* Effect.flip(decide(bob, approve))).toMatchObject({ code: "not_found" })
      }
      yield* ada.switchMail({ outgoing: "stopped", reason: "Audit" })
      expect(yield* Effect.flip(decide(ada, true))).toMatchObject({
        code: "mail_paused",
        detail: "Outgoing mail of the Identity is stopped: Audit.",
      })
      expect(yield* ada.rows).toMatchObject([{ next: null, attempts: 0 }])
      yield* ada.switchMail({ outgoing: "active" })
      yield* decide(ada, true)
      yield* waitUntil(ada.deliveries, ([row]) => row?.status === "sent")
      const approved = (yield* ada.events).find(({ type }) => type === "email.approved")
      expect(approved!.data).toMatchObject({ message_id: sent.id, by: "admin_key" })
      const sql = yield* Reads
      expect((yield* outboundOf(sql, ada.id, message_id))!.approval).toMatchObject({
        decided_by: "admin_key",
        reason: "Fine.",
      })
      expect(yield* outboundOf(sql, bob.id, message_id)).toBeUndefined()
    }),
  )

  it.effect("is made before the message expires, which happens after its time also without a decision", () =>
    Effect.gen(function* () {
      const to = "grace@late.example"
      const ada = yield* correspondent("adaexpires", [to])
      yield* ada.switchMail({ approval: "required" })
      const sent = yield* ada.send({ to: [to], text: "May I?" })
      const sql = yield* Writes
      const at = new Date(yield* Clock.currentTimeMillis)
      const lapse = (time: Date) => sql`update outgoing set lapses_at = ${time} where identity_id = ${ada.id}`
      const overdue = (late: Date) => Approvals.source.overdue(sql, late, 10)
      const decide = ask(
        ada.actor.DecideMail(
          { org_id: ada.org_id, message_id: fromPublic("msg_", sent.id)!, approve: true, reason: null },
          onBehalfOf(keyOf("session")),
        ),
      )
      yield* lapse(at)
      expect(yield* overdue(new Date(at.getTime() - 1))).toEqual([])
      expect(yield* overdue(at)).toEqual([ada.handle])
      const status = (status: string) => sql`update identity set status = ${status} where id = ${ada.id}`
      yield* status("deleting")
      expect(yield* overdue(at)).toEqual([])
      yield* status("ready")
      expect(yield* Effect.flip(decide)).toMatchObject({
        code: "conflict",
        detail: "The message expired before anybody decided on it.",
      })
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(ada.events, (found) => found.some(({ type }) => type === "email.approval_refused"))
      expect((yield* ada.events).map(({ data }) => data)).toMatchObject([
        { message_id: sent.id },
        { message_id: sent.id, by: "system", reason: "expired" },
      ])
      expect(yield* overdue(at)).toEqual([])
      expect(yield* Effect.flip(decide)).toMatchObject({ detail: "The message is not waiting for approval." })
      expect(yield* ada.rows).toMatchObject([{ next: null, attempts: 0 }])
    }),
  )

  it.effect("concerns one message, as does the expiry of another one", () =>
    Effect.gen(function* () {
      const to = "grace@others.example"
      const ada = yield* correspondent("adaothers", [to])
      yield* ada.switchMail({ approval: "required" })
      const ids: Array<string> = []
      for (const text of ["Approved.", "Refused.", "Expired.", "Waiting."]) {
        const { id } = yield* ada.send({ to: [to], text })
        ids.push(fromPublic("msg_", id)!)
      }
      expect(yield* counted(ada.id)).toBe(0)
      const decide = (message_id: string, approve: boolean) =>
        ask(
          ada.actor.DecideMail({ org_id: ada.org_id, message_id, approve, reason: null }, onBehalfOf(keyOf("session"))),
        )
      const other = { org_id: ada.org_id, message_id: ids[0]!, approve: true, reason: null, content_sha256: "00" }
      const refused = yield* Effect.flip(ask(ada.actor.DecideMail(other, onBehalfOf(keyOf("session")))))
      expect(refused).toMatchObject({ code: "conflict" })
      yield* decide(ids[0]!, true)
      yield* decide(ids[1]!, false)
      expect(yield* counted(ada.id)).toBe(1)
      yield* ada.switchMail({ approval: "none" })
      yield* ada.send({ to: [to], text: "Needs no approval." })
      expect(yield* counted(ada.id)).toBe(2)
      const sql = yield* Writes
      const waiting = Effect.map(
        sql<{ id: string }>`
          select message_id as id from outgoing
          where identity_id = ${ada.id} and status = 'awaiting_approval'`,
        (found) => found.map(({ id }) => id).toSorted(),
      )
      expect(yield* waiting).toEqual(ids.slice(2).toSorted())
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* sql`update outgoing set lapses_at = ${at} where message_id = any(${ids.slice(0, 3)}::uuid[])`
      yield* sql`update outgoing set lapses_at = lapses_at - interval '1 minute' where message_id = ${ids[0]!}`
      const { next } = yield* Effect.provide(Approvals.ApprovalExpiry, Approvals.ApprovalExpiry.layer)
      expect(yield* next(ada.id)).toEqual(at)
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(waiting, (left) => left.length < 2, 0)
      expect(yield* waiting).toEqual(ids.slice(3))
      // Decided messages do not expire, nor does any of an Identity that is being deleted.
      yield* sql`update outgoing set lapses_at = ${at} where message_id = ${ids[3]!}`
      yield* sql`update identity set status = 'deleting' where id = ${ada.id}`
      expect(yield* next(ada.id)).toBeNull()
      const none = { write: () => Effect.die("A message expired.") }
      const { dispatch } = yield* Effect.provide(Approvals.source.make(none as never), Approvals.ApprovalExpiry.layer)
      const expire = dispatch({ id: ada.id } as never, Effect.void, Effect.void)
      expect(yield* expire).toBe(false)
      yield* sql`update identity set status = 'ready' where id = ${ada.id}`
      yield* sql`update outgoing set status = 'refused' where message_id = ${ids[3]!}`
      expect(yield* expire).toBe(false)
    }),
  )

  it.effect("is about mail that its own Identity lists in pages, with its hash up to a length", () =>
    Effect.gen(function* () {
      const to = "grace@listed.example"
      const [ada, bob, sql] = [
        yield* correspondent("adalists", [to]),
        yield* correspondent("boblists", []),
        yield* Writes,
      ]
      yield* ada.switchMail({ approval: "required" })
      const [one, two] = [yield* ada.send({ to: [to], text: "One." }), yield* ada.send({ to: [to], text: "Two." })]
      for (const [{ id }, length] of [
        [one, listedWhole],
        [two, listedWhole + 1],
      ] as const)
        yield* sql`
          update message_content set text = ${"x".repeat(length)}, html = null where message_id = ${fromPublic("msg_", id)!}`
      const queries = yield* Effect.provide(SendingQueries, SendingQueries.layer)
      const first = yield* queries.approvals(ada.id, { limit: 1 })
      const cursor = first.next_cursor!
      const second = yield* queries.approvals(ada.id, { limit: 1, cursor })
      const shown = [first, second].flatMap(({ entries }) => entries)
      expect(shown.map(({ id, truncated, content_sha256 }) => [id, truncated, content_sha256 === null])).toEqual([
        [one.id, false, false],
        [two.id, true, true],
      ])
      expect(second.next_cursor).toBeNull()
      const others = [
        queries.approvals(bob.id, { limit: 1, cursor }),
        queries.waiting(bob.id, one.id),
        queries.outbound(bob.id, one.id),
      ]
      const codes = yield* Effect.forEach(others, (call) =>
        Effect.flip(call as Effect.Effect<unknown, { code: string }>),
      )
      expect(codes.map(({ code }) => code)).toEqual(["invalid_cursor", "not_found", "not_found"])
    }),
  )

  it.effect("is not made by a bounce of the message", () =>
    Effect.gen(function* () {
      const to = "grace@waits.example"
      const ada = yield* correspondent("adawaits", [to])
      yield* ada.switchMail({ approval: "required" })
      const sent = yield* ada.send({ to: [to], text: "May I?" })
      const bounce = { recipient: to, outbox_id: null, status: "5.1.1", diagnostic: "unknown", hard: true }
      yield* ask(ada.actor.RecordBounce({ ...bounce, message_id: fromPublic("msg_", sent.id)! }))
      expect(yield* ada.deliveries).toMatchObject([{ status: "queued" }])
      expect((yield* ada.events).map(({ type }) => type)).toEqual(["email.approval_requested"])
    }),
  )

  it.effect("is known to a mail program that submits the message again", () =>
    Effect.gen(function* () {
      const to = "grace@again.example"
      const [ada, bob] = [yield* correspondent("adaagain", [to]), yield* correspondent("bobagain", [to])]
      const raw = `From: x@mail.localhost\r\nTo: ${to}\r\nMessage-ID: <a@b.example>\r\nSubject: Hi\r\n\r\nMay I?\r\n`
      const submit = (one: typeof ada) => one.submit(raw.replace("x@", `${one.handle}@`), [to])
      for (const one of [ada, bob]) yield* one.switchMail({ approval: "required" })
      const sent = yield* submit(ada)
      expect(sent.status).toBe("awaiting_approval")
      expect(yield* submit(ada)).toEqual(sent)
      const decide = (approve: boolean, { actor, org_id }: typeof ada, id: string) =>
        ask(
          actor.DecideMail(
            { org_id, message_id: fromPublic("msg_", id)!, approve, reason: null },
            onBehalfOf(keyOf("session")),
          ),
        )
      yield* decide(false, ada, sent.id)
      expect(yield* Effect.flip(submit(ada))).toMatchObject({
        code: "message_invalid",
        detail: "This message was submitted before and was not approved.",
      })
      const other = yield* submit(bob)
      yield* decide(true, bob, other.id)
      const recipients = [{ address: to, status: "queued" }]
      expect(yield* submit(bob)).toEqual({ ...other, status: "queued", recipients })
      expect([(yield* ada.rows).length, (yield* bob.rows).length]).toEqual([1, 1])
    }),
  )
})

layer(actors({ transport, limits: { mailboxBytes: 3_000 } }))("A command to send", (it) => {
  it.effect("has the same result when it is repeated, whatever has changed since", () =>
    Effect.gen(function* () {
      const to = "grace@repeat.example"
      const ada = yield* correspondent("adarepeats", [to])
      yield* ada.switchMail({ approval: "required" })
      const id = yield* makeUuidV7
      const sent = yield* ada.send({ to: [to], text: "Once." }, { id })
      expect(sent).toMatchObject({ id: toPublic("msg_", id), status: "awaiting_approval" })
      yield* ada.switchMail({ approval: "none", outgoing: "stopped" })
      expect(yield* ada.send({ to: [to], text: "Once." }, { id })).toEqual(sent)
      const refusal = { org_id: ada.org_id, message_id: id, approve: false, reason: null }
      yield* ask(ada.actor.DecideMail(refusal, onBehalfOf(keyOf("session"))))
      expect(yield* ada.send({ to: [to], text: "Once." }, { id })).toEqual(sent)
      expect(yield* Effect.flip(ada.send({ to: [to], text: "Twice." }))).toMatchObject({ code: "mail_paused" })
      expect((yield* ada.deliveries).length).toBe(1)
    }),
  )

  it.effect("is refused if its copy has no room in the Mailbox, and needs a draft that was not changed", () =>
    Effect.gen(function* () {
      const to = "grace@room.example"
      const ada = yield* correspondent("adaroom", [to])
      const gone = yield* Effect.flip(ada.send({ to: [to], text: "Draft." }, { draftVersion: 1 }))
      expect(gone).toMatchObject({ code: "not_found", detail: "The draft does not exist." })
      const id = yield* makeUuidV7
      yield* (yield* Drafts).create(ada.id, id, { text: "A draft." })
      const changed = yield* Effect.flip(ada.send({ to: [to], text: "Draft." }, { id, draftVersion: 2 }))
      expect(changed).toMatchObject({ code: "conflict", agent_hint: "wait" })
      const sql = yield* Writes
      yield* ada.send({ to: [to], text: "Fits." })
      const used = Effect.map(
        sql<{ n: number }>`select bytes_used::int as n from mailbox where identity_id = ${ada.id}`,
        ([row]) => row!.n,
      )
      const size = yield* used
      const fill = (bytes: number) => sql`update mailbox set bytes_used = ${bytes} where identity_id = ${ada.id}`
      yield* fill(3_000 - size + 1)
      expect(yield* Effect.flip(ada.send({ to: [to], text: "Fits." }))).toMatchObject({
        code: "conflict",
        detail: "The Mailbox is full: a copy of the message has no room. Remove messages.",
      })
      yield* fill(3_000 - size)
      expect((yield* ada.send({ to: [to], text: "Fits." })).status).toBe("queued")
      expect(yield* used).toBe(3_000)
      // The first copy that filled four fifths of the Mailbox has warned the account.
      const warned = yield* sql<{ data: unknown }>`
        select data from event where org_id = ${ada.org_id} and type = 'limit.near' and data ->> 'limit' = 'mailbox_bytes'`
      expect(warned).toMatchObject([{ data: { identity: ada.handle, used: 3_000, quota: 3_000 } }])
    }),
  )

  it.effect("queues one delivery for each domain of its recipients, and counts as one message", () =>
    Effect.gen(function* () {
      const to = ["grace@one.example", "alan@two.example", "joan@one.example"]
      const ada = yield* correspondent("adadomains", to)
      yield* ada.send({ to, text: "Hello." })
      expect((yield* ada.rows).map(({ domain }) => domain)).toEqual(["one.example", "two.example"])
      expect((yield* ada.deliveries).map(({ address }) => address)).toEqual(to.toSorted())
      expect(yield* counted(ada.id)).toBe(1)
    }),
  )
})
