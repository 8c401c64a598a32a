/**
 * Delivers mail between Identities of the same deployment. The same rules apply as for mail by SMTP, but its origin
 * is not judged because the service wrote it. Its bytes and envelope leave the mark of a transaction, so that a
 * delivery that is repeated because it was not recorded stores nothing twice.
 */
import {
  InsideDelivery,
  type Outcome,
  type SmtpReply,
  type Transmission,
} from "@svc/cluster/mail/sending/MailTransport"
import { type AddressBook, Addresses, did, email } from "@svc/domain/Addresses"
import type { OriginVerdict, ParsedMail, ProvedAgent } from "@svc/domain/mail/Message"
import { handleOf } from "@svc/domain/proof/DidWeb"
import { rfc3339 } from "@svc/domain/Rfc3339"
import { Clock, Effect, Layer } from "effect"
import { reading } from "../composing/Composition.ts"
import { ComposingThread } from "../composing/ComposingThread.ts"
import { agentField } from "../judging/Signatures.ts"
import * as RecipientAddress from "../RecipientAddress.ts"
import { type IncomingMail, Reception } from "../Reception.ts"
import { isSystemPart } from "../Recipients.ts"
import { joined, sha256 } from "../SlicedWork.ts"
import { SystemMail } from "../SystemMail.ts"
import { operator } from "../Transactions.ts"

type Permission = Pick<Transmission, "mayLeave" | "isPermitted">

const encoder = new TextEncoder()

/** Returns the trace fields (RFC 5321 section 4.4) with the result of the origin (RFC 8601). */
const traceOf = (domain: string, id: string, at: Date) => [
  { name: "Authentication-Results", value: `${domain}; auth=pass (sent by an Identity of this service)` },
  { name: "Received", value: `by ${domain} (inside) id ${id}; ${at.toUTCString().replace("GMT", "+0000")}` },
]

const withTrace = (trace: ReadonlyArray<{ name: string; value: string }>, content: Uint8Array) =>
  joined([encoder.encode(trace.map(({ name, value }) => `${name}: ${value}\r\n`).join("")), content])

/** Returns the Identity that sent the message. The service wrote the field itself; its own notices have none. */
const agentOf = (book: AddressBook, { from, headers }: ParsedMail, at: Date): ProvedAgent | undefined => {
  const named = headers.find(({ name }) => name.toLowerCase() === agentField)?.value
  const handle = named === undefined ? undefined : handleOf(book, named)
  return handle === undefined || from?.address !== email(book, handle)
    ? undefined
    : { did: did(book, handle), domain: null, checked_at: rfc3339(at) }
}

export const layer = (options: { readonly mailDomain: string }) =>
  Layer.effect(
    InsideDelivery,
    Effect.gen(function* () {
      const reception = yield* Reception
      const system = yield* SystemMail
      const read = yield* reading
      const book = yield* Addresses
      const domain = options.mailDomain.toLowerCase()

      const reply = (code: number, status: string, text: string): SmtpReply => ({ code, status, text, host: domain })
      const refused = (text: string): Omit<Outcome, "recipient"> => ({
        state: "refused",
        reply: reply(550, "5.1.1", text),
      })
      const later = (status: string, text: string): Omit<Outcome, "recipient"> => ({
        state: "deferred",
        reply: reply(451, status, text),
      })
      const sent: Omit<Outcome, "recipient"> = { state: "sent", reply: reply(250, "2.6.0", "Stored") }
      const unknown = refused("No such Mailbox")
      const full = later("4.2.2", "The Mailbox is full")
      const notYet = later("4.2.1", "The Mailbox is not ready yet")
      const unreachable = later("4.3.0", "The Mailbox is temporarily unavailable")

      const held: Omit<Outcome, "recipient"> = { state: "held", reply: null }

      /** Returns the Mailbox of an address, or undefined if it has none. */
      const mailboxOf = (address: string) => {
        const { local } = RecipientAddress.split(address)
        return isSystemPart(local) ? operator.mailbox : RecipientAddress.parse(local)?.mailbox
      }

      const handOver = Effect.fnUntraced(function* (
        mail: IncomingMail,
        mailbox: string | undefined,
        addresses: ReadonlyArray<string>,
        permission: Permission,
      ) {
        if (mailbox === operator.mailbox) {
          return yield* Effect.suspend(() =>
            permission.isPermitted() ? Effect.as(system.store(mail), sent) : Effect.succeed(held),
          )
        }
        const [recipient] = RecipientAddress.byMailbox(addresses)
        if (recipient === undefined) return unknown
        const status = yield* reception.status(recipient.mailbox)
        if (status === "unknown") return unknown
        if (status === "not_yet") return notYet
        if (status === "full") return full
        const stored = yield* reception.deliver(mail, recipient, permission.isPermitted)
        return stored ? sent : held
      })

      const attempt = (delivery: ReturnType<typeof handOver>, { mayLeave }: Permission) =>
        Effect.flatMap(mayLeave, (may) => (may ? delivery : Effect.succeed(held))).pipe(
          Effect.catchTag("MailboxRefused", ({ reason }) =>
            Effect.succeed(reason === "full" ? full : reason === "gone" ? unknown : notYet),
          ),
          Effect.catchCause((cause) => Effect.as(Effect.logDebug("Internal delivery failed", cause), unreachable)),
        )

      return {
        domain,
        deliver: Effect.fn("Inside.deliver")(function* ({
          id,
          envelopeFrom,
          recipients,
          content,
          ...permission
        }: Transmission) {
          const origin: OriginVerdict = {
            verdict: "verified",
            spf: "internal",
            dkim: "internal",
            dmarc: "internal",
            domain,
          }
          const at = new Date(yield* Clock.currentTimeMillis)
          const trace = traceOf(domain, id, at)
          const raw = yield* withTrace(trace, content)
          const parsed = yield* read(Buffer.from(raw.buffer))
          const agent = agentOf(book, parsed, at)
          const mail: IncomingMail = {
            raw: [raw],
            parsed,
            origin: agent === undefined ? origin : { ...origin, agent },
            envelopeFrom,
            sha256: yield* sha256(content),
          }
          // One delivery for all addresses of a Mailbox, which share its outcome.
          const outcomes = new Map<string | undefined, Omit<Outcome, "recipient">>()
          for (const [mailbox, addresses] of Map.groupBy(recipients, mailboxOf)) {
            outcomes.set(mailbox, yield* attempt(handOver(mail, mailbox, addresses, permission), permission))
          }
          return recipients.map((recipient): Outcome => ({ recipient, ...outcomes.get(mailboxOf(recipient))! }))
        }),
      }
    }),
  ).pipe(Layer.provide(ComposingThread.layer))
