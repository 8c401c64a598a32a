import { it } from "@effect/vitest"
import { Composer, type Letter } from "@svc/cluster/mail/sending/Composer"
import { ComposingThread } from "@svc/mail-gateway/mail/composing/ComposingThread"
import { layerWithout } from "@svc/mail-gateway/mail/composing/Composition"
import { write } from "@svc/mail-gateway/mail/composing/MessageWriter"
import { Effect, Layer } from "effect"
import { describe, expect } from "vitest"

/** A message that is large enough to be composed in the worker thread. */
const letter = (words: string): Letter => ({
  messageId: "<1@mail.localhost>",
  date: new Date("2026-11-20T12:00:00.000Z"),
  from: { address: "ada@mail.localhost", name: null },
  to: ["grace@example.org"],
  cc: [],
  subject: "Hello",
  text: `${words}\n${"A line of the letter.\n".repeat(1_000)}`,
  html: undefined,
  inReplyTo: null,
  references: [],
  attachments: [],
  headers: {},
  disclosure: "This message was written and sent by an AI agent (ada), not by a person.",
  language: "en",
})

const stuck = ComposingThread.layerWith({ entry: new URL("./StuckComposer.ts", import.meta.url), taskMillis: 8_000 })

describe("a composing thread", () => {
  it.live(
    "rejects only the letter that hangs or crashes it",
    () =>
      Effect.gen(function* () {
        const { compose } = yield* Composer
        const written = (words: string) =>
          compose(letter(words)).pipe(
            Effect.map(({ content }) => content.text?.startsWith(words)),
            Effect.catch((problem) => Effect.succeed(problem._tag)),
          )
        const words = ["first", "end the thread", "next", "loop forever", "after it", "last"]
        const answers = yield* Effect.forEach(words, written, { concurrency: "unbounded" })
        expect(answers).toEqual([true, "message_invalid", true, "message_invalid", true, true])
      }).pipe(Effect.provide(layerWithout.pipe(Layer.provide(stuck)))),
    180_000,
  )
})

describe("a sent message", () => {
  const searched = async (given: Partial<Letter>) => {
    const written = await write({ ...letter("Aardvarks are seldom mentioned."), ...given })
    return written._tag === "Composed" ? written.composed.content.search_text : ""
  }

  it("is indexed once if its HTML was derived from its text", async () => {
    const found = await searched({ text: "Aardvarks are seldom mentioned." })
    expect(found.split("aardvarks")).toHaveLength(2)
    expect(found.split("not by a person")).toHaveLength(2)
  })

  it("is found by words that only its HTML contains", async () => {
    const found = await searched({ html: "<p>Pangolins are, too.</p>" })
    expect(found).toContain("aardvarks")
    expect(found).toContain("pangolins are, too.")
  })

  it("is found by its HTML if it has no text", async () => {
    expect(await searched({ text: undefined, html: "<p>Pangolins alone.</p>" })).toContain("pangolins alone.")
  })
})
