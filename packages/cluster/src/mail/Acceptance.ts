/**
 * Taking messages into a Mailbox: what waits at the same time is stored together ({@link InboundBatch}), in the order in which
 * it came, and what became of each is told for each.
 *
 * A message leaves a mark under its transaction's key, which the gateway removes when its 250 has gone out. A message that
 * finds the mark of another is that transaction again, as far as anyone knows, and is not stored.
 */
import { MailRefused, type ReceiptOfMail, type ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { Effect, Exit } from "effect"
import type { SqlError } from "effect/sql"
import type { FenceLost, Write } from "../actor/Write.ts"
import { type InboundBatch, weightOf } from "./InboundBatch.ts"
import * as NearlyFull from "./NearlyFull.ts"
import * as Threading from "./Threading.ts"

/** Messages of one Mailbox in one statement: as many as are worth a round trip, and far from what the driver takes. */
export const together = { most: 64, heaviest: { weight: 8 * 1024 * 1024, of: weightOf } }

type Outcome = Exit.Exit<ReceiptOfMail, MailRefused>

const stored: Outcome = Exit.succeed({ repeated: false })
const repeated: Outcome = Exit.succeed({ repeated: true })
const full: Outcome = Exit.fail(new MailRefused({ reason: "full" }))

/** Answers what became of each message, in their order. */
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
      // One that did not fit beside those before it may fit beside those that were stored.
      else if (BigInt(row.used) + BigInt(mail.size) <= BigInt(quotaBytes)) again.push(mail)
      else outcomes.set(mail, full)
    }
    left = [...again, ...left.slice(group.length)]
  }
  yield* NearlyFull.warn(write, used, quotaBytes)
  return mails.map((mail) => outcomes.get(mail)!)
})

const keyOf = (mail: ReceivedMail) => (mail.key === undefined ? mail.message_id : Buffer.from(mail.key).toString("hex"))

/** How many of the messages, from the first one on, say nothing of one another: a statement does not see its own rows. */
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
