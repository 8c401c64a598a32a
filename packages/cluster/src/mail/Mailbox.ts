/**
 * Commands that write to a Mailbox. Only the Identity's actor runs them, so UIDs are assigned in commit order and
 * without gaps. {@link Flags} changes flags.
 */
import { MailRefused, type ReceivedMail, type ReceiptOfMail } from "@svc/domain/mail/MailboxProtocol"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect, Exit } from "effect"
import type { SqlError } from "effect/sql"
import { type ActorHandlers, once } from "../actor/ActorHandlers.ts"
import { commit, type Write, type FenceLost } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { raise } from "../events/Raise.ts"
import { type InboundBatch, weightOf } from "./InboundBatch.ts"
import * as Flags from "./Flags.ts"
import { unplaced } from "./folders/FolderPlacement.ts"
import { Timing } from "../Timing.ts"
import * as NearlyFull from "./NearlyFull.ts"
import * as Threading from "./Threading.ts"
import type { UsageCounters } from "../usage/UsageCounters.ts"

export const handlers = (
  { fromOutside, fromOutsideTogether, onPresent }: ActorHandlers,
  /** Capacity of a Mailbox in bytes. */
  limits: { readonly mailboxBytes: number },
  arrivals: InboundBatch["Service"],
  usage: UsageCounters["Service"],
) => ({
  ReceiveMail: fromOutsideTogether(
    (write, mails: ReadonlyArray<ReceivedMail>) => receive(write, mails, limits.mailboxBytes, arrivals),
    (identity) =>
      Effect.fail(
        new MailRefused({ reason: identity === undefined || identity.status === "deleting" ? "gone" : "not_yet" }),
      ),
    together,
  ),
  RefuseMail: fromOutside(
    (write, refusal: Refusal) =>
      Effect.tap(refuse(write, refusal), () =>
        Effect.sync(() => usage.add({ identity: write.identity.id }, "mail_refused", { count: 1 })),
      ),
    () => Effect.void,
  ),
  RemoveMessage: onPresent(once("RemoveMessage", removeOne)),
  RemoveMessages: onPresent(removeSeveral),
  ChangeFlags: onPresent(Flags.change),
})

interface Refusal {
  readonly reason: "size" | "full"
  readonly from: string
}

/** Counts a rejected message; the first one in an hour raises `email.refused`. */
const refuse = Effect.fnUntraced(function* (write: Write, refusal: Refusal) {
  const { sql, identity, at } = write
  yield* commit(
    write,
    sql`
    counted as (
      update mailbox set refusals = refusals + 1 where identity_id = ${identity.id}::uuid and exists (select from fence)
        and refused_at > ${at}::timestamptz - ${Timing.refusalWindow}::interval
    ),
    opened as (
      update mailbox m set refusals = 0, refused_at = ${at}
      from mailbox before
      where m.identity_id = ${identity.id}::uuid and before.identity_id = m.identity_id and exists (select from fence)
        and (m.refused_at is null or m.refused_at <= ${at}::timestamptz - ${Timing.refusalWindow}::interval)
      returning before.refusals as earlier
    ),
    ${raise(write, "opened", "email.refused", {
      reason: refusal.reason,
      from: refusal.from,
      // This message, plus those rejected since the last Event.
      count: sql`opened.earlier + 1`,
    })}`,
    { raises: true },
  )
})

interface Removal {
  readonly org_id: string
  readonly message_ids: ReadonlyArray<string>
}

/** Removes messages. Their UIDs are never reused, and their positions are remembered for pagination. */
const removeAll = (write: Write, { message_ids }: Removal) => {
  const { sql, identity, at } = write
  return commit<{ removed: ReadonlyArray<string>; modseq: number }>(
    write,
    sql`
    gone as materialized (
      select id, uid, size from message
      where id = any(${message_ids}::uuid[]) and identity_id = ${identity.id}::uuid and not is_draft
        and exists (select from fence)
    ),
    box as (
      update mailbox set modseq = modseq + 1, bytes_used = bytes_used - all_gone.bytes
      from (select sum(size)::bigint as bytes from gone) all_gone
      where identity_id = ${identity.id}::uuid and all_gone.bytes is not null
      returning modseq
    ),
    removed as (delete from message m using gone, box where m.id = gone.id),
    ${unplaced(sql)},
    place as (
      insert into removed_message (id, identity_id, uid, removed_at, modseq)
      select id, ${identity.id}::uuid, uid, ${at}::timestamptz, box.modseq from gone cross join box
    ),
    contents as (delete from message_content c using gone where c.message_id = gone.id)
    ${auditWriteWith(sql, write.note, "gone")}`,
    {
      columns: sql`
        array(select id::text from gone) as removed,
        coalesce((select modseq from box), (select modseq from mailbox where identity_id = ${identity.id}::uuid), 0)::float8 as modseq`,
      gate: "gone",
    },
  )
}

const removeSeveral = (write: Write, removal: Removal) =>
  Effect.map(removeAll(write, removal), ({ removed, modseq }) => ({ removed, modseq }))

const removeOne = Effect.fnUntraced(function* (
  write: Write,
  { org_id, message_id }: { readonly org_id: string; readonly message_id: string },
) {
  const { removed } = yield* removeAll(write, { org_id, message_ids: [message_id] })
  if (removed.length === 0) return yield* new NotFound({ detail: "The message does not exist." })
})

/**
 * Limits of one statement for one Mailbox: enough messages to save round trips, and far below what the driver can send.
 */
const together = { most: 64, heaviest: { weight: 8 * 1024 * 1024, of: weightOf } }

type Outcome = Exit.Exit<ReceiptOfMail, MailRefused>

const stored: Outcome = Exit.succeed({ repeated: false })
const repeated: Outcome = Exit.succeed({ repeated: true })
const full: Outcome = Exit.fail(new MailRefused({ reason: "full" }))

/**
 * Stores the messages and returns the outcome of each, in the same order. Concurrent messages are stored together
 * ({@link InboundBatch}), in order of arrival.
 *
 * Each message leaves a mark under the key of its SMTP transaction. The gateway removes the mark after it has sent the
 * 250 reply. A message whose key already has a mark of another message counts as a repeat of that transaction and is
 * not stored again.
 */
const receive = Effect.fnUntraced(function* (
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
