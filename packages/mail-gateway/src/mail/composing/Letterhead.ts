/**
 * Reads the header that a mail program wrote: author, recipients, thread and allowed fields. `Bcc`, traces of the
 * program's network, and fields about how the message was made are dropped.
 */
import type { SubmittedMessage } from "@svc/cluster/mail/sending/Composer"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import * as HeaderFields from "@svc/domain/mail/HeaderFields"
import type { Address } from "@svc/domain/mail/Message"
import * as MessageIds from "@svc/domain/mail/MessageIdField"
import * as PersonName from "@svc/domain/mail/PersonName"
import { addresses, author, limits as authorLimits } from "../Author.ts"
import * as Decode from "../mime/Decode.ts"
import { header, nameOf, type Row, valueOf } from "../mime/Header.ts"
import * as RecipientAddress from "../RecipientAddress.ts"
import * as WhitespaceLimit from "./WhitespaceLimit.ts"
import { type Draft, type Fault, faulty } from "./MessageWriter.ts"

/** The maximum addresses per field, characters of a subject and of a field, number of additional fields, and ids. */
const limits = { shown: 200, subject: 900, value: 900, fields: 20, ids: 100 }

export interface Letterhead extends Pick<
  Draft,
  "from" | "to" | "cc" | "replyTo" | "subject" | "inReplyTo" | "references" | "headers" | "date"
> {
  readonly _tag: "Letterhead"
  /** The message's own id, if it is valid. */
  readonly messageId: string | undefined
}

/** Matches a valid `Date` (RFC 5322 section 3.3). Other dates are replaced by the time of arrival. */
const dated =
  /^(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}(?::\d{2})? [+-]\d{4}(?= ?\(|$)/
/** The accepted age of a date: a message may wait for its program to be online, but cannot be from the future. */
const waitedMillis = { before: 30 * 24 * 60 * 60_000, after: 24 * 60 * 60_000 }

/** Common fields of mail programs that are kept besides {@link HeaderFields}. */
const known = new Set(
  "user-agent importance priority sensitivity organization keywords thread-topic thread-index".split(" "),
)

/** Returns the Identity's address, with its tag if `tagged`, or undefined for any other address. */
const own = ({ author: { address, canonical, domain } }: SubmittedMessage, given: string, tagged: boolean) => {
  const parts = RecipientAddress.split(given)
  const parsed = parts.domain === domain.toLowerCase() ? RecipientAddress.parse(parts.local) : undefined
  if (parsed?.mailbox !== canonical || (parsed.tag !== null && !tagged)) return undefined
  const tag = parsed.tag === null ? "" : parts.local.slice(parts.local.indexOf("+"))
  return address.replace(/@[^@]*$/, (end) => tag + end)
}

export const read = (raw: Buffer, rows: ReadonlyArray<Row>, manuscript: SubmittedMessage): Letterhead | Fault => {
  const field = (name: string) => header(raw, rows, name)
  const notOwn = faulty("/from", `Expected exactly one From, with the address ${manuscript.author.address}`)
  if (rows.filter(({ key }) => key === "from").length !== 1) return notOwn
  const wrote = author(field("from"))
  const from = wrote === undefined ? undefined : own(manuscript, wrote.address.address, false)
  if (wrote === undefined || from === undefined) return notOwn

  let fault: Fault | undefined
  const people = (name: string): ReadonlyArray<Address> => {
    const found = addresses(field(name), authorLimits.fields).map((one) => {
      const parsed = AddrSpec.parse(one.address)
      if (parsed._tag === "Invalid")
        fault ??= faulty(`/${name}`, `${parsed.message} (${WhitespaceLimit.ofLine(one.address).slice(0, 100)})`)
      return { address: parsed._tag === "Address" ? parsed.address : "", name: PersonName.shown(one.name) }
    })
    if (found.length > limits.shown) fault ??= faulty(`/${name}`, `Expected at most ${limits.shown} addresses`)
    return found
  }
  const [to, cc] = [people("to"), people("cc")]
  const replyTo = people("reply-to").map((one) => {
    const address = own(manuscript, one.address, true)
    if (address === undefined) fault ??= faulty("/reply_to", "Expected a Reply-To at the Identity's own address")
    return { address: address ?? "", name: one.name }
  })
  const subject = WhitespaceLimit.ofLine(Decode.words((field("subject") ?? "").slice(0, 16 * 1024)))
  if (subject.length > limits.subject) fault ??= faulty("/subject", `Expected at most ${limits.subject} characters`)
  if (fault !== undefined) return fault

  // A parent's id may lack an @. The reply would leave its thread without that id.
  const idsOf = (name: string) => MessageIds.all(field(name) ?? "").filter(MessageIds.isSendable)
  const [inReplyTo = null] = idsOf("in-reply-to")
  const references = idsOf("references").slice(-limits.ids)
  return {
    _tag: "Letterhead",
    messageId: MessageIds.all(field("message-id") ?? "").find((id) => MessageIds.strict.test(id)),
    from: { address: from, name: PersonName.shown(wrote.address.name) },
    to,
    cc,
    replyTo,
    subject,
    inReplyTo,
    references: references.length > 0 || inReplyTo === null ? references : [inReplyTo],
    headers: others(raw, rows),
    date: dateOf(field("date"), manuscript.date),
  }
}

const dateOf = (written: string | undefined, now: Date): string | Date => {
  const date = dated.exec(written?.replace(/\s+/g, " ").trim() ?? "")?.[0]
  const ago = date === undefined ? NaN : now.getTime() - Date.parse(date)
  return date !== undefined && ago <= waitedMillis.before && ago >= -waitedMillis.after ? date : now
}

/** Returns the additional fields, each once, if valid. */
const others = (raw: Buffer, rows: ReadonlyArray<Row>): Readonly<Record<string, string>> => {
  const found = new Map<string, readonly [name: string, value: string]>()
  for (const row of rows) {
    if (found.size >= limits.fields) break
    if (found.has(row.key) || !(known.has(row.key) || /^(?:x-|list-unsubscribe)/.test(row.key))) continue
    const value = WhitespaceLimit.ofLine(Decode.clean(valueOf(raw, row)))
    if (value !== "" && value.length <= limits.value) found.set(row.key, [nameOf(raw, row), value])
  }
  const judged = [...found].filter(([key]) => !known.has(key)).map(([, entry]) => entry)
  const refused = new Set(HeaderFields.violations(Object.fromEntries(judged)).map(({ path }) => path))
  return Object.fromEntries([...found.values()].filter(([name]) => !refused.has(`/headers/${name.slice(0, 100)}`)))
}
