/**
 * A mail transport for actor tests: records outgoing messages and returns the results that the test chooses. The
 * envelope sender identifies the outbox row, so that a test can see that it is the same for every attempt.
 */
import {
  type Carriage,
  EnvelopeSender,
  InsideDelivery,
  MailTransport,
  type Outcome,
  type Transmission,
} from "@svc/cluster/mail/sending/MailTransport"
import { Outbox } from "@svc/cluster/mail/sending/outbox/Outbox"
import { SendingGate } from "@svc/cluster/mail/sending/outbox/SendingGate"
import { Effect, Layer } from "effect"

export type TransportResponses = (transmission: Transmission) => Effect.Effect<ReadonlyArray<Outcome>>

export const reply = (code: number, status: string | null, text: string) => ({
  code,
  status,
  text,
  host: "mx.example.org",
})

const each =
  (outcome: Omit<Outcome, "recipient">): TransportResponses =>
  ({ recipients, mayLeave }) =>
    Effect.map(mayLeave, (may) =>
      recipients.map((recipient): Outcome => ({ recipient, ...(may ? outcome : { state: "held", reply: null }) })),
    )

/** Returns the same outcome for every recipient, unless outgoing mail is stopped. */
export const acceptAll = each({ state: "sent", reply: reply(250, "2.0.0", "Ok: queued") })
export const deferAll = each({ state: "deferred", reply: reply(451, "4.7.1", "Greylisted") })
export const refuseAll = each({ state: "refused", reply: reply(550, "5.1.1", "No such user") })

export const mailDomain = "mail.localhost"

/** Returns a recording transport; `answers` can be replaced at any time. */
export const recordingTransport = (carries: Carriage = { by: "relay" }) => {
  const transmissions: Array<Transmission> = []
  const inside: Array<Transmission> = []
  const answering: { outside: TransportResponses; inside: TransportResponses } = {
    outside: acceptAll,
    inside: acceptAll,
  }
  return {
    /** Messages for the transport, and messages for the own domain. */
    transmissions,
    inside,
    answering,
    layer: Layer.mergeAll(
      Layer.succeed(MailTransport, {
        carries,
        send: (transmission: Transmission) =>
          Effect.suspend(() => {
            transmissions.push(transmission)
            return answering.outside(transmission)
          }),
      }),
      Layer.succeed(InsideDelivery, {
        domain: mailDomain,
        deliver: (transmission: Transmission) =>
          Effect.suspend(() => {
            inside.push(transmission)
            return answering.inside(transmission)
          }),
      }),
      Layer.succeed(EnvelopeSender, { of: ({ outboxId }) => `bounce-${outboxId}@${mailDomain}` }),
    ),
  }
}

export const transportLayer = (transport: ReturnType<typeof recordingTransport>) =>
  Layer.mergeAll(transport.layer, Outbox.layer, SendingGate.layer)
