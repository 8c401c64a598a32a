/**
 * Delivers incoming mail to Mailboxes: looks up whether a Mailbox accepts mail (one indexed select, so that no actor is
 * loaded for an unknown name), and hands messages to the Identity's actor, whose reply means that the message is
 * durable.
 */
import type { Header, OriginVerdict, ParsedMail } from "@svc/domain/mail/Message"
import type { AgentClaim, ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { carriedAtMost, storeAhead } from "@svc/cluster/mail/MessageContent"
import * as Batcher from "@svc/cluster/store/Batcher"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import type * as RecipientAddress from "./RecipientAddress.ts"
import { joined } from "./SlicedWork.ts"
import * as AcceptingMailboxes from "./AcceptingMailboxes.ts"
import * as Gateway from "../Timing.ts"
import { keyOf } from "./Transactions.ts"
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"

/** Delivery is undecided; the sender retries later. */
export class ReceptionUnavailable extends Schema.TaggedError<ReceptionUnavailable>()("ReceptionUnavailable", {}) {}

/** The Mailbox refuses this message. */
export class MailboxRefused extends Schema.TaggedError<MailboxRefused>()("MailboxRefused", {
  reason: Schema.Literals(["full", "gone", "not_yet"]),
}) {}

/** A Mailbox that a message is stored in once, with all its addresses in the transaction. */
export interface Recipient extends RecipientAddress.Recipient {
  /** The {@link keyOf} the mail for this recipient, if already computed. */
  readonly key?: Uint8Array
}

export interface IncomingMail {
  /** The pieces of the message, with the trace fields of the service but without those of a recipient. */
  readonly raw: ReadonlyArray<Uint8Array>
  readonly parsed: ParsedMail
  readonly origin: OriginVerdict
  readonly claim?: AgentClaim
  readonly envelopeFrom: string
  /** The SHA-256 hash of DATA as received. */
  readonly sha256: Uint8Array
}

const encoder = new TextEncoder()
const timeout = Duration.fromInputUnsafe(Timing.askSmtp)

/** Returns the trace fields that differ between recipients (RFC 5321 section 4.4). */
const ownTrace = (mail: IncomingMail, recipient: Recipient): ReadonlyArray<Header> => [
  { name: "Return-Path", value: `<${mail.envelopeFrom}>` },
  ...recipient.addresses.map(({ address }) => ({ name: "Delivered-To", value: address })),
]

const make = (options: { readonly mailboxBytes: number }) =>
  Effect.gen(function* () {
    const reads = yield* Reads
    const writes = yield* Writes
    const actors = yield* Identities
    const unavailable = () => new ReceptionUnavailable()

    const lookUp = yield* Batcher.make((mailboxes: ReadonlyArray<string>) =>
      reads<{ requested: number } & NonNullable<AcceptingMailboxes.MailboxState>>`
        select requested.n::int as requested, i.status,
               case when m.bytes_used >= ${options.mailboxBytes}::bigint then 'all'
                    when m.bytes_used > ${options.mailboxBytes}::bigint / 2 then 'much'
                    when m.bytes_used is not null then 'little' end as used
        from unnest(${mailboxes}::text[]) with ordinality as requested (canonical, n)
        join identity i on i.canonical = requested.canonical left join mailbox m on m.identity_id = i.id`.pipe(
        Effect.map(Batcher.inOrder(mailboxes)),
      ),
    )

    return {
      status: yield* AcceptingMailboxes.make((mailbox) => Effect.mapError(lookUp(mailbox), unavailable)),

      /**
       * Stores a message durably, once for all addresses of the Mailbox. The retry of a transaction that got no 250 is not
       * stored again. Returns false, and stores nothing, if `isPermitted` returns false in the turn in which the message
       * is handed to the Mailbox.
       */
      deliver: Effect.fnUntraced(function* (
        mail: IncomingMail,
        recipient: Recipient,
        isPermitted: () => boolean = () => true,
      ) {
        const received_at = new Date(yield* Clock.currentTimeMillis)
        const message_id = yield* makeUuidV7
        const trace = ownTrace(mail, recipient)
        const head = encoder.encode(trace.map(({ name, value }) => `${name}: ${value}\r\n`).join(""))
        const raw = yield* joined([head, ...mail.raw])
        const { parsed } = mail
        const tags = recipient.addresses.flatMap(({ tag }) => (tag === null ? [] : [tag]))
        const content = {
          raw,
          text: parsed.text,
          html: parsed.html,
          headers: [...trace, ...parsed.headers],
          search_text: parsed.search_text,
          ...(parsed.structure === undefined ? {} : { structure: parsed.structure }),
        }
        const large = raw.length > carriedAtMost
        if (large) yield* Effect.mapError(storeAhead(writes, message_id, content, received_at), unavailable)
        const message: ReceivedMail = {
          // Copied member by member: omitting some with rest syntax would take longer than everything else here.
          from: parsed.from,
          to: parsed.to,
          cc: parsed.cc,
          bcc: parsed.bcc,
          reply_to: parsed.reply_to,
          subject: parsed.subject,
          snippet: parsed.snippet,
          in_reply_to: parsed.in_reply_to,
          references: parsed.references,
          attachments: parsed.attachments,
          message_id,
          message_id_header: parsed.message_id,
          envelope_from: mail.envelopeFrom,
          recipient: recipient.addresses[0]?.address ?? "",
          tag: tags[0] ?? null,
          tags,
          sha256: mail.sha256,
          key: recipient.key ?? keyOf(mail, recipient),
          size: raw.length,
          received_at,
          origin: mail.origin,
          ...(mail.claim === undefined ? {} : { agent_claim: mail.claim }),
          content: large ? null : content,
        }
        const receive = ask(actors.of(recipient.mailbox).ReceiveMail(message), timeout).pipe(
          Effect.catchTags({
            MailRefused: ({ reason }) => new MailboxRefused({ reason }),
            unavailable: () => new ReceptionUnavailable(),
          }),
          Effect.catchDefect(() => new ReceptionUnavailable()),
        )
        if (!isPermitted()) return false
        const receipt = yield* receive
        // Another process may have answered the previous transaction and be about to delete its mark.
        if (receipt?.repeated === true) yield* Effect.andThen(Effect.sleep(Gateway.Timing.smtpRepeatPause), receive)
        return true
      }),

      /** Records that mail was refused after its recipient was accepted. The sender does not wait for this. */
      refused: (
        mailbox: string,
        refusal: { readonly reason: "size" | "full"; readonly from: string },
      ): Effect.Effect<void> => Effect.ignore(ask(actors.of(mailbox).RefuseMail(refusal))),
    }
  })

export class Reception extends Context.Service<Reception, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/Reception",
) {
  static readonly layer = (options: { readonly mailboxBytes: number }) => Layer.effect(Reception, make(options))
}
