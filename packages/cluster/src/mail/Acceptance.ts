/**
 * Accepts received messages into a Mailbox. Concurrent messages of one Mailbox are stored together ({@link
 * InboundBatch}), in order of arrival, and each gets its own outcome.
 *
 * Each message leaves a mark under the key of its SMTP transaction. The gateway removes the mark after it has sent the
 * 250 reply. A message whose key already has a mark of another message counts as a repeat of that transaction and is
 * not stored again.
 */
import { MailRefused, type ReceiptOfMail, type ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { Effect, Exit } from "effect"
import type { SqlError } from "effect/sql"
import type { FenceLost, Write } from "../actor/Write.ts"
import { type InboundBatch, weightOf } from "./InboundBatch.ts"
import * as NearlyFull from "./NearlyFull.ts"
import * as Threading from "./Threading.ts"

/**
 * Limits of one statement for one Mailbox: enough messages to save round trips, and far below what the driver can send.
 */
export const together = { most: 64, heaviest: { weight: 8 * 1024 * 1024, of: weightOf } }

type Outcome = Exit.Exit<ReceiptOfMail, MailRefused>

const stored: Outcome = Exit.succeed({ repeated: false })
const repeated: Outcome = Exit.succeed({ repeated: true })
const full: Outcome = Exit.fail(new MailRefused({ reason: "full" }))

/** Stores the messages and returns the outcome of each, in the same order. */
export const receive = Effect.fnUntraced(function* (
  write: Write,
  mails: ReadonlyArray<ReceivedMail>,
  quotaBytes: number,
  arrivals: InboundBatch["Service"],
): Effect.fn.Return<ReadonlyArray<Outcome>, SqlError.SqlError | FenceLost> {
  const outcomes = new Map<ReceivedMail, Outcome>()
  let left = mails
  let used = 0
  while (left.length > 0) {
    const group = left.slice(0, independent(left))
    const row = yield* arrivals.store({ write, mails: group, quotaBytes })
    used = Number(row.used)
    const known = new Set(row.known)
    for (const id of row.stored) known.add(id)
    const again: Array<ReceivedMail> = []
    for (const mail of group) {
      if (known.has(mail.message_id)) outcomes.set(mail, stored)
      else if (row.repeated.includes(mail.message_id)) outcomes.set(mail, repeated)
      // A message may fit once it is known that earlier messages were not stored.
      else if (BigInt(row.used) + BigInt(mail.size) <= BigInt(quotaBytes)) again.push(mail)
      else outcomes.set(mail, full)
    }
    left = [...again, ...left.slice(group.length)]
  }
  yield* NearlyFull.warn(write, used, quotaBytes)
  return mails.map((mail) => outcomes.get(mail)!)
})

const keyOf = (mail: ReceivedMail) => (mail.key === undefined ? mail.message_id : Buffer.from(mail.key).toString("hex"))

/**
 * Returns how many of the first messages are independent of each other. A statement does not see the rows it inserts,
 * so a message that depends on an earlier one needs the next statement.
 */
const independent = (mails: ReadonlyArray<ReceivedMail>): number => {
  if (mails.length === 1) return 1
  const keys = new Set<string>()
  const depends = Threading.dependence()
  const end = mails.findIndex((mail) => {
    if (depends(mail) || keys.has(keyOf(mail))) return true
    keys.add(keyOf(mail))
    return false
  })
  return end < 0 ? mails.length : end
}
