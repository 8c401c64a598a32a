/**
 * Records bounces that arrive after a mail server accepted a message: the delivery becomes `bounced`, and the Identity
 * gets an Event.
 */
import { toPublic } from "@svc/domain/Ids"
import type { RecordBounce } from "@svc/domain/mail/SendingProtocol"
import { Effect } from "effect"
import type { Rpc } from "effect/rpc"
import type { Statement } from "effect/sql"
import type { ActorHandlers } from "../../actor/ActorHandlers.ts"
import { commit, type Write } from "../../actor/Write.ts"
import { raise } from "../../events/Raise.ts"

type Bounce = Rpc.Payload<typeof RecordBounce>

export const handlers = ({ fromOutside }: ActorHandlers) => ({
  RecordBounce: fromOutside(record, () => Effect.void),
})

/**
 * CTE `suppressed`: suppresses the rows of `gate` (`address`, `diagnostic`) that are `hard`. The Allowed Recipient of the
 * address stays listed, but no mail is sent to it until the suppression is lifted. A bounce never adds or renews an
 * Allowed Recipient. The account holder's own address is allowed without a row; a row only records its suppression.
 */
export const suppressed = (
  { sql, identity, at }: Pick<Write, "sql" | "at"> & { readonly identity: Pick<Write["identity"], "id" | "orgId"> },
  gate: Statement.Fragment,
): Statement.Fragment => sql`
  suppressed as (
    insert into allowed_recipient (identity_id, address, reason, created_at, suppressed_at, suppression)
    select ${identity.id}::uuid, lower(gone.address), coalesce(present.reason, 'account_owner'), ${at}::timestamptz,
           ${at}::timestamptz, min(coalesce(gone.diagnostic, 'The address does not exist.'))
    from (${gate}) gone
    left join allowed_recipient present on present.identity_id = ${identity.id}::uuid and present.address = lower(gone.address)
    left join org o on o.id = ${identity.orgId}::uuid and o.email = lower(gone.address)
    where gone.hard and (present.address is not null or o.id is not null)
    group by lower(gone.address), present.reason
    on conflict (identity_id, address) do update
    set suppressed_at = coalesce(allowed_recipient.suppressed_at, excluded.suppressed_at),
        suppression = coalesce(allowed_recipient.suppression, excluded.suppression)
  )`

/**
 * Records a bounce once per delivery, even if it arrives before we recorded the handover. A bounce for an address to
 * which this Identity sent nothing changes nothing.
 *
 * Every recipient sees the bounce address, and recipients at one domain share it, so each of them can forge a report
 * about the others. If there are other recipients, the bounce is reported, but it suppresses no address and does not
 * end a deferred delivery.
 */
const record = (write: Write, bounce: Bounce) => {
  const { sql, identity, at } = write
  const which =
    bounce.recipient === null
      ? sql`r.outbox_id = ${bounce.outbox_id}::uuid`
      : sql`lower(r.address) = ${bounce.recipient.toLowerCase()}::text`
  const shared = sql`exists (
    select from outgoing_recipient other
    where other.message_id = r.message_id and other.outbox_id = r.outbox_id and other.address <> r.address)`
  const reply = { code: null, status: bounce.status, text: bounce.diagnostic ?? "", host: null }
  return Effect.asVoid(
    commit(
      write,
      sql`
      bounced as (
        update outgoing_recipient r
        set status = 'bounced', reply = ${JSON.stringify(reply)}::jsonb, changed_at = ${at}::timestamptz
        from outgoing o
        where r.message_id = ${bounce.message_id}::uuid and o.message_id = r.message_id
          and o.identity_id = ${identity.id}::uuid and o.status in ('queued', 'done') and r.status <> 'bounced'
          and ${which} and (r.status <> 'deferred' or not ${shared}) and exists (select from fence)
        returning r.address, r.message_id, ${shared} as shared
      ),
      counted as (
        update outgoing set failed = failed + found.n from (select count(*)::int as n from bounced) found
        where message_id = ${bounce.message_id}::uuid and found.n > 0
      ),
      ${suppressed(write, sql`select address, ${bounce.diagnostic}::text as diagnostic, ${bounce.hard}::bool and not shared as hard from bounced`)},
      ${raise(write, "bounced", "email.bounced", {
        message_id: toPublic("msg_", bounce.message_id),
        recipient: sql`address`,
        kind: bounce.hard ? "hard" : "soft",
        status: bounce.status,
        diagnostic: bounce.diagnostic,
        bounced_at: at.toISOString(),
      })}`,
      { raises: true },
    ),
  )
}
