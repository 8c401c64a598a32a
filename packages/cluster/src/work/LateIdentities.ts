/** The Identities whose queue (outbox, deliveries) has rows that are overdue. */
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import type { Backlog } from "./Source.ts"

/** How many overdue rows, and how many Identities with rows, one statement reads. */
const most = { rows: 100, identities: 100 }

const start = "00000000-0000-0000-0000-000000000000"

/**
 * Returns the `overdue` of a queue: the Handles of Identities with rows that were due before `late`, longest overdue first, for
 * which `condition` holds (`i` is the Identity).
 *
 * The statement reads the rows that are overdue for longest. A target that is away can make more of them than that, all of one
 * Identity. Then it also reads the earliest row of some more Identities in the index of Identity and due time (a loose index
 * scan), and the next call continues behind them. The cost of a call depends neither on the length of a queue nor on the number
 * of queues.
 */
export const lateIdentities = (
  queue: "delivery" | "outbox",
  condition: (sql: Sql, late: Date) => Statement.Fragment,
): Backlog["overdue"] => {
  /** The Identity behind which the next call continues. A lost value only delays the search. */
  let place = start
  return (sql, late, atMost) =>
    Effect.map(
      sql<{ found: ReadonlyArray<string>; place: string | null }>`
        with recursive earliest as materialized (
          select identity_id, next_attempt_at from ${sql(queue)} where next_attempt_at <= ${late}
          order by next_attempt_at limit ${most.rows}
        ),
        -- Without a condition on the due time, so that no plan sorts all overdue rows at each step.
        further as (
          (select identity_id, next_attempt_at, 1 as n from ${sql(queue)}
           where (select count(*) from earliest) = ${most.rows} and next_attempt_at is not null and identity_id > ${place}::uuid
           order by identity_id, next_attempt_at limit 1)
          union all
          select q.identity_id, q.next_attempt_at, f.n + 1 from further f cross join lateral (
            select identity_id, next_attempt_at from ${sql(queue)} where identity_id > f.identity_id and next_attempt_at is not null
            order by identity_id, next_attempt_at limit 1) q
          where f.n < ${most.identities}
        )
        select (select identity_id from further where n = ${most.identities}) as place,
          array(
            select i.canonical from (
              select identity_id, min(next_attempt_at) as due
              from (table earliest union all select identity_id, next_attempt_at from further) r
              where next_attempt_at <= ${late} group by identity_id
            ) l join identity i on i.id = l.identity_id
            where ${condition(sql, late)} order by l.due limit ${atMost}
          ) as found`,
      ([row]) => {
        place = row!.place ?? start
        return row!.found
      },
    )
}
