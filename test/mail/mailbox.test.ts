/** An Identity's actor receiving mail from a gateway. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import { Writes } from "@svc/cluster/store/Database"
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId, IdentityRef } from "@svc/domain/IdentityRef"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

const mailboxBytes = 10_000

const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const { actor, id } = yield* makeIdentity(org_id, handle)
  const receive = (part?: Partial<ReceivedMail>) =>
    Effect.tap(receivedMail(part), (mail) => ask(actor.ReceiveMail(mail)))
  const remove = (message_id: string) => ask(actor.RemoveMessage({ org_id, message_id }))
  const stored = rows(
    (sql) => sql<{ id: string; uid: number }>`select id, uid from message where identity_id = ${id} order by uid`,
  )
  const recipients = Effect.flatMap(MailSettingsQueries, (queries) =>
    queries.recipients(id as IdentityId, { limit: 50 }),
  ).pipe(Effect.map(({ entries }) => entries.filter(({ reason }) => reason !== "account_owner")))
  return { org_id, id, handle, actor, receive, remove, stored, recipients }
})

const verified = { verdict: "verified", spf: "pass", dkim: "pass", dmarc: "pass", domain: "example.org" } as const

layer(actors({ limits: { mailboxBytes } }))("A Mailbox", (it) => {
  it.effect("that is full accepts no more until something was removed, which frees its bytes", () =>
    Effect.gen(function* () {
      const { receive, remove, stored } = yield* makeMailbox("ada")
      const first = yield* receive({ size: 6_000 })
      yield* receive({ size: 4_000 })
      expect(yield* Effect.flip(receive({ size: 1 }))).toMatchObject({ reason: "full" })
      yield* remove(first.message_id)
      expect(yield* Effect.flip(remove(first.message_id))).toMatchObject({ code: "not_found" })
      expect(yield* Effect.flip(receive({ size: 6_001 }))).toMatchObject({ reason: "full" })
      yield* receive({ size: 6_000 })
      // The UID of the removed message is not reused.
      expect((yield* stored).map(({ uid }) => uid)).toEqual([2, 3])
      const contents = yield* rows((sql) => sql`select 1 from message_content where message_id = ${first.message_id}`)
      expect(contents).toEqual([])
    }),
  )

  it.effect("that is 80 % full notifies the account holder, at most once a day", () =>
    Effect.gen(function* () {
      const { org_id, handle, receive, remove } = yield* makeMailbox("nearly")
      const raised = rows(
        (sql) => sql<{ data: unknown }>`
          select data from event where org_id = ${org_id} and type = 'limit.near' order by seq`,
      )
      yield* receive({ size: 7_999 })
      expect(yield* raised).toEqual([])
      const last = yield* receive({ size: 1 })
      const near = { limit: "mailbox_bytes", identity: handle, used: 8_000, quota: mailboxBytes, window: null }
      expect(yield* raised).toEqual([{ data: near }])
      yield* remove(last.message_id)
      // A warning about one Mailbox does not count as one about another Mailbox of the account.
      const other = newHandle("other")
      const { actor } = yield* makeIdentity(org_id, other)
      yield* ask(actor.ReceiveMail(yield* receivedMail({ size: 8_000 })))
      expect(yield* raised).toEqual([{ data: near }, { data: { ...near, identity: other } }])
      yield* receive({ size: 101 })
      yield* TestClock.adjust("23 hours")
      yield* receive({ size: 100 })
      expect(yield* raised).toHaveLength(2)
      yield* TestClock.adjust("61 minutes")
      yield* receive({ size: 100 })
      expect((yield* raised).slice(2)).toEqual([{ data: { ...near, used: 8_300 } }])
    }),
  )

  it.effect("that is stopped is listed to its own account, within the Identities that the caller may use", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const refs: Array<IdentityRef> = []
      for (const stem of ["stopped", "too", "active"]) {
        const handle = newHandle(stem)
        const { id } = yield* makeIdentity(org, handle)
        refs.push({ id: id as IdentityId, handle, canonical: handle, status: "ready" })
      }
      const [one, two, active] = refs
      const sql = yield* Writes
      yield* sql`update mailbox set stopped_at = now() where identity_id in (${one!.id}, ${two!.id})`
      const { stopped } = yield* MailSettingsQueries
      expect(yield* stopped(org, null)).toEqual([one!.handle, two!.handle])
      expect(yield* stopped(org, [two!, active!])).toEqual([two!.handle])
      expect(yield* stopped(yield* makeOrg, null)).toEqual([])
    }),
  )

  it.effect("recognizes a retry of an unanswered transaction for five days", () =>
    Effect.gen(function* () {
      const { handle, receive, stored } = yield* makeMailbox("grace")
      const once = { key: new TextEncoder().encode(handle) }
      yield* receive(once)
      yield* receive(once)
      yield* receive({ key: new TextEncoder().encode(`another ${handle}`) })
      expect(yield* stored).toHaveLength(2)
      yield* TestClock.adjust("4 days")
      yield* receive(once)
      expect(yield* stored).toHaveLength(2)
      yield* TestClock.adjust("1 day")
      yield* receive(once)
      expect(yield* stored).toHaveLength(3)
      // The new message starts another five days.
      yield* receive(once)
      expect(yield* stored).toHaveLength(3)
      // The second and third of these are stored in one statement.
      const twice = { key: new TextEncoder().encode(`twice ${handle}`) }
      yield* Effect.all([receive(), receive(twice), receive(twice)], { concurrency: "unbounded" })
      expect(yield* stored).toHaveLength(5)
    }),
  )

  it.effect(
    "loses a message only through a command of its own Identity, and only once if the command is repeated",
    () =>
      Effect.gen(function* () {
        const { org_id, actor, receive, stored } = yield* makeMailbox("joan")
        const other = yield* makeMailbox("rosalind")
        const { message_id } = yield* receive()
        expect(yield* Effect.flip(other.remove(message_id))).toMatchObject({ code: "not_found" })
        const several = other.actor.RemoveMessages({ org_id: other.org_id, message_ids: [message_id] })
        expect(yield* ask(several)).toMatchObject({ removed: [] })
        const change = { org_id: other.org_id, message_ids: [message_id], change: { seen: true } }
        expect(yield* ask(other.actor.ChangeFlags(change))).toMatchObject({ messages: [] })
        expect(yield* stored).toHaveLength(1)
        const options = onBehalfOf(system, yield* makeUuidV7)
        for (const _ of [1, 2]) yield* ask(actor.RemoveMessage({ org_id, message_id }, options))
        expect(yield* stored).toEqual([])
      }),
  )

  it.effect("reports refused mail once an hour, with the number of messages", () =>
    Effect.gen(function* () {
      const { id, actor } = yield* makeMailbox("edsger")
      const turnAway = ask(actor.RefuseMail({ reason: "full", from: "grace@example.org" }))
      for (let n = 0; n < 3; n++) yield* turnAway
      yield* TestClock.adjust("59 minutes")
      yield* turnAway
      yield* TestClock.adjust("1 minute")
      for (let n = 0; n < 2; n++) yield* turnAway
      yield* TestClock.adjust("60 minutes")
      yield* turnAway
      const raised = yield* rows(
        (sql) => sql<{ count: number }>`
          select (data ->> 'count')::int as count from event where identity_id = ${id} and type = 'email.refused' order by seq`,
      )
      expect(raised.map(({ count }) => count)).toEqual([1, 4, 2])
    }),
  )
})

layer(actors())("A sender", (it) => {
  it.effect("becomes an Allowed Recipient for 30 days by a verified message only", () =>
    Effect.gen(function* () {
      const { receive, recipients } = yield* makeMailbox("ada")
      for (const verdict of ["unverified", "failed", "error"] as const) {
        yield* receive({ origin: { ...verified, verdict } })
        expect(yield* recipients, verdict).toEqual([])
      }
      yield* receive({ origin: verified, from: null })
      yield* receive({ origin: verified, envelope_from: "" })
      expect(yield* recipients).toEqual([])
      const day = 86_400_000
      const first = yield* receive({ origin: verified })
      const allowed = { address: "grace@example.org", reason: "inbound", expired: false }
      const until = (mail: ReceivedMail) => new Date(mail.received_at.getTime() + 30 * day)
      expect(yield* recipients).toMatchObject([{ ...allowed, expires_at: until(first) }])
      yield* TestClock.adjust("10 days")
      yield* receive()
      expect(yield* recipients).toMatchObject([{ ...allowed, expires_at: until(first) }])
      const second = yield* receive({ origin: verified })
      expect(yield* recipients).toMatchObject([{ ...allowed, expires_at: until(second) }])
    }),
  )

  it.effect("who was allowed by the account stays allowed without an expiry", () =>
    Effect.gen(function* () {
      const { org_id, actor, receive, recipients } = yield* makeMailbox("grace")
      yield* ask(actor.AllowRecipient({ org_id, address: "grace@example.org" }))
      yield* receive({ origin: verified })
      const alan = { org_id, address: "alan@example.org" }
      for (const command of [actor.AllowRecipient(alan), actor.DisallowRecipient(alan)]) yield* ask(command)
      expect(yield* recipients).toMatchObject([{ reason: "manual", expires_at: null }])
      // Also if the address was a correspondent before, and only for this Identity.
      const other = yield* makeMailbox("alan")
      yield* other.receive({ origin: verified })
      const grace = { org_id: other.org_id, address: "grace@example.org" }
      yield* ask(other.actor.AllowRecipient(grace))
      expect(yield* other.recipients).toMatchObject([{ reason: "manual", expires_at: null }])
      yield* ask(other.actor.DisallowRecipient(grace))
      expect([yield* other.recipients, (yield* recipients).length]).toEqual([[], 1])
    }),
  )
})
