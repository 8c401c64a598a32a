/** Reads the sums that `UsageCounters` writes. The sums of an account include its deleted Identities. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { toPublic } from "@svc/domain/Ids"
import { identitiesAtMost, type Step, stepMillis, type Usage, type UsagePoint } from "@svc/domain/usage/UsageApi"
import { Context, Effect, Layer } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import type { UsageKind } from "./UsageCounters.ts"

/** A span of whole steps; `to` is exclusive. */
export interface Span {
  readonly from: Date
  readonly to: Date
  readonly step: Step
}

/** A row of sums. Sums of one account stay below 2^53. */
interface Row {
  readonly at: Date
  readonly kind: UsageKind
  readonly webhook_id: string | null
  readonly count: number
  readonly failed: number
  readonly millis: number
  readonly bytes_in: number
  readonly bytes_out: number
}

type Counts = { -readonly [K in keyof UsagePoint]: UsagePoint[K] }

const emptyAt = (at: Date): Counts => ({
  at,
  mail_received: 0,
  mail_sent: 0,
  mail_refused: 0,
  deliveries_succeeded: 0,
  deliveries_failed: 0,
  delivery_latency_ms: null,
  tunnel_requests: 0,
  tunnel_errors: 0,
  tunnel_latency_ms: null,
  tunnel_bytes_in: 0,
  tunnel_bytes_out: 0,
  api_calls: 0,
  mailbox_bytes: null,
})

const mean = (millis: number, count: number) => (count === 0 ? null : Math.round((millis / count) * 10) / 10)

/** Returns one point per step that has rows. */
export const pointsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<UsagePoint> => {
  const points = new Map<number, Counts>()
  for (const { at, kind, count, failed, millis, bytes_in, bytes_out } of rows) {
    const point = points.get(at.getTime()) ?? emptyAt(at)
    points.set(at.getTime(), point)
    switch (kind) {
      case "mail_received":
      case "mail_sent":
      case "mail_refused":
        point[kind] = count
        break
      case "delivery":
        point.deliveries_succeeded = count - failed
        point.deliveries_failed = failed
        point.delivery_latency_ms = mean(millis, count)
        break
      case "tunnel":
        point.tunnel_requests = count
        point.tunnel_bytes_in = bytes_in
        point.tunnel_bytes_out = bytes_out
        break
      case "tunnel_http":
        point.tunnel_errors = failed
        point.tunnel_latency_ms = mean(millis, count - failed)
        break
      case "call":
        point.api_calls = count
        break
      case "mailbox":
        point.mailbox_bytes = count
    }
  }
  return [...points.values()].toSorted((a, b) => a.at.getTime() - b.at.getTime())
}

const make = Effect.map(Reads, (sql) => {
  const stepOf = ({ step }: Span) => sql`date_bin(${`1 ${step}`}::interval, u.hour, '2000-01-01Z')`
  const sums = sql`
    case when u.kind = 'mailbox' then max(u.count) else sum(u.count) end::float8 as count, sum(u.failed)::float8 as failed,
    sum(u.millis)::float8 as millis, sum(u.bytes_in)::float8 as bytes_in, sum(u.bytes_out)::float8 as bytes_out`
  const within = (org: string, span: Span) => sql`u.org_id = ${org} and u.hour >= ${span.from} and u.hour < ${span.to}`
  const ofIdentity = (identity: IdentityId | undefined) =>
    identity === undefined ? sql`u.identity_id is null` : sql`u.identity_id = ${identity}`

  const points = (org: string, identity: IdentityId | undefined, span: Span) =>
    sql<Row>`
      select ${stepOf(span)} as at, u.kind, null as webhook_id, ${sums}
      from usage_hour u where ${within(org, span)} and ${ofIdentity(identity)} group by 1, u.kind`

  const webhooks = (org: string, identity: IdentityId, span: Span) =>
    Effect.map(
      sql<Row & { webhook_id: string }>`
        select ${stepOf(span)} as at, u.kind, u.webhook_id, ${sums}
        from usage_hour u where ${within(org, span)} and u.identity_id = ${identity} and u.kind = 'delivery'
        group by 1, u.kind, u.webhook_id order by 1, u.webhook_id`,
      (rows) =>
        rows.map(({ at, webhook_id, count, failed, millis }) => ({
          at,
          webhook_id: toPublic("wh_", webhook_id),
          succeeded: count - failed,
          failed,
          latency_ms: mean(millis, count),
        })),
    )

  const identities = (org: string, identity: IdentityId | undefined, span: Span) =>
    sql<{ identity: string; at: Date; activity: number }>`
      with active as (
        select u.identity_id, ${stepOf(span)} as at, sum(u.count)::float8 as activity from usage_hour u
        where ${within(org, span)} and ${identity === undefined ? sql`u.identity_id is not null` : ofIdentity(identity)}
          -- The requests of \`tunnel_http\` are part of \`tunnel\`, and a size is no activity.
          and u.kind not in ('tunnel_http', 'mailbox')
        group by 1, 2
      ),
      most as (select identity_id from active group by 1 order by sum(activity) desc, 1 limit ${identitiesAtMost})
      select i.handle as identity, a.at, a.activity
      from most join active a using (identity_id) join identity i on i.id = a.identity_id order by i.canonical, a.at`

  return {
    /** Returns the sums of an Identity or of the whole account. */
    read: Effect.fn("UsageQueries.read")(function* (
      org: string,
      identity: IdentityId | undefined,
      span: Span,
      byIdentity: boolean,
    ) {
      const found: Pick<Usage, "points" | "webhooks" | "identities"> = {
        points: pointsOf(yield* points(org, identity, span)),
        webhooks: identity === undefined ? [] : yield* webhooks(org, identity, span),
        identities: byIdentity ? yield* identities(org, identity, span) : [],
      }
      return found
    }, orUnavailable),
    /** Returns the hours of an Identity, or those of the account. */
    hours: Effect.fn("UsageQueries.hours")(function* (org: string, identity: IdentityId | undefined) {
      const rows = yield* sql<Row>`
        select u.hour as at, u.kind, null as webhook_id, ${sums}
        from usage_hour u where u.org_id = ${org} and ${ofIdentity(identity)} group by u.hour, u.kind`
      return pointsOf(rows)
    }, orUnavailable),
  }
})

/** Returns the span of whole steps that contains the times. */
export const spanOf = (step: Step, from: Date, to: Date): Span => {
  const size = stepMillis[step]
  return {
    step,
    from: new Date(Math.floor(from.getTime() / size) * size),
    to: new Date(Math.ceil(to.getTime() / size) * size),
  }
}

export class UsageQueries extends Context.Service<UsageQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/usage/UsageQueries",
) {
  static readonly layer = Layer.effect(UsageQueries, make)
}
