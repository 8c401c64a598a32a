/**
 * Writing to a Mailbox, which only its Identity's actor does, so that UIDs are given in commit order and without gaps.
 * How messages are taken stands in {@link Acceptance}.
 */
import { MailRefused, type ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { type Handling, once } from "../actor/Handling.ts"
import { commit, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import * as Acceptance from "./Acceptance.ts"
import { Timing } from "../Timing.ts"

export const handlers = (
  { fromOutside, fromOutsideTogether, onPresent }: Handling,
  /** Bytes a Mailbox holds. */
  limits: { readonly mailboxBytes: number },
) =>
  Effect.map(
    fromOutsideTogether(
      (write, mails: ReadonlyArray<ReceivedMail>) => Acceptance.receive(write, mails, limits.mailboxBytes),
      (identity) =>
        Effect.fail(
          new MailRefused({ reason: identity === undefined || identity.status === "deleting" ? "gone" : "not_yet" }),
        ),
      Acceptance.together,
    ),
    (ReceiveMail) => ({
      ReceiveMail,
      RefuseMail: fromOutside(refuse, () => Effect.void),
      RemoveMessage: onPresent(once("RemoveMessage", remove)),
    }),
  )

/** Counts a message turned away; the first one in an hour raises `email.refused`. */
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
      // The message at hand and those turned away since the Event before.
      count: sql`opened.earlier + 1`,
    })}`,
    { raises: true },
  )
})

/** Removes one message; its UID is never given again, and where it stood is remembered. */
const remove = Effect.fnUntraced(function* (
  write: Write,
  { message_id }: { readonly org_id: string; readonly message_id: string },
) {
  const { sql, identity, at } = write
  const row = yield* commit<{ gone: boolean }>(
    write,
    sql`
    gone as (
      delete from message where id = ${message_id} and identity_id = ${identity.id} and exists (select from fence) returning id, uid, size
    ),
    place as (
      insert into removed_message (id, identity_id, uid, removed_at)
      select id, ${identity.id}::uuid, uid, ${at}::timestamptz from gone
    ),
    contents as (delete from message_content c using gone where c.message_id = gone.id),
    box as (update mailbox set bytes_used = bytes_used - gone.size from gone where identity_id = ${identity.id})`,
    { columns: sql`exists (select from gone) as gone` },
  )
  if (!row.gone) return yield* new NotFound({ detail: "There is no such message." })
})
