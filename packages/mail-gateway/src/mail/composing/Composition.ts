/**
 * Letters as the rest of the service has them written, and messages of ours read: small ones at once, others in a thread
 * of their own, so that nothing a caller sends holds the process up. A task that takes the thread too long ends it.
 */
import { Composer, type Letter } from "@svc/cluster/mail/sending/Composer"
import { MessageInvalid, MessageTooLarge } from "@svc/domain/problems/Problem"
import { Effect, Layer } from "effect"
import { parse } from "../ParsedMail.ts"
import { ComposingThread } from "./ComposingThread.ts"
import { write, type Written } from "./Writing.ts"

/** Characters of a letter, or bytes of a message, that are worked on in process. */
const small = 8 * 1024

const weightOf = ({ text, html, attachments, references, to, cc }: Letter) =>
  (text?.length ?? 0) +
  (html?.length ?? 0) * 4 +
  attachments.reduce((sum, { content_base64 }) => sum + content_base64.length, 0) +
  (references.length + to.length + cc.length) * 20

const tooLong = () =>
  new MessageInvalid({
    detail: "The message could not be written in time: it is too intricate.",
    errors: [{ path: "/html", message: "Expected simpler markup" }],
  })

const judged = (written: Written) => {
  switch (written._tag) {
    case "Composed":
      return Effect.succeed(written.composed)
    case "TooLarge":
      return Effect.fail(
        new MessageTooLarge({ detail: `With everything encoded the message has ${written.bytes} bytes.` }),
      )
    case "Faulty":
      return Effect.fail(
        new MessageInvalid({
          detail: `${written.message}.`,
          errors: [{ path: written.path, message: written.message }],
        }),
      )
  }
}

export const layer = Layer.effect(
  Composer,
  Effect.gen(function* () {
    const thread = yield* ComposingThread
    return {
      compose: Effect.fn("Composition.compose")(function* (letter: Letter) {
        const written =
          weightOf(letter) <= small
            ? yield* Effect.promise(() => write(letter))
            : yield* Effect.mapError(thread.write(letter), tooLong)
        return yield* judged(written)
      }),
    }
  }),
).pipe(Layer.provide(ComposingThread.layer))

/** A message of ours as a reader of it sees it. */
export const reading = Effect.map(
  Effect.service(ComposingThread),
  (thread) => (raw: Buffer) =>
    raw.length <= small * 4 ? Effect.sync(() => parse(raw)) : Effect.orDie(thread.read(raw)),
)
