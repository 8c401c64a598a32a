/**
 * Commands that write to a Mailbox. Only the Identity's actor runs them, so UIDs are assigned in commit order and
 * without gaps. {@link Acceptance} stores messages, {@link Flags} changes flags.
 */
import { MailRefused, type ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { type ActorHandlers, once } from "../actor/ActorHandlers.ts"
import { commit, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import * as Acceptance from "./Acceptance.ts"
import type { InboundBatch } from "./InboundBatch.ts"
import * as Flags from "./Flags.ts"
import { unplaced } from "./folders/FolderPlacement.ts"
import { Timing } from "../Timing.ts"

export const handlers = (
  { fromOutside, fromOutsideTogether, onPresent }: ActorHandlers,
  /** Capacity of a Mailbox in bytes. */
  limits: { readonly mailboxBytes: number },
  arrivals: InboundBatch["Service"],
) => ({
  ReceiveMail: fromOutsideTogether(
    (write, mails: ReadonlyArray<ReceivedMail>) => Acceptance.receive(write, mails, limits.mailboxBytes, arrivals),
    (identity) =>
      Effect.fail(
        new MailRefused({ reason: identity === undefined || identity.status === "deleting" ? "gone" : "not_yet" }),
      ),
    Acceptance.together,
  ),
  RefuseMail: fromOutside(refuse, () => Effect.void),
  RemoveMessage: onPresent(once("RemoveMessage", removeOne)),
  RemoveMessages: onPresent(removeSeveral),
  ChangeFlags: onPresent(Flags.change),
})

/** Counts a rejected message; the first one in an hour raises `email.refused`. */
const refuse = Effect.fnUntraced(function* (
  write: Write,
  refusal: { readonly reason: "size" | "full"; readonly from: string },
) {
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
    contents as (delete from message_content c using gone where c.message_id = gone.id)`,
    {
      columns: sql`
        array(select id::text from gone) as removed,
        coalesce((select modseq from box), (select modseq from mailbox where identity_id = ${identity.id}::uuid), 0)::float8 as modseq`,
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
