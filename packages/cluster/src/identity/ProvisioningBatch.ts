/**
 * The steps of Identities that are provisioned, of all actors of this process: what waits at the same time is one statement and
 * one commit, at whose end each is `ready`. Each actor proves its ownership for itself. Where one lost it, or its steps come to
 * nothing, the others go on, and what is to be said of it is found out by itself.
 *
 * Nothing waits in a circle. The rows of the Identities are taken in the order of their ids, and others that take several take
 * only such as are ready. An Org whose first Identity gets ready is left out with its Identities where another statement holds
 * it, a port that is being given likewise; an actor's row is waited for only while a claim commits, which waits for nothing
 * itself once it has the row. All other rows are new.
 */
import { system } from "@svc/domain/account/Initiator"
import { Context, Effect, Exit, Layer } from "effect"
import { type SqlError, Statement } from "effect/sql"
import { commitTogether, type FenceLost, type Write } from "../actor/Write.ts"
import { shown } from "../credentials/ShowOnce.ts"
import { raise } from "../events/Raise.ts"
import type { Part } from "../saga/Step.ts"
import { type Sql, Writes } from "../store/Database.ts"
import * as GroupCommit from "../store/GroupCommit.ts"
import { Timing } from "../Timing.ts"

export interface Provisioning {
  readonly write: Write
  /** Of all the steps, in their order; those of each Identity are made alike. */
  readonly parts: ReadonlyArray<Part>
  /** As it is stored once they are done. */
  readonly saga: string
}

interface Row {
  readonly moved: boolean
  /** Deliveries that wait now. */
  readonly queued: number
}

/** Beginning one costs as much as the rows of several Identities. */
const limits = { atOnce: 2, beside: { least: 16, millis: Timing.besideMillis }, most: 32 }

/** CTE `todo`: a row for each that is still to be provisioned, and whose Org waits for nobody. */
const todo = (sql: Sql, all: ReadonlyArray<Provisioning>) => sql`
  told as materialized (
    select t.* from fence join unnest(
      ${all.map(({ write }) => write.identity.id)}::uuid[], ${all.map(({ write }) => write.identity.orgId)}::uuid[],
      ${all.map(({ write }) => write.identity.handle)}::text[],
      ${all.map(({ write }) => write.at.toISOString())}::timestamptz[], ${all.map(({ saga }) => saga)}::text[]
    ) with ordinality as t (identity_id, org_id, handle, at, saga, n) on t.n = fence.n
  ),
  own as materialized (
    select o.id from (select identity_id from told order by identity_id offset 0) t cross join lateral (
      select id from identity where id = t.identity_id and status = 'provisioning' for no key update
    ) o
  ),
  firsts as materialized (
    select o.id from (select distinct org_id from told order by org_id offset 0) t cross join lateral (
      select id from org where id = t.org_id and first_ready_identity is null for no key update skip locked
    ) o
  ),
  todo as materialized (
    select t.* from told t join own on own.id = t.identity_id
    where exists (select from firsts where firsts.id = t.org_id)
       or (select first_ready_identity from org where org.id = t.org_id) is not null
  )`

/** CTEs of all steps; what one of them made only under a condition is the gate of those after it. Answers the last gate, too. */
const steps = (sql: Sql, all: ReadonlyArray<Provisioning>) => {
  let gate = sql`todo`
  const rows = all[0]!.parts.flatMap(({ shared }, place) => {
    const own = shared.rows(
      sql,
      gate,
      all.map(({ parts }) => parts[place]!.value),
    )
    if (shared.unless === undefined) return [own]
    const before = gate
    gate = sql`${sql(`after_${place}`)}`
    return [own, sql`${gate} as materialized (select g.* from ${before} g join ${sql(shared.unless.made)} using (n))`]
  })
  return { rows: Statement.join(", ", false)(rows), gate }
}

const store = (sql: Sql, all: ReadonlyArray<Provisioning>) => {
  const { rows, gate } = steps(sql, all)
  const shows = all[0]!.parts.flatMap(({ shared }) => (shared.shows === undefined ? [] : [shared.shows(sql)]))
  return commitTogether<Row>(
    all.map(({ write }) => ({ ...write, sql })),
    sql`
    ${todo(sql, all)},
    ${rows},
    ${shown(sql, sql`todo`, shows)},
    moved as (
      update identity i set saga = g.saga::jsonb, saga_due_at = null, status = 'ready', ready_at = g.at
      from ${gate} g where i.id = g.identity_id
      returning i.id, i.handle, i.org_id, i.ready_at, g.n
    ),
    first as (
      update org set first_ready_identity = m.id
      from (select distinct on (org_id) org_id, id from moved order by org_id, n) m
      where org.id = m.org_id and org.first_ready_identity is null
    ),
    ${raise(
      {
        sql,
        identity: { id: sql`id`, handle: sql`handle`, orgId: sql`org_id` },
        at: sql`ready_at`,
        by: system,
      },
      "moved",
      "identity.ready",
      {},
    )}`,
    sql`
      exists (select from moved where moved.n = fence.n) as moved,
      (select count(*)::int from moved join queued on queued.identity_id = moved.id where moved.n = fence.n) as queued`,
  )
}

/** Whether the Identity is ready now, as its actor is to be told. */
const outcomeOf = ({ write }: Provisioning, { moved, queued }: Row): boolean => {
  if (queued > 0) write.due()
  return moved
}

export class ProvisioningBatch extends Context.Service<
  ProvisioningBatch,
  {
    /** Answers whether the Identity is ready: not where a step came to nothing, or somebody holds what it needs. */
    readonly finish: (provisioning: Provisioning) => Effect.Effect<boolean, SqlError.SqlError | FenceLost>
  }
>()("@svc/cluster/identity/ProvisioningBatch") {}

export const layer = Layer.effect(
  ProvisioningBatch,
  Effect.gen(function* () {
    const sql = yield* Writes
    const finish = yield* GroupCommit.make(
      (all: ReadonlyArray<Provisioning>) =>
        Effect.map(store(sql, all), (rows) =>
          rows.map((outcome, index) => Exit.map(outcome, (row) => outcomeOf(all[index]!, row))),
        ),
      limits,
    )
    return { finish }
  }),
)
