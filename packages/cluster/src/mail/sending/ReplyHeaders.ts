/** Derives the recipients, subject and thread headers of a reply (RFC 5322 section 3.6.4). */
import { canonical } from "@svc/domain/handles/Handle"
import { domainOf, isLocalPart, sameAs } from "@svc/domain/mail/AddrSpec"
import * as MessageIds from "@svc/domain/mail/MessageIdField"
import type { MessageSummary } from "@svc/domain/mail/Message"
import type { NewMail } from "@svc/domain/mail/Sending"

/** Maximum length of a subject. */
const subjectAtMost = 900
/** Maximum ids in `References`: the first, which identifies the thread, and the most recent ones. */
const referencesAtMost = 40

const replyPrefix = /^\s*(?:re|aw|sv|vs|antw|antwort|rép|ré|odp|ynt|rif)\s*(?:\[\d+\])?\s*:/i

interface ReplyHeaders {
  readonly to: ReadonlyArray<string>
  readonly cc: ReadonlyArray<string>
  readonly subject: string
  readonly in_reply_to: string | undefined
  readonly references: ReadonlyArray<string>
}

// oxlint-disable-next-line no-control-regex -- they are what is replaced
const breaking = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g

/** Returns the subject as a single line of sendable length, since encoded words can contain anything. */
const lineOf = (subject: string) => subject.replace(breaking, " ").slice(0, subjectAtMost).toWellFormed().trimEnd()

/** Normalizes an address, so that all addresses of one Mailbox are equal: without tag and with the canonical Handle. */
const mailboxOf = (address: string) => {
  const domain = domainOf(address)
  const local = address.slice(0, Math.max(0, address.lastIndexOf("@"))).replace(/\+.*$/s, "")
  return `${canonical(local)}@${domain}`
}

/** Removes unnecessary quotation marks from a local part: `"ada.l"@x` is ada.l@x (RFC 5321 section 4.1.2). */
const plainly = (address: string) =>
  address.replace(/^"((?:[^"\\]|\\.)*)"(?=@[^@]*$)/s, (quoted, content: string) => {
    const local = content.replace(/\\(.)/gs, "$1")
    return isLocalPart(local) ? local : quoted
  })

const distinct = (addresses: ReadonlyArray<string>, but: ReadonlySet<string>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  return addresses.filter((address) => {
    const key = sameAs(address)
    if (seen.has(key) || but.has(key)) return false
    seen.add(key)
    return true
  })
}

/**
 * Derives the headers of a reply. `own` is the Identity's address. A reply is not addressed to it, whatever its tag or
 * spelling, unless there is no other recipient: some clients add the recipient they wrote to to `Reply-To`.
 */
export const derive = (original: MessageSummary, mail: NewMail, own: string): ReplyHeaders => {
  const addressesOf = (people: ReadonlyArray<{ readonly address: string }>) =>
    people.map(({ address }) => plainly(address))
  const isOwn = (address: string) => mailboxOf(address) === mailboxOf(own)
  const author = original.from === null ? [] : addressesOf([original.from])
  const writers =
    original.direction === "outbound"
      ? addressesOf(original.to)
      : original.reply_to.length > 0
        ? addressesOf(original.reply_to)
        : author
  const strangers = writers.filter((address) => !isOwn(address))
  const to =
    mail.to !== undefined && mail.to.length > 0
      ? mail.to
      : distinct(strangers.length > 0 ? strangers : writers, new Set())
  const others =
    original.direction === "outbound"
      ? addressesOf(original.cc)
      : [...author, ...addressesOf(original.to), ...addressesOf(original.cc)]
  const cc =
    mail.cc ??
    (mail.reply_all === true
      ? distinct(
          others.filter((address) => !isOwn(address)),
          new Set(to.map(sameAs)),
        )
      : [])
  const id =
    original.message_id !== null && MessageIds.isSendable(original.message_id) ? original.message_id : undefined
  const before = original.references.length > 0 ? original.references : [original.in_reply_to ?? ""]
  const chain = [...new Set([...before, id ?? ""])].filter(MessageIds.isSendable)
  return {
    to,
    cc,
    subject: lineOf(replyPrefix.test(original.subject) ? original.subject : `Re: ${original.subject}`),
    in_reply_to: id,
    references: chain.length <= referencesAtMost ? chain : [chain[0]!, ...chain.slice(1 - referencesAtMost)],
  }
}
