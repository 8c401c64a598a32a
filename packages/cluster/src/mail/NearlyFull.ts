/** Warns the account holder of a Mailbox that is nearly full, since mail is turned away once it is. */
import { nearAt } from "@svc/domain/limits/LimitApi"
import { Effect } from "effect"
import { commit, learned, recalled, type Write } from "../actor/Write.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { Timing } from "../Timing.ts"

/** The part of the actor's memory that says until when nothing more is told. */
const part = "mailbox.near.until"

/**
 * Raises `limit.near` after a commit that left so many bytes in the Mailbox, if four fifths of the quota are used: once a day
 * while they stay so. The message is stored, so a failure here is logged and told with the next one.
 */
export const warn = Effect.fnUntraced(function* (write: Write, used: number, quotaBytes: number) {
  const { sql, identity, at } = write
  const near = nearAt(quotaBytes)
  if (used < near || (yield* recalled(write, part, Effect.succeed(0))) > at.getTime()) return
  // Messages may arrive beside one another: the first one tells.
  learned(write, part, at.getTime() + Timing.nearlyFullMillis)
  const since = new Date(at.getTime() - Timing.nearlyFullMillis)
  yield* commit(
    // The command is the message's, which its own statement has done.
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
      return Effect.logWarning("The account holder was not warned of a nearly full Mailbox", error)
    }),
  )
})
