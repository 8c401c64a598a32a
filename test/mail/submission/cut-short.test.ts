/** A submitted message whose gateway dies while it is rewritten. */
import { Composer } from "@svc/cluster/mail/sending/Composer"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import * as Composition from "@svc/mail-gateway/mail/composing/Composition"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer } from "effect"
import { actors } from "../../harness/Actors.ts"
import { rows } from "../../harness/Stores.ts"
import { correspondent } from "../../sending/Correspondent.ts"

layer(Layer.provideMerge(Composition.layer, actors()))("A submitted message", (it) => {
  it.effect("leaves nothing if its gateway dies while rewriting it, and is sent once when retried", () =>
    Effect.gen(function* () {
      const recipients = ["grace@example.org", "alan@example.org"]
      const { id, handle, org_id, by } = yield* correspondent("ada", recipients)
      const subject = { id, handle, canonical: handle, status: "ready" as const, orgId: org_id, by }
      const raw = new TextEncoder().encode(
        [
          `From: ${handle}@mail.localhost`,
          "To: grace@example.org",
          "Subject: once",
          "Message-ID: <1@laptop>",
          "",
          "Hello.",
          "",
        ].join("\r\n"),
      )
      const submission = { subject, raw, recipients }
      const started = Latch.makeUnsafe()
      const composer = yield* Composer
      const stuck = Composer.of({ ...composer, rewrite: () => Effect.andThen(started.open, Effect.never) })
      const dying = Context.get(
        yield* Layer.build(Layer.fresh(Sending.layer).pipe(Layer.provide(Layer.succeed(Composer, stuck)))),
        Sending,
      )
      const handing = yield* Effect.forkChild(dying.submit(submission))
      yield* started.await
      yield* Fiber.interrupt(handing)
      const stored = rows<{ n: number }>(
        (sql) => sql`
          select (select count(*) from message where identity_id = ${id})::int
               + (select count(*) from message_content where identity_id is null)::int as n`,
      )
      expect(yield* stored).toEqual([{ n: 0 }])
      const sending = yield* Sending
      const first = yield* sending.submit(submission)
      // Its 250 was lost, too.
      expect((yield* sending.submit({ ...submission, recipients: recipients.toReversed() })).id).toBe(first.id)
      expect(yield* stored).toEqual([{ n: 1 }])
    }),
  )
})
