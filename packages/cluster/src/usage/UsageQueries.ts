/** Reads the sums that `UsageCounters` writes. The sums of an account include its deleted Identities. */
import type { IdentityId, IdentityRef } from "@svc/domain/IdentityRef"
import { toPublic } from "@svc/domain/Ids"
import {
  identitiesAtMost,
  metrics,
  type Step,
  stepMillis,
  type UsageMetric,
  type UsageSeries,
} from "@svc/domain/usage/UsageApi"
import { Context, Effect, Layer } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { millisOf, type UsageKind } from "./UsageCounters.ts"

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
  readonly bucket: number | null
  readonly count: number
  readonly failed: number
  readonly bytes_in: number
  readonly bytes_out: number
}

type Rows = ReadonlyArray<Row>
type Values = { readonly [M in UsageMetric]?: number }

const sum = (rows: Rows, of: "count" | "failed" | "bytes_in" | "bytes_out") =>
  rows.reduce((all, row) => all + row[of], 0)

/** Returns the duration in milliseconds that this share of the counted ones did not exceed; 0 if none was measured. */
const quantile = (rows: Rows, share: number): number => {
  const measured = rows
    .flatMap(({ bucket, count }) => (bucket === null ? [] : [{ bucket, count }]))
    .toSorted((a, b) => a.bucket - b.bucket)
  let left = share * measured.reduce((all, { count }) => all + count, 0)
  for (const { bucket, count } of measured) {
    left -= count
    if (left <= 0) return millisOf(bucket)
  }
  return 0
}

/** Computes the metrics of a step from its rows of each kind. */
const valuesOf: { readonly [K in UsageKind]: (rows: Rows) => Values } = {
  mail_received: (rows) => ({ mail_received: sum(rows, "count") }),
  mail_sent: (rows) => ({ mail_sent: sum(rows, "count") }),
  mail_refused: (rows) => ({ mail_refused: sum(rows, "count") }),
  delivery: (rows) => ({
    deliveries_succeeded: sum(rows, "count") - sum(rows, "failed"),
    deliveries_failed: sum(rows, "failed"),
    delivery_ms_p50: quantile(rows, 0.5),
    delivery_ms_p95: quantile(rows, 0.95),
  }),
  tunnel: (rows) => ({
    tunnel_requests: sum(rows, "count"),
    tunnel_bytes: sum(rows, "bytes_in") + sum(rows, "bytes_out"),
    tunnel_bytes_in: sum(rows, "bytes_in"),
    tunnel_bytes_out: sum(rows, "bytes_out"),
  }),
  tunnel_http: (rows) => ({
    tunnel_errors: sum(rows, "failed"),
    tunnel_ms_p50: quantile(rows, 0.5),
    tunnel_ms_p95: quantile(rows, 0.95),
  }),
  call: (rows) => ({ api_calls: sum(rows, "count") }),
  mailbox: (rows) => ({ mailbox_bytes: sum(rows, "count") }),
}

/** Returns the values of each step that has rows, oldest first. */
const stepsOf = (rows: Rows) =>
  [...Map.groupBy(rows, ({ at }) => at.getTime())]
    .toSorted(([one], [other]) => one - other)
    .map(([at, ofStep]) => ({
      at: new Date(at),
      values: [...Map.groupBy(ofStep, ({ kind }) => kind)].reduce<Values>(
        (all, [kind, ofKind]) => ({ ...all, ...valuesOf[kind](ofKind) }),
        {},
      ),
    }))

/** The metrics of one Webhook. */
const metricsOfWebhook = ["deliveries_succeeded", "deliveries_failed", "delivery_ms_p50", "delivery_ms_p95"] as const
/** The metrics of an account or an Identity. */
const metricsOfAll = (Object.keys(metrics) as ReadonlyArray<UsageMetric>).filter((metric) => metric !== "activity")

const seriesOf = (
  rows: Rows,
  wanted: ReadonlyArray<UsageMetric>,
  of: Omit<UsageSeries, "metric" | "points">,
): ReadonlyArray<UsageSeries> => {
  const steps = stepsOf(rows)
  return wanted.map((metric) => ({
    metric,
    ...of,
    points: steps.flatMap(({ at, values: { [metric]: value = 0 } }) => (value === 0 ? [] : [{ at, value }])),
  }))
}

const make = Effect.map(Reads, (sql) => {
  const stepOf = ({ step }: Span) => sql`date_bin(${`1 ${step}`}::interval, u.hour, '2000-01-01Z')`
  const sums = sql`
    case when u.kind = 'mailbox' then max(u.count) else sum(u.count) end::float8 as count, sum(u.failed)::float8 as failed,
    sum(u.bytes_in)::float8 as bytes_in, sum(u.bytes_out)::float8 as bytes_out`
  const within = (org: string, span: Span) => sql`u.org_id = ${org} and u.hour >= ${span.from} and u.hour < ${span.to}`
  const ofIdentity = (identity: IdentityId | undefined) =>
    identity === undefined ? sql`u.identity_id is null` : sql`u.identity_id = ${identity}`

  const rowsOf = (org: string, identity: IdentityId | undefined, span: Span) =>
    sql<Row>`
      select ${stepOf(span)} as at, u.kind, u.webhook_id, u.bucket, ${sums}
      from usage_hour u where ${within(org, span)} and ${ofIdentity(identity)} group by 1, u.kind, u.webhook_id, u.bucket`

  /** Returns the activity of the most active Identities. */
  const activity = Effect.fnUntraced(function* (org: string, identity: IdentityId | undefined, span: Span) {
    const active = yield* sql<{ identity: string; at: Date; value: number }>`
      with active as (
        select u.identity_id, ${stepOf(span)} as at, sum(u.count)::float8 as value from usage_hour u
        where ${within(org, span)} and ${identity === undefined ? sql`u.identity_id is not null` : ofIdentity(identity)}
          -- The requests of \`tunnel_http\` are part of \`tunnel\`, and a size is no activity.
          and u.kind not in ('tunnel_http', 'mailbox')
        group by 1, 2
      ),
      most as (
        select identity_id, sum(value) as value from active group by 1 order by sum(value) desc, 1 limit ${identitiesAtMost}
      )
      select i.handle as identity, a.at, a.value
      from most join active a using (identity_id) join identity i on i.id = a.identity_id
      order by most.value desc, i.canonical, a.at`
    return [...Map.groupBy(active, ({ identity }) => identity)].map(([identity, points]): UsageSeries => ({
      metric: "activity",
      identity,
      points: points.map(({ at, value }) => ({ at, value })),
    }))
  })

  return {
    /** Returns the series of an Identity or of the whole account. */
    read: Effect.fn("UsageQueries.read")(function* (
      org: string,
      identity: Pick<IdentityRef, "id" | "handle"> | null,
      span: Span,
      byIdentity: boolean,
    ) {
      const rows = yield* rowsOf(org, identity?.id, span)
      const of = identity === null ? {} : { identity: identity.handle }
      const webhooks = Map.groupBy(
        rows.filter((row) => row.webhook_id !== null),
        (row) => toPublic("wh_", row.webhook_id!),
      )
      return [
        ...seriesOf(rows, metricsOfAll, of),
        ...[...webhooks].flatMap(([webhook_id, own]) => seriesOf(own, metricsOfWebhook, { ...of, webhook_id })),
        ...(byIdentity ? yield* activity(org, identity?.id, span) : []),
      ]
    }, orUnavailable),
    /** Returns the hours of an Identity, or those of the account. */
    hours: Effect.fn("UsageQueries.hours")(function* (org: string, identity: IdentityId | undefined) {
      const rows = yield* sql<Row>`
        select u.hour as at, u.kind, null as webhook_id, u.bucket, ${sums}
        from usage_hour u where u.org_id = ${org} and ${ofIdentity(identity)} group by u.hour, u.kind, u.bucket`
      return stepsOf(rows).map(({ at, values }) => ({ at, ...values }))
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
