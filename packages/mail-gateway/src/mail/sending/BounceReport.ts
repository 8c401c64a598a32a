/**
 * What a bounce says: delivery reports as they should be (RFC 3464 in RFC 6522), and the texts of servers that write none
 * (qmail, Exim, Exchange and their like). Only what says that mail did not arrive is one: delays, receipts and answers of
 * people's own programs are not. Everything is bounded before it is read. No I/O.
 */
import * as Decode from "../mime/Decode.ts"
import * as Header from "../mime/Header.ts"
import type { Part } from "../mime/Part.ts"
import { isAddressRejected, statusIn } from "@svc/cluster/mail/sending/AddressRejection"
import { plain } from "./smtp/Reply.ts"

/** One recipient that mail did not reach. */
export interface Failure {
  /**
   * Every address that the report names for the recipient, lower case, whom it was for before whom it was passed on to;
   * empty where it names none.
   */
  readonly addresses: ReadonlyArray<string>
  /** The enhanced status code. */
  readonly status: string | null
  /** What the server said, one line of at most 500 characters. */
  readonly diagnostic: string | null
  /** The report says that the address is bad, so nothing will ever arrive there. */
  readonly hard: boolean
}

/** Bytes of a report and of a text that are read, recipients of one, addresses in a text, parts that are looked at. */
const limits = { report: 64 * 1024, text: 32 * 1024, recipients: 100, addresses: 200, parts: 100 }

/** What a report tells of the command that was rejected, as Postfix and Exim word it. */
const notRcpt = /\b(?:in reply to|after)\s+(?:end of |sending )?(MAIL|DATA|message|content)\b/i

/** Judges a report like the reply that it quotes. A report that does not tell the command is about RCPT. */
const isHard = (status: string | null, diagnostic: string | null, context: string): boolean => {
  const text = diagnostic ?? ""
  const code = /(?:^|\D)([45]\d\d)[ -]/.exec(text)?.[1]
  const command = notRcpt.exec(context)?.[1]?.toUpperCase()
  return isAddressRejected({
    code: code === undefined ? null : Number(code),
    status,
    text,
    command: command === undefined ? "RCPT" : command === "MAIL" ? "MAIL" : "DATA",
  })
}

const short = (text: string | undefined): string | null => {
  const line = plain((text ?? "").slice(0, 2_000))
  return line === "" ? null : line.slice(0, 500)
}

/** `rfc822; ada@example.org`, with what RFC 3461 wrote by its number. */
const addressIn = (value: string | undefined): ReadonlyArray<string> => {
  const text = (value ?? "").slice(0, 1_000)
  const [, type, rest] = /^\s*([\w-]+)\s*;\s*(.*)$/s.exec(text) ?? []
  const written = (rest ?? text).trim().replace(/^<(.*)>$/s, "$1")
  const unfolded =
    type === undefined
      ? written
      : written.replace(/\+([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return [...new Set([written, unfolded])].filter((one) => one.includes("@")).map((one) => one.toLowerCase())
}

/** The first part of that type, within the multipart of the message itself. */
const partOf = (root: Part, types: ReadonlySet<string>): Part | undefined => {
  let left = limits.parts
  const find = (part: Part): Part | undefined => {
    if (left-- <= 0) return undefined
    if (types.has(part.type)) return part
    // What stands in the message that came back is not said by who sends it back.
    if (!part.type.startsWith("multipart/")) return undefined
    for (const child of part.parts) {
      const found = find(child)
      if (found !== undefined) return found
    }
    return undefined
  }
  return find(root)
}

const reportTypes = new Set(["message/delivery-status", "message/global-delivery-status"])
/** Reports of something else: of reading, of abuse. */
const otherTypes = new Set(["message/disposition-notification", "message/feedback-report"])

/**
 * RFC 3464 section 2.3: a block of fields for each recipient, behind one for the message. Undefined where there is none for
 * any recipient.
 */
const fromReport = (raw: Buffer, part: Part): ReadonlyArray<Failure> | undefined => {
  const bytes = Buffer.from(Decode.bytes(raw, part, limits.report))
  const found: Array<Failure> = []
  let isNamed = false
  let at = 0
  while (at < bytes.length && found.length < limits.recipients) {
    const block = Header.read(bytes, at, bytes.length)
    // Servers write more than one empty line between blocks.
    at = Math.max(block.bodyStart, at + 1)
    const field = (name: string) => Header.header(bytes, block.rows, name)
    const final = field("final-recipient")
    const original = field("original-recipient")
    if (final === undefined && original === undefined) continue
    isNamed = true
    // Some servers say more than the word.
    const action = /^\s*([\w-]{1,40})/.exec(field("action") ?? "")?.[1]?.toLowerCase() ?? ""
    const status = statusIn(field("status") ?? "")
    if (action === "delayed" || action === "delivered" || action === "relayed" || action === "expanded") continue
    if (status?.startsWith("2") === true) continue
    const diagnostic = short(field("diagnostic-code")?.replace(/^\s*(?:smtp|x-[\w-]+)\s*;\s*/i, ""))
    found.push({
      addresses: [...new Set([...addressIn(original), ...addressIn(final)])],
      status,
      diagnostic,
      hard: isHard(status, diagnostic, ""),
    })
  }
  return isNamed ? found : undefined
}

/** Words of servers that give up, and of those that only tell of a delay. */
const gaveUp =
  /undeliver|could not be delivered|couldn't be delivered|was not delivered|wasn't delivered|delivery (?:has )?failed|delivery failure|delivery status notification \(failure\)|failure notice|returned mail|mail delivery failed|permanent (?:fatal )?error|did not reach|unable to deliver|rejected your message|unzustellbar/i
const goesOn =
  /will (?:keep trying|be retried|continue to)|delivery status notification \(delay\)|still being tried|not yet been delivered|warning: could not send|message delayed|delayed mail/i
const forGood =
  /permanent|does not exist|unknown (?:user|address|recipient)|user unknown|no such|invalid recipient|mailbox unavailable|disabled|not found|nicht gefunden/i

const address = /[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}/g

const addressesIn = (text: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [one] of text.matchAll(address)) {
    found.add(one.toLowerCase().replace(/\.$/, ""))
    if (found.size >= limits.addresses) break
  }
  return [...found]
}

const quoting = /original message|copy of the message|returned message|below this line/i

/** The lines of a text up to where the returned message begins, without what they quote. */
const ownWords = (text: string): ReadonlyArray<string> => {
  const lines = text.slice(0, limits.text).split("\n")
  const end = lines.findIndex(
    (line) => line.startsWith("Received: ") || (/^\s{0,8}--/.test(line) && quoting.test(line.slice(0, 200))),
  )
  return (end < 0 ? lines : lines.slice(0, end)).filter((line) => !line.startsWith(">"))
}

/** A line that an address begins, by itself or before what is said of it: `<ada@example.org>:`. */
const heading = /^\s{0,8}<?[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}>?\s{0,8}(?::|$)/

/** The lines under each such line, itself among them. */
const sectionsOf = (lines: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const sections: Array<Array<string>> = []
  for (const line of lines) {
    if (sections.length < limits.recipients && heading.test(line)) sections.push([line])
    else sections.at(-1)?.push(line)
  }
  return sections
}

interface Said {
  readonly status: string | null
  readonly diagnostic: string | null
  /** Whether a code tells what happened. */
  readonly hasCode: boolean
  readonly hard: boolean
}

const saidIn = (lines: ReadonlyArray<string>): Said => {
  const status = statusIn(lines.join("\n"))
  const line =
    lines.find((one) => /\b[45]\d\d[ -]|\b[45]\.\d{1,3}\.\d{1,3}\b/.test(one)) ?? lines.find((one) => forGood.test(one))
  const diagnostic = short(line)
  return {
    status,
    diagnostic,
    hasCode: status !== null || /(?:^|\D)[45]\d\d[ -]/.test(line ?? ""),
    hard: isHard(status, diagnostic, lines.join("\n")),
  }
}

const fromText = (subject: string, text: string, failed: string | undefined): ReadonlyArray<Failure> => {
  const own = ownWords(text)
  const words = own.join("\n")
  const whole = `${subject}\n${words}`
  if (goesOn.test(whole) || !(gaveUp.test(whole) || failed !== undefined)) return []
  const all = saidIn(own)
  const sections = sectionsOf(own).map((lines) => ({ addresses: addressesIn(lines.join("\n")), said: saidIn(lines) }))
  const failure = (addresses: ReadonlyArray<string>, said: Said): Failure => {
    const { status, diagnostic, hard } = said.hasCode ? said : all
    return { addresses, status, diagnostic: said.diagnostic ?? diagnostic, hard }
  }
  const named = addressesIn(failed ?? "")
  if (named.length > 0) {
    return named.map((one) => {
      const section = sections.find(({ addresses }) => addresses[0] === one)
      return failure(section?.addresses ?? [one], section?.said ?? all)
    })
  }
  return sections.length > 0
    ? sections.map(({ addresses, said }) => failure(addresses, said))
    : [failure(addressesIn(words), all)]
}

/** The authors of bounces that are no delivery reports. Vacation programs and people write in their own names. */
const daemon = /\bmailer-?daemon\b|\bpostmaster@|mail delivery (?:sub)?system/i

/** Nothing where the message is no bounce. `text` is the body in words. */
export const read = (raw: Buffer, root: Part, subject: string, text: string | null): ReadonlyArray<Failure> => {
  const report = partOf(root, reportTypes)
  const found = report === undefined ? undefined : fromReport(raw, report)
  if (found !== undefined) return found
  const field = (name: string) => Header.header(raw, root.rows, name)?.slice(0, 4_000)
  if (root.type === "multipart/report") {
    const kind = root.parameters["report-type"]?.toLowerCase() ?? "delivery-status"
    if (kind !== "delivery-status" || partOf(root, otherTypes) !== undefined) return []
  }
  const failed = field("x-failed-recipients")
  // A vacation reply may quote words of a bounce, so words count only if a mail server wrote them.
  const isAnswer = /auto-replied/i.test(field("auto-submitted") ?? "")
  const isReport = root.type === "multipart/report" && !isAnswer
  if (!isReport && failed === undefined && !daemon.test(field("from") ?? "")) return []
  return fromText(subject.slice(0, 500), text ?? "", failed)
}
