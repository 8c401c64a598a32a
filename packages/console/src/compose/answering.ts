/**
 * The initial content of replies and forwarded messages. Recipients of a reply follow the rules of the service
 * (`packages/cluster/src/mail/sending/ReplyHeaders.ts`), so that they can be seen, checked and changed before sending.
 */

export interface Person {
  readonly address: string
  readonly name: string | null
}

export interface Original {
  readonly direction: "inbound" | "outbound"
  readonly from: Person | null
  readonly to: ReadonlyArray<Person>
  readonly cc: ReadonlyArray<Person>
  readonly reply_to: ReadonlyArray<Person>
  readonly subject: string
  readonly text: string | null
  readonly text_reply: string | null
}

/** Maximum number of quoted characters. */
const quotedAtMost = 20_000

/** Returns the same text for all tags and spellings of a Mailbox's address. */
const mailboxOf = (address: string) => {
  const at = Math.max(0, address.lastIndexOf("@"))
  const handle = address.slice(0, at).replace(/\+.*$/s, "").replaceAll("-", "")
  return `${handle}${address.slice(at)}`.toLowerCase()
}

const distinct = (addresses: ReadonlyArray<string>, but: ReadonlyArray<string> = []) => {
  const seen = new Set(but.map((address) => address.toLowerCase()))
  return addresses.filter((address) => {
    const isNew = !seen.has(address.toLowerCase())
    seen.add(address.toLowerCase())
    return isNew
  })
}

/**
 * Returns the recipients of a reply. `own` is the Identity's address, which is left out in any spelling unless it is the
 * only one.
 */
export const recipientsOf = (original: Original, all: boolean, own: string) => {
  const { direction, from, reply_to } = original
  const author = from === null ? [] : [from]
  const writers = direction === "outbound" ? original.to : reply_to.length > 0 ? reply_to : author
  const others = direction === "outbound" ? original.cc : [...author, ...original.to, ...original.cc]
  const addressed = writers.map(({ address }) => address)
  const strangers = addressed.filter((address) => mailboxOf(address) !== mailboxOf(own))
  const to = distinct(strangers.length > 0 ? strangers : addressed)
  const cc = others.map(({ address }) => address).filter((address) => mailboxOf(address) !== mailboxOf(own))
  return { to, cc: all ? distinct(cc, to) : [] }
}

const answered = /^\s*(?:re|aw|sv|vs|antw|antwort|rép|ré|odp|ynt|rif)\s*(?:\[\d+\])?\s*:/i
const passedOn = /^\s*(?:fwd?|wg|tr|i|rv|enc)\s*:/i

/** Returns a single-line subject of limited length. */
const line = (text: string) => text.replaceAll(/\p{Cc}+/gu, " ").slice(0, 890)

export const answerTo = (subject: string) => line(answered.test(subject) ? subject : `Re: ${subject}`)
export const passingOn = (subject: string) => line(passedOn.test(subject) ? subject : `Fwd: ${subject}`)

/** Quotes the author's text with a line that names the author (RFC 3676 section 4.5). */
export const quote = ({ text, text_reply }: Original, attribution: string) => {
  const words = (text_reply ?? text ?? "").slice(0, quotedAtMost).trim()
  return words === "" ? "" : `\n\n${attribution}\n${words.replaceAll(/^/gm, "> ").replaceAll(/^> $/gm, ">")}\n`
}

/**
 * Splits a text before the quote at its end: lines that begin with `>`, and the line that names their author. A text without
 * such a quote is returned whole.
 */
export const splitQuote = (text: string): { readonly own: string; readonly quoted: string } => {
  const lines = text.split("\n")
  let end = lines.length
  while (end > 0 && lines[end - 1]!.trim() === "") end--
  let start = end
  while (start > 0 && lines[start - 1]!.startsWith(">")) start--
  if (start === end || start === 0 || !lines[start - 1]!.trim().endsWith(":")) return { own: text, quoted: "" }
  start--
  while (start > 0 && lines[start - 1] === "") start--
  const own = lines.slice(0, start).join("\n")
  return { own, quoted: text.slice(own.length) }
}

const shown = ({ address, name }: Person) => (name === null ? address : `${name} <${address}>`)

/** Returns the complete text below its header fields. */
export const passedOnText = (
  original: Original,
  words: { readonly head: string; readonly fields: ReadonlyArray<readonly [string, string]> },
) =>
  `\n\n${words.head}\n${words.fields
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n")}\n\n${(original.text ?? "").slice(0, quotedAtMost * 5)}`

export const peopleShown = (people: ReadonlyArray<Person>) => people.slice(0, 20).map(shown).join(", ")
