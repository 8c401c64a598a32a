/**
 * Notifies Org actors of unsealed records by a mark in the row of the chain's end, after the commit and at intervals. A
 * mark that a crashed process did not make is made by the search for unmarked records (`AuditPartitions`).
 */
import { monotonicOf } from "@svc/domain/MonotonicTime"
import { Clock, Effect, FiberSet } from "effect"
import { orUnavailable, type Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** Returns the statement that marks these Orgs. */
export const mark = (sql: Sql, orgs: ReadonlyArray<string>, now: Date) => sql`
  insert into audit_head as h (org_id, due_at, marks, signed_at)
  select o.id, ${new Date(now.getTime() + Timing.auditSealMillis)}::timestamptz, 1, ${now}::timestamptz
  from org o where o.id = any(${[...orgs]}::uuid[]) order by o.id
  on conflict (org_id) do update set due_at = coalesce(h.due_at, excluded.due_at), marks = h.marks + 1`

export const make = Effect.fnUntraced(function* (sql: Sql) {
  const run = yield* FiberSet.makeRuntime()
  const clock = yield* Clock.Clock
  /** The earliest time of an Org's next mark. */
  let marked = new Map<string, number>()
  let waiting = new Set<string>()
  let underWay = false

  const round = Effect.gen(function* () {
    while (waiting.size > 0) {
      const orgs = [...waiting]
      waiting = new Set()
      yield* orUnavailable(mark(sql, orgs, new Date(yield* Clock.currentTimeMillis)))
    }
    // No other fiber runs between the check and this line, so an Org that is added later starts another round.
    underWay = false
  }).pipe(Effect.catchCause(() => Effect.sync(() => void (underWay = false))))

  return {
    touch: (orgs: ReadonlyArray<string>): void => {
      const now = monotonicOf(clock)
      if (marked.size > 50_000) marked = new Map()
      for (const org of orgs) {
        if ((marked.get(org) ?? 0) > now) continue
        marked.set(org, now + Timing.auditSealMillis / 2)
        waiting.add(org)
      }
      if (waiting.size === 0 || underWay) return
      underWay = true
      run(round)
    },
  }
})
