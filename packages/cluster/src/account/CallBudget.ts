/**
 * The Org's budget of calls per minute, which its actor leases to processes in portions. The actor takes the budget
 * from the store in blocks. Each block is one statement that counts what any earlier actor took in this window. A new
 * or newly activated account therefore gets its whole quota, and never more after a crash, a move, or beside a replaced
 * actor that is still running.
 */
import type { Policy } from "@svc/domain/account/OrgProtocol"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

const windowMillis = Timing.callWindowMillis
/**
 * The number of windows by which the clocks of processes may differ. A window further ahead was counted by a clock that
 * was wrong.
 */
const ahead = 2
/** A crash loses at most one of this many blocks. */
const blocks = 4

export type Quotas = { readonly [P in Policy]: number }

interface Window {
  readonly number: number
  /** Calls taken from the store and not leased yet. */
  free: number
  /** Calls not yet taken from the store, as far as this actor knows. */
  beyond: number
}

interface Lease {
  readonly granted: number
  readonly left: number
  readonly ends_in: number
}

export const make = (sql: Sql, org: string, quotas: Quotas) => {
  const windows = new Map<Policy, Window>()

  const windowAt = (policy: Policy, number: number): Window => {
    const present = windows.get(policy)
    if (present?.number === number) return present
    const fresh = { number, free: 0, beyond: quotas[policy] }
    windows.set(policy, fresh)
    return fresh
  }

  /** Takes a block, or the rest of the quota, which may be 0. */
  const take = (policy: Policy, window: Window, least: number): Effect.Effect<void, SqlError.SqlError> => {
    const quota = quotas[policy]
    const block = Math.min(quota, Math.max(least, Math.ceil(quota / blocks)))
    return Effect.map(
      sql<{ before: number; after: number }>`
        insert into call_window as c (org_id, policy, number, taken)
        select id, ${policy}::text, ${window.number}::bigint, ${block}::int from org where id = ${org}::uuid
        on conflict (org_id, policy) do update
        set number = excluded.number,
            taken = least(${quota}::int, case when c.number = excluded.number then c.taken else 0 end + excluded.taken)
        where c.number <= excluded.number or c.number > excluded.number + ${ahead}::bigint
        returning case when old.number = new.number then old.taken else 0 end as before, new.taken as after`,
      ([row]) => {
        // There is no row if a process whose clock is ahead has started the next window, or the Org no longer exists.
        window.free += row === undefined ? 0 : row.after - row.before
        window.beyond = row === undefined ? 0 : quota - row.after
      },
    )
  }

  return {
    lease: Effect.fnUntraced(function* (policy: Policy, want: number, now: number) {
      const number = Math.floor(now / windowMillis)
      const window = windowAt(policy, number)
      if (window.free < want && window.beyond > 0) yield* take(policy, window, want - window.free)
      const granted = Math.min(want, window.free)
      window.free -= granted
      const lease: Lease = { granted, left: window.free + window.beyond, ends_in: (number + 1) * windowMillis - now }
      return lease
    }),
  }
}
