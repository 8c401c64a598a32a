/**
 * Composes messages and parses the service's own. Small ones are processed in the process, larger ones in a thread, so
 * that no input can block the event loop. A task that exceeds its time limit ends the thread.
 */
import { Composer, type Letter, type SubmittedMessage } from "@svc/cluster/mail/sending/Composer"
import { MessageInvalid, MessageTooLarge, Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Layer } from "effect"
import { parse } from "../ParsedMail.ts"
import { ComposingThread, type TaskFailed } from "./ComposingThread.ts"
import { type Outcome, rewrite } from "./MessageRewriter.ts"
import { type Fault, write, type Written } from "./MessageWriter.ts"

/** The maximum characters of a letter, or bytes of a message, processed without a thread. */
const small = 8 * 1024

const weightOf = ({ text, html, attachments, references, to, cc }: Letter) =>
  (text?.length ?? 0) +
  (html?.length ?? 0) * 4 +
  attachments.reduce((sum, { content_base64 }) => sum + content_base64.length, 0) +
  (references.length + to.length + cc.length) * 20

const unmade = ({ busy }: TaskFailed) =>
  busy
    ? new Unavailable({ detail: "Too many messages are being composed. Try again later.", retry_after_seconds: 5 })
    : new MessageInvalid({
        detail: "The message is too complex to be composed in time.",
        errors: [{ path: "/html", message: "Expected simpler markup" }],
      })

const refused = (fault: Fault) =>
  fault._tag === "TooLarge"
    ? new MessageTooLarge({ detail: `The encoded message has ${fault.bytes} bytes.` })
    : new MessageInvalid({
        detail: `${fault.message}.`,
        errors: [{ path: fault.path, message: fault.message }],
      })

const composed = (written: Written) =>
  written._tag === "Composed" ? Effect.succeed(written.composed) : Effect.fail(refused(written))

const rewritten = (outcome: Outcome) =>
  outcome._tag === "Rewritten" ? Effect.succeed(outcome.rewritten) : Effect.fail(refused(outcome))

/** Uses the given thread. */
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
      rewrite: Effect.fn("Composition.rewrite")(function* (manuscript: SubmittedMessage) {
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

/** Parses a message of the service as a recipient sees it. */
export const reading = Effect.map(
  Effect.service(ComposingThread),
  (thread) => (raw: Buffer) =>
    raw.length <= small * 4 ? Effect.sync(() => parse(raw)) : Effect.orDie(thread.read(raw)),
)
