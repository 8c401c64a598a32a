/** A page of messages as the store encodes it in JSON, compared with its values. */
import { ask } from "@svc/cluster/actor/Ask"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { MessageSummary } from "@svc/domain/mail/Message"
import { expect, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { actors } from "../harness/Actors.ts"
import { receivedMail } from "../harness/Mail.ts"
import { correspondent } from "../sending/Correspondent.ts"

const awkward = 'Zwei "Wörter" \\ \u2028 \u0007 </script> 😀 \ud7ff'
const encode = Schema.encodeSync(Schema.toCodecJson(MessageSummary))

layer(actors())("A page of messages", (it) => {
  it.effect("is the same as text and as values, whatever the messages are", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("adapages", ["grace@x.example"])
      yield* ask(ada.actor.ReceiveMail(yield* receivedMail()))
      const from = { name: awkward, address: "grace@x.example" }
      const wordy = { from, subject: awkward, snippet: awkward, tag: "a.b", message_id_header: `<${awkward}@x>` }
      yield* ask(ada.actor.ReceiveMail(yield* receivedMail(wordy)))
      const marked = yield* receivedMail({ from: null, references: ["<a@x>", "<b@x>"], in_reply_to: "<b@x>" })
      yield* ask(ada.actor.ReceiveMail(marked))
      const change = { seen: true, flagged: true, labels: ["one", "two"] }
      yield* ask(ada.actor.ChangeFlags({ org_id: ada.org_id, message_ids: [marked.message_id], change }))
      yield* ada.send({ to: ["grace@x.example"], bcc: ["grace@x.example"], subject: awkward, text: awkward })
      const queries = yield* MessageQueries
      for (const filter of [{}, { query: "zwei" }]) {
        const page = { limit: 20, offset: 0, ...filter }
        const values = yield* queries.list(ada.id as IdentityId, page)
        const text = yield* queries.listText(ada.id as IdentityId, page)
        expect(values.messages.length).toBe("query" in filter ? 1 : 4)
        expect(text.messages.map((message) => JSON.parse(message))).toEqual(values.messages.map((one) => encode(one)))
        expect(text.next_cursor).toBe(values.next_cursor)
      }
    }),
  )

  it.effect("is independent of other pages that are requested concurrently", () =>
    Effect.gen(function* () {
      const [bea, cleo] = [yield* correspondent("beapages", []), yield* correspondent("cleopages", [])]
      for (let n = 0; n < 5; n++) yield* ask(bea.actor.ReceiveMail(yield* receivedMail({ subject: `bea ${n}` })))
      for (let n = 0; n < 3; n++) yield* ask(cleo.actor.ReceiveMail(yield* receivedMail({ subject: `cleo ${n}` })))
      const queries = yield* MessageQueries
      const page = (id: string, limit: number, cursor?: string | null) =>
        Effect.map(
          queries.listText(id as IdentityId, { limit, offset: 0, ...(cursor == null ? {} : { cursor }) }),
          ({ messages, next_cursor }) => ({
            subjects: messages.map((message): unknown => JSON.parse(message).subject),
            next_cursor,
          }),
        )
      const first = yield* page(bea.id, 2)
      expect(first.subjects).toEqual(["bea 4", "bea 3"])
      const nobody = "00000000-0000-7000-8000-000000000000"
      const found = yield* Effect.all(
        [
          page(cleo.id, 20),
          page(bea.id, 200, first.next_cursor),
          page(nobody, 20),
          page(bea.id, 1),
          page(bea.id, 2, first.next_cursor),
          page(cleo.id, 200),
        ],
        { concurrency: "unbounded" },
      )
      expect(found.map(({ subjects }) => subjects)).toEqual([
        ["cleo 2", "cleo 1", "cleo 0"],
        ["bea 2", "bea 1", "bea 0"],
        [],
        ["bea 4"],
        ["bea 2", "bea 1"],
        ["cleo 2", "cleo 1", "cleo 0"],
      ])
      expect(found.map(({ next_cursor }) => next_cursor !== null)).toEqual([false, false, false, true, true, false])
    }),
  )
})
