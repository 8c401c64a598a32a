/** Warns the account holder when a Mailbox is nearly full, since a full Mailbox rejects mail. */
import { nearAt } from "@svc/domain/limits/LimitApi"
import { Effect } from "effect"
import { commit, learned, recalled, type Write } from "../actor/Write.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { Timing } from "../Timing.ts"

/** Key in the actor's memory: until when no further warning is raised. */
const part = "mailbox.near.until"

/**
 * Raises `limit.near` if a commit left the Mailbox above four fifths of its quota, at most once a day. The message is
 * stored already, so a failure is only logged, and the next message tries again.
 */
export const warn = Effect.fnUntraced(function* (write: Write, used: number, quotaBytes: number) {
  const { sql, identity, at } = write
  const near = nearAt(quotaBytes)
  if (used < near || (yield* recalled(write, part, Effect.succeed(0))) > at.getTime()) return
  // Messages may be stored concurrently: only the first raises the Event.
  learned(write, part, at.getTime() + Timing.nearlyFullMillis)
  const since = new Date(at.getTime() - Timing.nearlyFullMillis)
  yield* commit(
    // The command id belongs to the statement that stored the message.
    { ...write, command: undefined },
    sql`
      filling as (
        select m.bytes_used from mailbox m
        where m.identity_id = ${identity.id}::uuid and m.bytes_used >= ${near}::bigint and exists (select from fence)
          and not exists (
            select from event e where e.org_id = ${identity.orgId}::uuid and e.type = 'limit.near'
              and e.data ->> 'limit' = 'mailbox_bytes' and e.data ->> 'identity' = ${identity.handle}::text
              and e.created_at > ${since}::timestamptz)
      ),
      ${raiseForOrg({ ...write, org: identity.orgId }, "filling", "limit.near", {
        limit: "mailbox_bytes",
        identity: identity.handle,
        used: sql`bytes_used`,
        quota: quotaBytes,
        window: null,
      })}`,
  ).pipe(
    Effect.catchTag("SqlError", (error) => {
      learned(write, part, 0)
      return Effect.logWarning("The warning about a nearly full Mailbox could not be stored", error)
    }),
  )
})
