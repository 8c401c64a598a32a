/**
 * Counts reads by reader and operation, to answer "who reads my mail" without a record per read. The counts of a few
 * seconds share one statement; a killed process loses its own, because no caller waits for them.
 */
import type { AuditActorKind } from "@svc/domain/audit/AuditRecord"
import { Clock, Effect, Semaphore } from "effect"
import { orUnavailable, type Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

interface CountedRead {
  readonly org: string
  readonly kind: AuditActorKind
  readonly id: string
  /** The group and the name of the endpoint: `messages.read`. */
  readonly action: string
  /** The tool for calls over MCP, otherwise "". */
  readonly tool: string
  /** The Handle of the Identity, or "". */
  readonly handle: string
}

/** Maximum number of counters; above that, further readers are not counted until the next round. */
const countersAtMost = 20_000
const hourMillis = 3_600_000

export const make = Effect.fnUntraced(function* (sql: Sql) {
  let counts = new Map<string, { readonly read: CountedRead; n: number }>()

  // At shutdown, the last flush waits for the one before it, which would be interrupted otherwise.
  const lock = Semaphore.makeUnsafe(1)
  const flush = Effect.gen(function* () {
    if (counts.size === 0) return
    const taken = [...counts.values()]
    counts = new Map()
    const hour = new Date(Math.floor((yield* Clock.currentTimeMillis) / hourMillis) * hourMillis)
    const rows = taken.map(({ read, n }) => ({
      org_id: read.org,
      actor_kind: read.kind,
      actor_id: read.id,
      action: read.action,
      tool: read.tool,
      handle: read.handle,
      count: n,
    }))
    // Always in the same order, so that two processes never deadlock.
    yield* orUnavailable(sql`
      insert into audit_usage as u (org_id, hour, actor_kind, actor_id, action, tool, handle, count)
      select r.org_id, ${hour}::timestamptz, r.actor_kind, r.actor_id, r.action, r.tool, r.handle, r.count
      from json_to_recordset(${JSON.stringify(rows)}::json)
        as r (org_id uuid, actor_kind text, actor_id text, action text, tool text, handle text, count bigint)
      join org o on o.id = r.org_id
      order by 1, 3, 4, 5, 6, 7
      on conflict (org_id, hour, actor_kind, actor_id, action, tool, handle) do update set count = u.count + excluded.count`)
  }).pipe(lock.withPermits(1))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.auditUsage), Effect.ignoreCause(flush))))
  yield* Effect.addFinalizer(() => Effect.ignoreCause(Effect.timeout(flush, Timing.settle)))

  return {
    count: (read: CountedRead): void => {
      const key = `${read.id} ${read.action} ${read.tool} ${read.handle}`
      const present = counts.get(key)
      if (present !== undefined) present.n++
      else if (counts.size < countersAtMost) counts.set(key, { read, n: 1 })
    },
  }
})
