/**
 * The daily (UTC) transfer budget of an Org's Tunnels. Edges lease parts of the budget and report what they used. The
 * use is stored in a row and outlives the actor; the limit can only be exceeded by what edges hold in leases. The first
 * reports above 80 % and 100 % each raise an Event once a day, in the statement that adds the report. A repeated report
 * is recognized by its number: the row stores each edge's last one.
 */
import { nearAt } from "@svc/domain/limits/LimitApi"
import { Effect } from "effect"
import { commit, type Fenced } from "../actor/Write.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { Timing } from "../Timing.ts"

const dayMillis = Timing.transferWindowMillis
/** A lease is this fraction of the remaining budget per edge that holds one, within these bounds. */
const share = 8
const smallest = 64 * 1024
const largest = 64 * 1024 * 1024

/** A report of an edge. Edges of older versions send no number, so their repeated reports count twice. */
export interface TransferReport {
  readonly edge: string
  readonly used: number
  readonly report?: number
}

export interface TransferLease {
  /** Granted bytes; 0 if the day's budget is used up. */
  readonly granted: number
  /** Milliseconds until the lease, or the day, ends. */
  readonly ends_in: number
}

export const make = (org: string, quota: number) => {
  const held = new Map<string, { readonly granted: number; readonly until: number }>()

  /** Returns the bytes that other edges hold and have not reported yet. */
  const outstanding = (edge: string, now: number) => {
    let bytes = 0
    for (const [holder, lease] of held) {
      if (lease.until <= now) held.delete(holder)
      else if (holder !== edge) bytes += lease.granted
    }
    return bytes
  }

  return {
    /** Adds the reported use, and grants a new lease in place of the previous one. */
    lease: Effect.fn("TransferBudget.lease")(function* (write: Fenced, { edge, used, report }: TransferReport) {
      const { sql, at } = write
      const now = at.getTime()
      const day = Math.floor(now / dayMillis)
      const nearBytes = nearAt(quota)
      const dateOf = (number: number) => sql`${new Date(number * dayMillis).toISOString()}::date`
      const reports = report === undefined ? {} : { [edge]: report }
      /** Returns whether the row of a day already contains the report. */
      const has = (row: "t" | "y") =>
        sql`coalesce((${sql(row)}.reports ->> ${edge})::bigint >= ${report ?? null}::bigint, false)`
      const data = { limit: "tunnel_transfer", quota, window: "day" } as const
      const row = yield* commit<{ bytes: string | null }>(
        write,
        sql`
        counted as (
          insert into tunnel_transfer as t (org_id, day, bytes, reports)
          select id, ${dateOf(day)},
                 case when exists (select from tunnel_transfer y where y.org_id = org.id and y.day = ${dateOf(day - 1)} and ${has("y")})
                 then 0 else ${used}::bigint end, ${JSON.stringify(reports)}::jsonb
          from org where id = ${org} and exists (select from fence)
          on conflict (org_id, day) do update
          set bytes = t.bytes + case when ${has("t")} then 0 else excluded.bytes end,
              reports = case when ${has("t")} then t.reports else t.reports || excluded.reports end
          returning coalesce(old.bytes, 0) as before, new.bytes as after
        ),
        near as (select after from counted where before < ${nearBytes}::bigint and after >= ${nearBytes}::bigint),
        blocked as (select after from counted where before < ${quota}::bigint and after >= ${quota}::bigint),
        ${raiseForOrg({ ...write, org }, "near", "limit.near", { ...data, used: sql`after` }, { as: "told_near" })},
        ${raiseForOrg({ ...write, org }, "blocked", "tunnel.transfer_blocked", { ...data, used: sql`after` }, { as: "told_blocked" })}`,
        { columns: sql`(select after::text from counted) as bytes` },
      )
      const left = quota - Number(row.bytes ?? quota)
      const dayEnds = (day + 1) * dayMillis - now
      if (left <= 0) {
        const lease: TransferLease = { granted: 0, ends_in: dayEnds }
        return lease
      }
      const free = left - outstanding(edge, now)
      const portion = Math.floor(free / (share * (held.has(edge) ? held.size : held.size + 1)))
      const granted = Math.min(left, largest, Math.max(smallest, portion))
      const endsIn = Math.min(Timing.transferLeaseMillis, dayEnds)
      held.set(edge, { granted, until: now + endsIn })
      const lease: TransferLease = { granted, ends_in: endsIn }
      return lease
    }),
  }
}
