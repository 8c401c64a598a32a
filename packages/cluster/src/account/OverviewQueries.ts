/**
 * Reads the overview of an account. Every statement is bounded by the number of the account's Identities, Webhooks and keys,
 * never by the number of their messages or deliveries.
 */
import { type AddressBook, Addresses, email } from "@svc/domain/Addresses"
import type { IdentityStatus } from "@svc/domain/IdentityRef"
import { toPublic } from "@svc/domain/Ids"
import type { Prefix } from "@svc/domain/IdSchemas"
import {
  type IdentityOverview,
  keyNoticeMillis,
  type Need,
  needsOfKind,
  overviewIdentities,
} from "@svc/domain/usage/OverviewApi"
import { Clock, Context, Effect, Layer } from "effect"
import { orUnavailable, Reads, type Sql } from "../store/Database.ts"
import { joinFailing } from "../webhooks/WebhookState.ts"

interface NeedRow {
  readonly kind: "provisioning" | "approval" | "sign_in" | "webhook" | "key"
  readonly identity: string | null
  readonly id: string | null
  readonly name: string
  readonly reason: string | null
  readonly at: Date
}

/** Deliveries of a Webhook that are read at most; others may wait in its queue. */
const deliveriesRead = 100

const prefixes: { readonly [K in NeedRow["kind"]]?: Prefix } = { approval: "msg_", webhook: "wh_" }

const needs = (sql: Sql, org: string, now: number) => sql<NeedRow>`
  (
    select 'provisioning' as kind, handle as identity, null::uuid as id,
           coalesce((select step->>'name' from jsonb_array_elements(saga->'steps') step where step->>'status' = 'failed' limit 1),
                    '') as name,
           null as reason, (saga->>'started_at')::timestamptz as at
    from identity where org_id = ${org} and saga->>'status' = 'failed' order by id desc limit ${needsOfKind}
  )
  union all
  (
    select 'approval', i.handle, o.message_id, m.summary->>'subject', null, o.created_at
    from identity i join outgoing o on o.identity_id = i.id and o.status = 'awaiting_approval'
    join message m on m.id = o.message_id
    where i.org_id = ${org} order by o.message_id desc limit ${needsOfKind}
  )
  union all
  (
    select 'sign_in', i.handle, s.id, s.site, null, s.created_at
    from identity i join agent_sign_in s on s.identity_id = i.id and s.status = 'awaiting_approval'
    where i.org_id = ${org} and s.expires_at > ${new Date(now)}::timestamptz order by s.id desc limit ${needsOfKind}
  )
  union all
  (
    select 'webhook', i.handle, w.id, w.url, newest.reason, failing.since
    from identity i join webhook w on w.identity_id = i.id ${joinFailing(sql)}
    left join lateral (
      select coalesce(attempts->-1->>'error', 'HTTP ' || (attempts->-1->>'status_code')) as reason
      from (select id, attempts from delivery where webhook_id = w.id order by id desc limit ${deliveriesRead}) d
      where jsonb_array_length(attempts) > 0 order by id desc limit 1
    ) newest on true
    where i.org_id = ${org} and failing.since is not null order by failing.since desc limit ${needsOfKind}
  )
  union all
  (
    select 'key', i.handle, k.id, k.name, null, k.expires_at
    from api_key k left join identity i on i.id = k.identity_id
    where k.org_id = ${org} and k.revoked_at is null and k.replaced_by is null
      and k.expires_at > ${new Date(now)}::timestamptz and k.expires_at <= ${new Date(now + keyNoticeMillis)}::timestamptz
    order by k.expires_at limit ${needsOfKind}
  )`

interface IdentityRow {
  readonly handle: string
  readonly status: IdentityStatus
  readonly tunnel_connected: boolean
  readonly subject: string | null
  readonly sender: string | null
  readonly received_at: Date | null
}

/** Lists these Identities in their order, then the oldest ones. */
const identities = (sql: Sql, org: string, handles: ReadonlyArray<string>) => sql<IdentityRow>`
  select i.handle, i.status, i.tunnel_connected, m.summary->>'subject' as subject, m.summary->'from'->>'address' as sender,
         m.received_at
  from (
    select i.id, i.handle, i.status, i.tunnel_connected, first.n from identity i
    left join unnest(${handles}::text[]) with ordinality as first (handle, n) on first.handle = i.handle
    where i.org_id = ${org} order by first.n nulls last, i.id limit ${overviewIdentities}
  ) i
  left join lateral (
    select summary, received_at from message where identity_id = i.id and not is_draft order by uid desc limit 1
  ) m on true
  order by i.n nulls last, i.id`

const viewOf =
  (book: AddressBook, activityOf: (handle: string) => ReadonlyArray<number>) =>
  ({ handle, status, tunnel_connected, subject, sender, received_at }: IdentityRow): IdentityOverview => ({
    handle,
    status,
    email: email(book, handle),
    tunnel_connected,
    activity: activityOf(handle),
    latest_message: received_at === null ? null : { subject: subject ?? "", from: sender, received_at },
  })

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const book = yield* Addresses

  return {
    /** Returns what needs a person now, except for limits. */
    needs: Effect.fn("OverviewQueries.needs")(function* (org: string) {
      const now = yield* Clock.currentTimeMillis
      return (yield* needs(sql, org, now)).map((row): Need => {
        const prefix = prefixes[row.kind]
        return { ...row, id: row.id === null || prefix === undefined ? row.id : toPublic(prefix, row.id) }
      })
    }, orUnavailable),
    /** Returns the Identities with these Handles first, then others up to the maximum of the overview. */
    identities: (org: string, handles: ReadonlyArray<string>, activityOf: (handle: string) => ReadonlyArray<number>) =>
      orUnavailable(Effect.map(identities(sql, org, handles), (rows) => rows.map(viewOf(book, activityOf)))),
  }
})

export class OverviewQueries extends Context.Service<OverviewQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/account/OverviewQueries",
) {
  static readonly layer = Layer.effect(OverviewQueries, make)
}
