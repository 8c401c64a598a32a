/**
 * Letters as the rest of the service has them written, and messages of ours read: small ones at once, others in a thread
 * of their own, so that nothing a caller sends holds the process up. A task that takes the thread too long ends it.
 */
import { Composer, type Letter, type Manuscript } from "@svc/cluster/mail/sending/Composer"
import { MessageInvalid, MessageTooLarge, Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Layer } from "effect"
import { parse } from "../ParsedMail.ts"
import { ComposingThread, type TaskFailed } from "./ComposingThread.ts"
import { type Outcome, rewrite } from "./MessageRewriter.ts"
import { type Fault, write, type Written } from "./MessageWriter.ts"

/** Characters of a letter, or bytes of a message, that are worked on in process. */
const small = 8 * 1024

const weightOf = ({ text, html, attachments, references, to, cc }: Letter) =>
  (text?.length ?? 0) +
  (html?.length ?? 0) * 4 +
  attachments.reduce((sum, { content_base64 }) => sum + content_base64.length, 0) +
  (references.length + to.length + cc.length) * 20

const unmade = ({ busy }: TaskFailed) =>
  busy
    ? new Unavailable({ detail: "Too many messages are being written at once.", retry_after_seconds: 5 })
    : new MessageInvalid({
        detail: "The message could not be written in time: it is too intricate.",
        errors: [{ path: "/html", message: "Expected simpler markup" }],
      })

const refused = (fault: Fault) =>
  fault._tag === "TooLarge"
    ? new MessageTooLarge({ detail: `With everything encoded the message has ${fault.bytes} bytes.` })
    : new MessageInvalid({
        detail: `${fault.message}.`,
        errors: [{ path: fault.path, message: fault.message }],
      })

const composed = (written: Written) =>
  written._tag === "Composed" ? Effect.succeed(written.composed) : Effect.fail(refused(written))

const rewritten = (outcome: Outcome) =>
  outcome._tag === "Rewritten" ? Effect.succeed(outcome.rewritten) : Effect.fail(refused(outcome))

/** Over a thread that is given. */
export const layerWithout = Layer.effect(
  Composer,
  Effect.gen(function* () {
    const thread = yield* ComposingThread
    return {
      compose: Effect.fn("Composition.compose")(function* (letter: Letter) {
        const written =
          weightOf(letter) <= small
            ? yield* Effect.promise(() => write(letter))
            : yield* Effect.mapError(thread.write(letter), unmade)
        return yield* composed(written)
      }),
      rewrite: Effect.fn("Composition.rewrite")(function* (manuscript: Manuscript) {
        const outcome =
          manuscript.raw.length <= small / 2
            ? yield* Effect.promise(() => rewrite(manuscript))
            : yield* Effect.mapError(thread.rewrite(manuscript), unmade)
        return yield* rewritten(outcome)
      }),
    }
  }),
)

export const layer = layerWithout.pipe(Layer.provide(ComposingThread.layer))

/** A message of ours as a reader of it sees it. */
export const reading = Effect.map(
  Effect.service(ComposingThread),
  (thread) => (raw: Buffer) =>
    raw.length <= small * 4 ? Effect.sync(() => parse(raw)) : Effect.orDie(thread.read(raw)),
)
