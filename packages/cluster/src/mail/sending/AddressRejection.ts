/**
 * Decides whether a rejection says that the recipient's address is bad, for replies in an SMTP session and for delivery
 * reports alike. Everything else (policy, content, size, a full mailbox, a sender that is not trusted, a queue that
 * expired) ends the message and says nothing about the address.
 */
import type { SmtpReply } from "./MailTransport.ts"

/**
 * Enhanced status codes about the destination address (RFC 3463): no such mailbox, no such domain, bad syntax, moved
 * without a forwarding address, null MX (RFC 7505), mailbox disabled.
 */
const addressStatuses = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"])
/** The codes with which servers that know no enhanced status codes reject an address at RCPT. */
const addressCodes = new Set([550, 551, 553])

const mailbox = "(?:user|mailbox|mail box|recipient|address|account|addressee|local part)"
const bad =
  "(?:unknown|invalid|unavailable|disabled|inactive|suspended|not found|not known|not local|not exist|doesn't exist|no longer|unroute?able|nicht gefunden|unbekannt)"
const badMailbox = new RegExp(
  `\\b(?:no (?:such|mailbox)|unknown|invalid|nonexistent|non-existent)\\b.{0,30}\\b${mailbox}|\\bno (?:mailbox|such (?:person|name))\\b|\\b${mailbox}\\b.{0,80}\\b${bad}|\\bunroute?able\\b`,
  "i",
)
/** Words of rejections that are about the sender, its host or the content, even where they name a mailbox. */
const otherReason =
  /\b(?:relay\w*|spam\w*|polic(?:y|ies)|sender|block(?:ed|list\w*)|blacklist\w*|reputation|authenticat\w*|quota|full|temporar\w*|access denied)\b/i

/** Returns the first enhanced status code in a text, as in `(#5.1.1)`. */
export const statusIn = (text: string): string | null =>
  /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(text)?.[1] ?? null

/** Returns undefined for codes that give no reason (`5.0.0`). */
const specific = (status: string | null) => (status === null || /^\d\.0\.0$/.test(status) ? undefined : status)

/** Whether nothing sent to the address will ever arrive, so that the address is suppressed. */
export const isAddressRejected = (reply: Omit<SmtpReply, "host">): boolean => {
  // At MAIL the server has not seen the recipient, and a reply for several recipients names none of them.
  if (reply.command === "MAIL" || reply.shared === true) return false
  const status = specific(reply.status) ?? specific(statusIn(reply.text))
  if (status !== undefined) return addressStatuses.has(status)
  if (reply.code === null || !addressCodes.has(reply.code) || reply.command !== "RCPT") return false
  return badMailbox.test(reply.text) && !otherReason.test(reply.text)
}
