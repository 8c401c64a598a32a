import { it } from "@effect/vitest"
import { Composer, type Letter } from "@svc/cluster/mail/sending/Composer"
import { ComposingThread } from "@svc/mail-gateway/mail/composing/ComposingThread"
import { layerWithout } from "@svc/mail-gateway/mail/composing/Composition"
import { write } from "@svc/mail-gateway/mail/composing/MessageWriter"
import { Effect, Fiber, Layer } from "effect"
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
  did: "did:web:mail.example:%40ada",
  disclosure: "This message was written and sent by an AI agent (ada), not by a person.",
  language: "en",
})

const stuck = ComposingThread.layerWith({ entry: new URL("./StuckComposer.ts", import.meta.url), taskMillis: 8_000 })

describe("a composing thread", () => {
  it.live("rejects only the letter that hangs or crashes it", () =>
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
  )

  it.live("has at most 32 letters waiting, only of callers that still wait", () =>
    Effect.gen(function* () {
      const { compose } = yield* Composer
      const begin = (words: string) => Effect.forkChild(compose(letter(words)), { startImmediately: true })
      // One letter is being composed.
      const fibers = yield* Effect.forEach(Array.from({ length: 33 }), () => begin("loop forever"))
      const late = yield* Effect.flip(compose(letter("too late")))
      expect(late).toMatchObject({ _tag: "unavailable", retry_after_seconds: 5 })
      yield* Fiber.interrupt(fibers[7]!)
      expect((yield* begin("in time")).pollUnsafe()).toBeUndefined()
      expect(yield* Effect.flip(compose(letter("too late")))).toMatchObject({ _tag: "unavailable" })
    }).pipe(Effect.provide(layerWithout.pipe(Layer.provide(stuck)))),
  )

  it.live("does not count its own start as the time of its first letter", () =>
    Effect.gen(function* () {
      const { compose } = yield* Composer
      expect((yield* compose(letter("first"))).content.text).toMatch(/^first/)
    }).pipe(Effect.provide(layerWithout.pipe(Layer.provide(ComposingThread.layerWith({ taskMillis: 1 }))))),
  )
})

describe("a letter", () => {
  /** A letter whose text ends the thread in which it is composed. */
  const small = (more: Partial<Letter>): Letter => ({ ...letter(""), text: "end the thread", ...more })
  const kilobytes = (n: number) => "a".repeat(n * 1024)
  const file = (content_base64: string) => ({
    filename: "a.bin",
    content_type: "application/octet-stream",
    content_base64,
    content_id: undefined,
  })
  const many = (count: number) => Array.from({ length: count }, (_, at) => `a${at}@example.org`)
  it.live.each<readonly [string, Partial<Letter>, Partial<Letter>]>([
    ["text", { text: `end the thread ${kilobytes(7)}` }, { text: `end the thread ${kilobytes(8)}` }],
    ["HTML", { html: `<p>${kilobytes(1)}</p>` }, { html: `<p>${kilobytes(2)}</p>` }],
    [
      "files",
      { attachments: [file(kilobytes(4))] } as never,
      { attachments: [file(kilobytes(4)), file(kilobytes(4))] } as never,
    ],
    ["references", { references: many(300) }, { references: many(410) }],
    ["recipients", { to: many(300) }, { to: many(410) }],
    ["copies", { cc: many(300) }, { cc: many(410) }],
  ])("is composed in the thread if it is large: %s", ([, less, more]) =>
    Effect.gen(function* () {
      const { compose } = yield* Composer
      const outcome = (given: Partial<Letter>) =>
        Effect.match(compose(small(given)), { onSuccess: () => "here", onFailure: ({ detail }) => detail })
      expect(yield* outcome(less)).not.toMatch(/too complex/)
      expect(yield* outcome(more)).toMatch(/too complex/)
    }).pipe(Effect.provide(layerWithout.pipe(Layer.provide(stuck)))),
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

  it.each(["en", "de", "fr"] as const)(
    "names the language of its disclosure, %s, in its HTML and its header",
    async (language) => {
      const written = await write({ ...letter("Hello."), text: "Hello.", html: "<p>Hello.</p>", language })
      if (written._tag !== "Composed") throw new Error(written._tag)
      expect(Buffer.from(written.composed.content.html ?? "").toString()).toContain(`<html lang="${language}">`)
      expect(Buffer.from(written.composed.content.raw).toString()).toContain(`\r\nContent-Language: ${language}\r\n`)
    },
  )
})
