/** Recipients and thread fields of sent mail. The address of an account holder needs no Allowed Recipient. */
import { ask } from "@svc/cluster/actor/Ask"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Writes } from "@svc/cluster/store/Database"
import type { NewMail } from "@svc/domain/mail/Sending"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors } from "../harness/Actors.ts"
import { recordingTransport } from "../harness/Transport.ts"
import { correspondent } from "./Correspondent.ts"

layer(actors({ transport: recordingTransport() }))("sending", (it) => {
  it.effect("allows the account holder's address only once it is verified, and no other account's", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const ada = yield* correspondent("judgeowner", [])
      const other = yield* correspondent("judgeother", [])
      const verify = (org: string) => sql`update org set email_verified_at = now() where id = ${org}`
      const toOwner = ada.send({ to: [`${ada.org_id}@example.org`], text: "Hello." })
      yield* verify(other.org_id)
      expect(yield* Effect.flip(toOwner)).toMatchObject({ code: "recipient_not_allowed" })
      yield* verify(ada.org_id)
      expect((yield* toOwner).status).toBe("queued")
      const toOther = ada.send({ to: [`${other.org_id}@example.org`], text: "Hello." })
      expect(yield* Effect.flip(toOther)).toMatchObject({ code: "recipient_not_allowed" })
    }),
  )

  it.effect("is listed once, also if a bounce suppressed it or it was added before it was verified", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const ada = yield* correspondent("listowner", ["friend@example.org"])
      const own = `${ada.org_id}@example.org`
      yield* sql`update org set email_verified_at = now() where id = ${ada.org_id}`
      yield* sql`
        insert into allowed_recipient (identity_id, address, reason, created_at, suppressed_at, suppression)
        values (${ada.id}, ${own}, 'manual', now(), now(), '5.1.1')`
      const settings = yield* MailSettingsQueries
      const { entries } = yield* settings.recipients(ada.id, { limit: 10, cursor: undefined })
      expect(entries.map(({ address, reason }) => [address, reason]).toSorted()).toEqual(
        [
          [own, "account_owner"],
          ["friend@example.org", "manual"],
        ].toSorted(),
      )
      expect(entries.find(({ address }) => address === own)).toEqual(yield* settings.recipient(ada.id, own))
      // The Identity is newer than the verified address.
      yield* sql`update org set email_verified_at = now() - interval '1 year' where id = ${ada.org_id}`
      expect((yield* settings.recipient(ada.id, own))!.created_at.getTime()).toBeGreaterThan(Date.now() - 3_600_000)
      expect(JSON.stringify(entries.find(({ address }) => address === own))).toContain("5.1.1")
    }),
  )

  it.effect("is refused while it is suppressed, which is lifted for one address at a time", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const ada = yield* correspondent("liftowner", ["one@example.org", "two@example.org"])
      const own = `${ada.org_id}@example.org`
      yield* sql`update org set email_verified_at = now() where id = ${ada.org_id}`
      yield* sql`
        insert into allowed_recipient (identity_id, address, reason, created_at)
        values (${ada.id}, ${own}, 'account_owner', now())`
      yield* sql`update allowed_recipient set suppressed_at = now(), suppression = '5.1.1' where identity_id = ${ada.id}`
      const addresses = [own, "one@example.org", "two@example.org"]
      const refused = Effect.map(Effect.flip(ada.send({ to: addresses, text: "Hello." })), ({ errors = [] }) =>
        errors.map(({ path }) => path),
      )
      expect(yield* refused).toEqual(["/to/0", "/to/1", "/to/2"])
      const lift = (address: string) => ask(ada.actor.LiftSuppression({ org_id: ada.org_id, address }))
      yield* lift("one@example.org")
      expect(yield* refused).toEqual(["/to/0", "/to/2"])
      yield* lift(own)
      expect(yield* refused).toEqual(["/to/2"])
      expect(yield* Effect.flip(lift("one@example.org"))).toMatchObject({ code: "not_found" })
      yield* lift("two@example.org")
      expect((yield* ada.send({ to: addresses, text: "Hello." })).status).toBe("queued")
    }),
  )

  it.effect("goes to each recipient once, as first spelled, and to at most 50 in all", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("recipients", ["one@example.org"])
      const sent = yield* ada.send({ to: ["One@example.org"], cc: ["one@example.org"], text: "Hello." })
      expect(sent.recipients.map(({ address }) => address)).toEqual(["One@example.org"])
      const twice = yield* Effect.flip(ada.send({ to: ["no@example.org"], cc: ["NO@example.org"], text: "Hello." }))
      expect(twice.errors?.map(({ path }) => path)).toEqual(["/to/0"])
      const many = (count: number) => Array.from({ length: count }, (_, n) => `${n}@example.org`)
      const refusal = (count: number) =>
        Effect.flip(ada.send({ to: many(count - 1), bcc: ["x@example.org"], text: "." }))
      expect(yield* refusal(50)).toMatchObject({ code: "recipient_not_allowed" })
      expect(yield* refusal(51)).toMatchObject({ code: "message_invalid", errors: [{ path: "/to" }] })
    }),
  )

  it.effect("has the thread fields that its sender gives, also if it replies to a message", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("threads", ["one@example.org"])
      const messages = yield* MessageQueries
      const to = ["one@example.org"]
      const first = yield* ada.send({ to, in_reply_to: "<a@example.org>", text: "Hello." })
      const reply_to_message = first.id
      const fields = { in_reply_to: "<b@example.org>", references: ["<c@example.org>"] }
      const second = yield* ada.send({ to, reply_to_message, ...fields, text: "Hello." })
      const third = yield* ada.send({ to, reply_to_message, text: "Hello." })
      const read = (id: string) => messages.summary(ada.id, id)
      expect(yield* read(first.id)).toMatchObject({ in_reply_to: "<a@example.org>", references: ["<a@example.org>"] })
      expect(yield* read(second.id)).toMatchObject(fields)
      const derived = { in_reply_to: first.message_id, references: ["<a@example.org>", first.message_id] }
      expect(yield* read(third.id)).toMatchObject(derived)
    }),
  )

  it.effect("requires a recipient, a body, fields that may be set, and a message to reply to all of", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("faults", ["one@example.org"])
      const to = ["one@example.org"]
      const paths = (mail: NewMail) =>
        Effect.map(Effect.flip(ada.send(mail)), ({ errors = [] }) => errors.map(({ path }) => path))
      expect(yield* paths({ to: [], text: "." })).toEqual(["/to"])
      expect(yield* paths({ to, subject: "Hello." })).toEqual(["/text"])
      expect(yield* paths({ to, text: ".", reply_all: true })).toEqual(["/reply_all"])
      expect(yield* paths({ to, text: ".", headers: { Sender: "x" } })).toEqual(["/headers/Sender"])
      // A response lists at most 20 errors.
      expect(yield* paths({ to: Array.from({ length: 21 }, () => "one"), text: "." })).toHaveLength(20)
    }),
  )

  it.effect("has the subject that the sender of a reply gives, and names the source of a refused recipient", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("subjects", ["one@example.org"])
      const messages = yield* MessageQueries
      const to = ["one@example.org"]
      const reply = { reply_to_message: (yield* ada.send({ to, subject: "First", text: "." })).id, text: "." }
      const subjectOf = ({ id }: { readonly id: string }) =>
        Effect.map(messages.summary(ada.id, id), (found) => found?.subject)
      expect(yield* subjectOf(yield* ada.send({ ...reply, subject: "Second" }))).toBe("Second")
      expect(yield* subjectOf(yield* ada.send(reply))).toBe("Re: First")
      yield* ask(ada.actor.DisallowRecipient({ org_id: ada.org_id, address: to[0]! }))
      const refused = (mail: NewMail) => Effect.map(Effect.flip(ada.send(mail)), ({ errors }) => errors?.[0]?.path)
      expect(yield* refused(reply)).toBe("/reply_to_message")
      expect(yield* refused({ ...reply, to })).toBe("/to/0")
    }),
  )

  it.effect("records as Bcc the recipients that the header does not show, in any case of their letters", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("hidden", ["one@example.org", "two@example.org"])
      const messages = yield* MessageQueries
      const raw = `From: ${ada.handle}@mail.localhost\r\nTo: One@example.org\r\n\r\nHello.\r\n`
      for (const sent of [
        yield* ada.submit(raw, ["ONE@example.org", "two@example.org"]),
        yield* ada.send({ to: ["One@example.org"], bcc: ["two@example.org"], text: "." }),
      ]) {
        expect(yield* messages.summary(ada.id, sent.id)).toMatchObject({
          to: [{ address: "One@example.org" }],
          bcc: [{ address: "two@example.org", name: null }],
        })
      }
    }),
  )
})
