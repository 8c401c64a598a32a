/** What follows from the message that is answered: to whom, under which subject, in which thread (RFC 5322 section 3.6.4). */
import { sameAs } from "@svc/domain/mail/AddrSpec"
import type { Message } from "@svc/domain/mail/Message"
import type { NewMail } from "@svc/domain/mail/Sending"

/** Ids that a header field of ours can carry; a sender may have written anything. */
const isMessageId = (id: string) => /^<[!-;=?A-~]{1,250}@[!-;=?A-~]{1,250}>$/.test(id)

/** Ids in `References`: the first, which names the thread, and the newest. */
const referencesAtMost = 40

const answered = /^\s*(?:re|aw|sv|vs|antw|antwort|rép|ré|odp|ynt|rif)\s*(?:\[\d+\])?\s*:/i

export interface Answer {
  readonly to: ReadonlyArray<string>
  readonly cc: ReadonlyArray<string>
  readonly subject: string
  readonly in_reply_to: string | undefined
  readonly references: ReadonlyArray<string>
}

const withoutTag = (address: string) => sameAs(address).replace(/\+[^@]*(?=@)/, "")

const distinct = (addresses: ReadonlyArray<string>, but: ReadonlySet<string>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  return addresses.filter((address) => {
    const key = sameAs(address)
    if (seen.has(key) || but.has(key)) return false
    seen.add(key)
    return true
  })
}

/** `own`: the Identity's address, which an answer to all leaves out under any of its tags. */
export const derive = (original: Message, mail: NewMail, own: string): Answer => {
  const addressesOf = (people: ReadonlyArray<{ readonly address: string }>) => people.map(({ address }) => address)
  const isOwn = (address: string) => withoutTag(address) === withoutTag(own)
  const author = original.from === null ? [] : [original.from.address]
  const writers =
    original.direction === "outbound"
      ? addressesOf(original.to)
      : original.reply_to.length > 0
        ? addressesOf(original.reply_to)
        : author
  const to = mail.to !== undefined && mail.to.length > 0 ? mail.to : distinct(writers, new Set())
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
  const id = original.message_id !== null && isMessageId(original.message_id) ? original.message_id : undefined
  const before = original.references.length > 0 ? original.references : [original.in_reply_to ?? ""]
  const chain = [...new Set([...before, id ?? ""])].filter(isMessageId)
  return {
    to,
    cc,
    subject: answered.test(original.subject) ? original.subject : `Re: ${original.subject}`,
    in_reply_to: id,
    references: chain.length <= referencesAtMost ? chain : [chain[0]!, ...chain.slice(1 - referencesAtMost)],
  }
}
