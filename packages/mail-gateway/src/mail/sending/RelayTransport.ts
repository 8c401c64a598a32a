/** Sends mail to other domains through the operator's relay. */
import { MailTransport, type Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { within } from "@svc/cluster/store/Deadline"
import { Effect, Layer } from "effect"
import { Timing } from "../../Timing.ts"
import { Letters } from "./Letters.ts"
import * as Outcomes from "./Outcomes.ts"
import { Relay } from "./Relay.ts"
import { replyOf } from "./smtp/Conversation.ts"

const make = Effect.gen(function* () {
  const relay = yield* Relay
  const letters = yield* Letters

  const attempt = Effect.fnUntraced(
    function* (transmission: Transmission) {
      const letter = yield* letters.of(transmission)
      return Outcomes.ofTransaction(transmission, yield* relay.transact(letter), relay.host)
    },
    (effect, transmission) =>
      effect.pipe(
        Effect.catchTags({
          // The operator must fix a refused login; the mail stays queued.
          Unwelcome: (error) =>
            Effect.as(
              Effect.logWarning("The relay refused the session", {
                stage: error.stage,
                code: error.code,
                text: error.text,
              }),
              Outcomes.deferred(transmission, replyOf(error, relay.host)),
            ),
          Broken: (error) => Effect.succeed(Outcomes.deferred(transmission, replyOf(error, relay.host))),
          Unfit: ({ message }) =>
            Effect.succeed(Outcomes.refused(transmission, { code: null, status: "5.6.0", text: message, host: null })),
          unavailable: () => Effect.succeed(Outcomes.held(transmission)),
        }),
      ),
  )

  return {
    carries: { by: "relay" } as const,
    send: Effect.fn("RelayTransport.send")((transmission: Transmission) =>
      within(attempt(transmission), Timing.sendMillis, () =>
        Effect.succeed(Outcomes.deferred(transmission, Outcomes.withoutReply("The relay timed out", relay.host))),
      ),
    ),
  }
})

export const layer = Layer.effect(MailTransport, make)
