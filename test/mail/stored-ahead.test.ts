/** Bodies that a gateway stores before their messages: each one belongs to nobody until its own message claims it. */
import { ask } from "@svc/cluster/actor/Ask"
import { storeAhead } from "@svc/cluster/mail/MessageContent"
import { Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Identities } from "@svc/cluster/actor/Identities"
import { carriedAtMost } from "@svc/cluster/mail/MessageContent"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import * as Composition from "@svc/mail-gateway/mail/composing/Composition"
import { Context, Effect, Layer } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"
import { correspondent } from "../sending/Correspondent.ts"

layer(Layer.provideMerge(Composition.layer, actors()))("A body that was stored before its message", (it) => {
  it.effect("is claimed by that message, whether it was received or appended, and no other body is", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const { actor, id } = yield* makeIdentity(org_id, newHandle("ada"))
      const sql = yield* Writes
      const ahead = Effect.gen(function* () {
        const mail = yield* receivedMail()
        yield* storeAhead(sql, mail.message_id, mail.content!, mail.received_at)
        return { ...mail, content: null }
      })
      const [received, appended, unclaimed] = [yield* ahead, yield* ahead, yield* ahead]
      const owners = rows(
        (sql) => sql<{ id: string; owner: string | null }>`
          select c.message_id as id, c.identity_id as owner
          from message_content c join unnest(${[received, appended, unclaimed].map((mail) => mail.message_id)}::uuid[])
            with ordinality as wanted (id, n) on wanted.id = c.message_id order by n`,
      ).pipe(Effect.map((found) => found.map(({ owner }) => owner)))
      yield* ask(actor.ReceiveMail(received))
      expect(yield* owners).toEqual([id, null, null])
      yield* ask(actor.AppendMail({ org_id, folder: "INBOX", mail: appended, change: {} }))
      expect(yield* owners).toEqual([id, id, null])
      // A late repetition changes only a body that nobody has claimed.
      for (const mail of [received, unclaimed])
        yield* storeAhead(sql, mail.message_id, { ...(yield* receivedMail()).content!, text: "late" }, new Date())
      const texts = rows(
        (sql) => sql<{ id: string }>`
          select message_id as id from message_content
          where text = 'late' and message_id = any(${[received.message_id, unclaimed.message_id]}::uuid[])`,
      )
      expect((yield* texts).map(({ id }) => id)).toEqual([unclaimed.message_id])
    }),
  )

  it.effect("is not sent to the actor again with an outgoing message", () =>
    Effect.gen(function* () {
      const { id, handle, org_id, by } = yield* correspondent("ada", ["grace@example.org"])
      const passed: Array<Content | null> = []
      const identities = {
        of: () => ({
          SendMail: ({ mail }: { readonly mail: { readonly content: Content | null } }) =>
            Effect.sync(() => (passed.push(mail.content), { status: "queued", message_id: null })),
        }),
      } as unknown as Identities["Service"]
      const context = yield* Layer.build(
        Layer.fresh(Sending.layer).pipe(Layer.provide(Layer.succeed(Identities, identities))),
      )
      const subject = { id, handle, canonical: handle, status: "ready" as const, orgId: org_id, by }
      const send = (text: string) =>
        Context.get(context, Sending).submit({
          subject,
          raw: Buffer.from(`From: ${handle}@mail.localhost\r\nTo: grace@example.org\r\nSubject: x\r\n\r\n${text}\r\n`),
          recipients: ["grace@example.org"],
        })
      yield* send("x")
      yield* send("0123456789abcde\r\n".repeat(carriedAtMost / 16))
      expect(passed.map((content) => content === null)).toEqual([false, true])
    }),
  )
})
