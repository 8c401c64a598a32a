/** What a refusal of a mail server is about: the address itself, or something else that may be otherwise the next time. */
import type { SmtpReply } from "./MailTransport.ts"

/**
 * Statuses that say the address will take nothing (RFC 3463): no such mailbox, no such system, a bad address, moved
 * without a trace, no null MX (RFC 7505), and a mailbox that is disabled.
 */
const hardStatuses = new Set(["5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"])
/** What servers without enhanced codes answer to RCPT for an address they do not know. */
const hardCodes = new Set([550, 551, 553])

/** Whether nothing will reach the address. A mailbox that is full, or a message that was not wanted, is not that. */
export const isHard = (reply: Pick<SmtpReply, "code" | "status"> | null): boolean => {
  if (reply === null) return false
  if (reply.status !== null && reply.status !== "5.0.0") return hardStatuses.has(reply.status)
  return reply.code !== null && hardCodes.has(reply.code)
}
