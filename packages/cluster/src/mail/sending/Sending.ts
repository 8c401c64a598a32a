/**
 * The single entry for outgoing mail, from the API and from mail clients. It parses recipients strictly, derives reply
 * headers, composes the message with its disclosure, and passes it to the Identity's actor, which decides whether it
 * may be sent.
 */
import { createHash } from "node:crypto"
import type { SubjectInfo } from "@svc/domain/account/Authorization"
import { type AddressBook, Addresses, did, email } from "@svc/domain/Addresses"
import { fromPublic, makeUuidV7, toPublic } from "@svc/domain/Ids"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import * as HeaderFields from "@svc/domain/mail/HeaderFields"
import type { Address } from "@svc/domain/mail/Message"
import { type NewMail, recipientsAtMost, type Sent } from "@svc/domain/mail/Sending"
import type { ComposedMail, Recipient } from "@svc/domain/mail/SendingProtocol"
import { MessageInvalid, type Violation } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import { ask, onBehalfOf } from "../../actor/Ask.ts"
import { Identities } from "../../actor/Identities.ts"
import type { AuditNote } from "../../actor/Write.ts"
import { orUnavailable, Writes } from "../../store/Database.ts"
import { carriedAtMost, storeAhead } from "../MessageContent.ts"
import { MailSettingsQueries } from "../MailSettingsQueries.ts"
import { MessageQueries } from "../MessageQueries.ts"
import * as ReplyHeaders from "./ReplyHeaders.ts"
import { type Composed, Composer } from "./Composer.ts"

interface SendRequest {
  readonly subject: SubjectInfo
  /** The uuid of the message, which identifies the command: a repeat sends nothing. */
  readonly id: string
  readonly mail: NewMail
  /** The version of the draft with this id that is sent; null if there is no draft. */
  readonly draftVersion: number | null
  /** The audit record of the request. */
  readonly note?: AuditNote | undefined
}

/** A message that a mail client submits (RFC 6409). */
interface Submission {
  readonly subject: SubjectInfo
  /** The raw message with CRLF line ends. */
  readonly raw: Uint8Array
  /** Envelope recipients, one address each; recipients in the header are only displayed. */
  readonly recipients: ReadonlyArray<string>
}

/** A composed message for the actor, without the location of its content. */
interface Prepared {
  readonly subject: SubjectInfo
  readonly composed: Composed
  readonly mail: Omit<ComposedMail, "snippet" | "attachments" | "size" | "sha256" | "content">
  readonly recipients: ReadonlyArray<Recipient>
  readonly at: Date
  readonly note?: AuditNote | undefined
}

type Field = "to" | "cc" | "bcc"
const fields: ReadonlyArray<Field> = ["to", "cc", "bcc"]

interface People {
  readonly shown: Readonly<Record<Field, ReadonlyArray<string>>>
  /** Distinct recipients. */
  readonly recipients: ReadonlyArray<Recipient>
}

const invalid = (errors: ReadonlyArray<Violation>) =>
  new MessageInvalid({
    detail: `${errors[0]!.message}.`,
    errors: errors.slice(0, 20),
  })

/** Parses the recipients, one address each. `derived` means that they were derived from the message replied to. */
const peopleOf = (given: Readonly<Record<Field, ReadonlyArray<string>>>, derived: boolean) => {
  const errors: Array<Violation> = []
  const known = new Map<string, Recipient>()
  const shown: Record<Field, Array<string>> = { to: [], cc: [], bcc: [] }
  for (const field of fields) {
    given[field].forEach((text, index) => {
      const parsed = AddrSpec.parse(text)
      const path = derived ? "/reply_to_message" : `/${field}/${index}`
      if (parsed._tag === "Invalid") {
        errors.push({ path, message: parsed.message })
        return
      }
      shown[field].push(parsed.address)
      const key = AddrSpec.sameAs(parsed.address)
      if (!known.has(key)) known.set(key, { address: parsed.address, path })
    })
  }
  if (known.size === 0 && errors.length === 0) errors.push({ path: "/to", message: "Expected a recipient" })
  if (known.size > recipientsAtMost) {
    const path = derived ? "/reply_to_message" : "/to"
    errors.push({ path, message: `Expected at most ${recipientsAtMost} recipients in all` })
  }
  const people: People = { shown, recipients: [...known.values()] }
  return errors.length > 0 ? Effect.fail(invalid(errors)) : Effect.succeed(people)
}

/** Returns the violations in the other fields. */
const faultsOf = (mail: NewMail): ReadonlyArray<Violation> => [
  ...(mail.text === undefined && mail.html === undefined
    ? [{ path: "/text", message: "Expected a text, an HTML body or both" }]
    : []),
  ...(mail.reply_all === true && mail.reply_to_message === undefined
    ? [{ path: "/reply_all", message: "Requires `reply_to_message`" }]
    : []),
  ...HeaderFields.violations(mail.headers ?? {}),
]

const ownMessageId = ({ mailDomain }: AddressBook, id: string) =>
  `<${toPublic("msg_", id).slice("msg_".length)}@${mailDomain}>`

/** Returns the key that a submitted message and its repeat share, independent of recipient order. */
const keyOf = (fingerprint: Uint8Array, recipients: ReadonlyArray<Recipient>): Uint8Array =>
  new Uint8Array(
    createHash("sha256")
      .update(fingerprint)
      .update(JSON.stringify(recipients.map(({ address }) => AddrSpec.sameAs(address)).toSorted()))
      .digest(),
  )

const make = Effect.gen(function* () {
  const writes = yield* Writes
  const actors = yield* Identities
  const book = yield* Addresses
  const settings = yield* MailSettingsQueries
  const messages = yield* MessageQueries
  const composer = yield* Composer

  /** Calls the actor; a large body is stored first. */
  const submitToActor = Effect.fnUntraced(function* (
    { subject, composed: { content, sha256, snippet, attachments }, mail, recipients, at, note }: Prepared,
    about: {
      readonly answers: string | null
      readonly draft_version: number | null
      readonly submission_key?: Uint8Array
    },
  ) {
    const large = content.raw.length > carriedAtMost
    if (large) yield* orUnavailable(storeAhead(writes, mail.message_id, content, at))
    const acceptance = yield* ask(
      actors.of(subject.canonical).SendMail(
        {
          org_id: subject.orgId,
          mail: {
            ...mail,
            snippet,
            attachments,
            size: content.raw.length,
            sha256,
            content: large ? null : content,
          },
          recipients,
          ...about,
        },
        onBehalfOf(subject.by, undefined, note),
      ),
    )
    const { status } = acceptance
    const sent: Sent = {
      id: toPublic("msg_", acceptance.message_id ?? mail.message_id),
      message_id: acceptance.message_id_header,
      status,
      recipients: recipients.map(({ address }) => ({ address, status })),
    }
    return sent
  })

  return {
    /**
     * Accepts a message. It returns after the message is durable in the Mailbox, and in the outbox or waiting for
     * approval.
     */
    accept: Effect.fn("Sending.accept")(function* ({ subject, id, mail, draftVersion, note }: SendRequest) {
      const faults = faultsOf(mail)
      if (faults.length > 0) return yield* invalid(faults)
      const own = email(book, subject.handle)
      const original =
        mail.reply_to_message === undefined
          ? undefined
          : (yield* messages.read(subject.id, mail.reply_to_message)).message
      const reply = original === undefined ? undefined : ReplyHeaders.derive(original, mail, own)
      const { shown, recipients } = yield* peopleOf(
        { to: reply?.to ?? mail.to ?? [], cc: reply?.cc ?? mail.cc ?? [], bcc: mail.bcc ?? [] },
        reply !== undefined && reply.to !== mail.to,
      )
      const { name, disclosure, language } = yield* settings.author(subject.id)
      const from: Address = { address: own, name }
      const at = new Date(yield* Clock.currentTimeMillis)
      const inReplyTo = mail.in_reply_to ?? reply?.in_reply_to ?? null
      const references = mail.references ?? reply?.references ?? (inReplyTo === null ? [] : [inReplyTo])
      const messageId = ownMessageId(book, id)
      const subjectLine = mail.subject ?? reply?.subject ?? ""
      const composed = yield* composer.compose({
        messageId,
        date: at,
        from,
        to: shown.to,
        cc: shown.cc,
        subject: subjectLine,
        text: mail.text,
        html: mail.html,
        inReplyTo,
        references,
        attachments: mail.attachments ?? [],
        headers: mail.headers ?? {},
        did: did(book, subject.handle),
        disclosure,
        language,
      })
      const people = (addresses: ReadonlyArray<string>) => addresses.map((address) => ({ address, name: null }))
      return yield* submitToActor(
        {
          subject,
          composed,
          mail: {
            message_id: id,
            message_id_header: messageId,
            from,
            to: people(shown.to),
            cc: people(shown.cc),
            bcc: people(shown.bcc),
            reply_to: [],
            subject: subjectLine,
            in_reply_to: inReplyTo,
            references,
          },
          recipients,
          at,
          note,
        },
        {
          answers: mail.reply_to_message === undefined ? null : (fromPublic("msg_", mail.reply_to_message) ?? null),
          draft_version: draftVersion,
        },
      )
    }),

    /**
     * Accepts a message from a mail client. Its content is kept, everything around it is composed anew ({@link
     * Composer}). A client that missed the reply submits the message again: a message with the same Message-ID,
     * recipients and content is accepted once. A message without a Message-ID is always new.
     */
    submit: Effect.fn("Sending.submit")(function* ({ subject, raw, recipients: given }: Submission) {
      const { recipients } = yield* peopleOf({ to: given, cc: [], bcc: [] }, false)
      const { disclosure, language } = yield* settings.author(subject.id)
      const at = new Date(yield* Clock.currentTimeMillis)
      const id = yield* makeUuidV7
      const composed = yield* composer.rewrite({
        raw,
        author: { address: email(book, subject.handle), canonical: subject.canonical, domain: book.mailDomain },
        messageId: ownMessageId(book, id),
        date: at,
        did: did(book, subject.handle),
        disclosure,
        language,
      })
      const shown = new Set([...composed.to, ...composed.cc].map(({ address }) => AddrSpec.sameAs(address)))
      const hidden = recipients.filter(({ address }) => !shown.has(AddrSpec.sameAs(address)))
      return yield* submitToActor(
        {
          subject,
          composed,
          mail: {
            message_id: id,
            message_id_header: composed.messageId,
            from: composed.from,
            to: composed.to,
            cc: composed.cc,
            bcc: hidden.map(({ address }): Address => ({ address, name: null })),
            reply_to: composed.replyTo,
            subject: composed.subject,
            in_reply_to: composed.inReplyTo,
            references: composed.references,
          },
          recipients,
          at,
        },
        composed.fingerprint === null
          ? { answers: null, draft_version: null }
          : { answers: null, draft_version: null, submission_key: keyOf(composed.fingerprint, recipients) },
      )
    }),
  }
})

export class Sending extends Context.Service<Sending, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/sending/Sending",
) {
  static readonly layer = Layer.effect(Sending, make)
}
