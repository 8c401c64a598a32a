/**
 * Parses bounces: delivery reports (RFC 3464 in RFC 6522), and the texts of servers that send none (qmail, Exim,
 * Exchange and others). Only reports of failed delivery count, not delays, receipts or automatic replies. All input is
 * limited in size before it is parsed. No I/O.
 */
import * as Decode from "../mime/Decode.ts"
import * as Header from "../mime/Header.ts"
import type { Part } from "../mime/Part.ts"
import { isAddressRejected, statusIn } from "@svc/cluster/mail/sending/AddressRejection"
import { plain } from "./smtp/Reply.ts"

/** A recipient that a message did not reach. */
export interface Failure {
  /**
   * The addresses that the report names for the recipient, in lower case, the original recipient before the final one.
   * Empty if it names none.
   */
  readonly addresses: ReadonlyArray<string>
  /** The enhanced status code. */
  readonly status: string | null
  /** The server's reply, in one line of at most 500 characters. */
  readonly diagnostic: string | null
  /** Whether the address is permanently invalid. */
  readonly hard: boolean
}

/** The maximum bytes of a report and of a text, recipients of a report, addresses in a text, and parts inspected. */
const limits = { report: 64 * 1024, text: 32 * 1024, recipients: 100, addresses: 200, parts: 100 }

/** The rejected command, as Postfix and Exim word it. */
const notRcpt = /\b(?:in reply to|after)\s+(?:end of |sending )?(MAIL|DATA|message|content)\b/i

/**
 * Classifies a failure like the SMTP reply that it quotes. If it names no command, RCPT is assumed.
 */
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

/** Parses `rfc822; ada@example.org`, with the xtext encoding of RFC 3461 decoded. */
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

/** Returns the first part of one of these types within the multipart of the message itself. */
const partOf = (root: Part, types: ReadonlySet<string>): Part | undefined => {
  let left = limits.parts
  const find = (part: Part): Part | undefined => {
    if (left-- <= 0) return undefined
    if (types.has(part.type)) return part
    // Parts of the returned message are not written by the reporting server.
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
 * Parses the blocks of fields (RFC 3464 section 2.3): one for the message, then one per recipient. Returns undefined if
 * no block names a recipient.
 */
const fromReport = (raw: Buffer, part: Part): ReadonlyArray<Failure> | undefined => {
  const bytes = Buffer.from(Decode.bytes(raw, part, limits.report))
  const found: Array<Failure> = []
  let isNamed = false
  let at = 0
  while (at < bytes.length && found.length < limits.recipients) {
    const block = Header.read(bytes, at, bytes.length)
    at = block.bodyStart
    const field = (name: string) => Header.header(bytes, block.rows, name)
    const final = field("final-recipient")
    const original = field("original-recipient")
    // Some servers write more than one empty line between blocks.
    if (final === undefined && original === undefined) continue
    isNamed = true
    // Some servers add text after the keyword.
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

/** Phrases of permanent failures, of delays, and of invalid recipients. */
const permanentFailure =
  /undeliver|could not be delivered|couldn't be delivered|was not delivered|wasn't delivered|delivery (?:has )?failed|delivery failure|delivery status notification \(failure\)|failure notice|returned mail|mail delivery failed|permanent (?:fatal )?error|did not reach|unable to deliver|rejected your message|unzustellbar/i
const delayed =
  /will (?:keep trying|be retried|continue to)|delivery status notification \(delay\)|still being tried|not yet been delivered|warning: could not send|message delayed|delayed mail/i
const invalidRecipient =
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

/** Returns the lines of a text before the returned message, without quoted lines. */
const ownWords = (text: string): ReadonlyArray<string> => {
  const lines = text.slice(0, limits.text).split("\n")
  const end = lines.findIndex(
    (line) => line.startsWith("Received: ") || (/^\s{0,8}--/.test(line) && quoting.test(line.slice(0, 200))),
  )
  return (end < 0 ? lines : lines.slice(0, end)).filter((line) => !line.startsWith(">"))
}

/** A line that starts with an address, alone or followed by a colon: `<ada@example.org>:`. */
const heading = /^\s{0,8}<?[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}>?\s{0,8}(?::|$)/

/** Returns the sections of a text, each starting with such a line. */
const sectionsOf = (lines: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const sections: Array<Array<string>> = []
  for (const line of lines) {
    if (sections.length < limits.recipients && heading.test(line)) sections.push([line])
    else sections.at(-1)?.push(line)
  }
  return sections
}

interface Diagnosis {
  readonly status: string | null
  readonly diagnostic: string | null
  /** Whether the diagnostic has an SMTP code. */
  readonly hasCode: boolean
  readonly hard: boolean
}

const diagnose = (lines: ReadonlyArray<string>): Diagnosis => {
  const status = statusIn(lines.join("\n"))
  const line =
    lines.find((one) => /\b[45]\d\d[ -]|\b[45]\.\d{1,3}\.\d{1,3}\b/.test(one)) ??
    lines.find((one) => invalidRecipient.test(one))
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
  if (delayed.test(whole) || !(permanentFailure.test(whole) || failed !== undefined)) return []
  const all = diagnose(own)
  const sections = sectionsOf(own).map((lines) => ({
    addresses: addressesIn(lines.join("\n")),
    diagnosis: diagnose(lines),
  }))
  const failure = (addresses: ReadonlyArray<string>, diagnosis: Diagnosis): Failure => {
    const { status, diagnostic, hard } = diagnosis.hasCode ? diagnosis : all
    return { addresses, status, diagnostic: diagnosis.diagnostic ?? diagnostic, hard }
  }
  const named = addressesIn(failed ?? "")
  if (named.length > 0) {
    return named.map((one) => {
      const section = sections.find(({ addresses }) => addresses[0] === one)
      return failure(section?.addresses ?? [one], section?.diagnosis ?? all)
    })
  }
  return sections.length > 0
    ? sections.map(({ addresses, diagnosis }) => failure(addresses, diagnosis))
    : [failure(addressesIn(words), all)]
}

/** Authors of bounces that are not delivery reports. Automatic replies have other authors. */
const daemon = /\bmailer-?daemon\b|\bpostmaster@|mail delivery (?:sub)?system/i

/** Returns the failures that a message reports, empty if it is not a bounce. `text` is the body as plain text. */
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
  // An automatic reply may quote a bounce, so phrases only count if a mail server wrote them.
  const isAnswer = /auto-replied/i.test(field("auto-submitted") ?? "")
  const isReport = root.type === "multipart/report" && !isAnswer
  if (!isReport && failed === undefined && !daemon.test(field("from") ?? "")) return []
  return fromText(subject.slice(0, 500), text ?? "", failed)
}
