/**
 * The budget of an Org's calls a minute, which its actor gives out to processes in portions. The actor takes it from the
 * store in blocks, each one statement that finds what was taken in this window by whoever was the actor before: so the
 * whole quota is there for a new account and for one that wakes up, and no more than it after a crash, a move, or
 * beside an actor that does not know yet that it was replaced.
 */
import type { Policy } from "@svc/domain/account/OrgProtocol"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

const windowMillis = Timing.callWindowMillis
/** Windows by which clocks of processes may differ; one further ahead was counted before a clock was set right. */
const ahead = 2
/** What a crash strands at most is one of so many blocks. */
const blocks = 4

export type Quotas = { readonly [P in Policy]: number }

interface Window {
  readonly number: number
  /** Taken from the store and not given out. */
  free: number
  /** Not taken from the store, as far as we know. */
  beyond: number
}

export interface Lease {
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

  /** Takes a block, or what is left of the quota, which may be nothing. */
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
        // No row: a clock ahead of ours has begun the next window, or the Org is gone.
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
