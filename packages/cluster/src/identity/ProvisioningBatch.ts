/**
 * Groups the provisioning of Identities from all actors of this process: Identities that wait at the same time share
 * one statement and one commit, after which each is `ready`. Each actor proves its own ownership. If one has lost it,
 * or one of its steps fails, the others proceed and that Identity is retried alone, which finds the reason.
 *
 * The statements cannot deadlock. The rows of the Identities are locked in the order of their ids, and other statements
 * that lock several only take ready ones. An Org whose first Identity becomes ready is skipped, with its Identities, if
 * another statement holds it; so is a port that is being allotted. A wait for an actor's row only lasts while a claim
 * commits, and a claim waits for nothing once it has the row. All other rows are new.
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
  /** The parts of all steps, in order. They have the same shape for all Identities. */
  readonly parts: ReadonlyArray<Part>
  /** The stored form of the saga when all steps are done. */
  readonly saga: string
}

interface Row {
  readonly moved: boolean
  /** The number of queued deliveries. */
  readonly queued: number
}

/** A statement costs as much as the rows of several Identities. */
const limits = { atOnce: 2, beside: { least: 16, millis: Timing.besideMillis }, most: 32 }

/** CTE `unprovisioned`: a row for each Identity that is still to be provisioned and whose Org is not locked. */
const unprovisioned = (sql: Sql, all: ReadonlyArray<Provisioning>) => sql`
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
  unprovisioned as materialized (
    select t.* from told t join own on own.id = t.identity_id
    where exists (select from firsts where firsts.id = t.org_id)
       or (select first_ready_identity from org where org.id = t.org_id) is not null
  )`

/**
 * Returns the CTEs of all steps and the last gate. A step that creates its rows only under a condition is the gate of
 * the steps after it.
 */
const steps = (sql: Sql, all: ReadonlyArray<Provisioning>) => {
  let gate = sql`unprovisioned`
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
    ${unprovisioned(sql, all)},
    ${rows},
    ${shown(sql, sql`unprovisioned`, shows)},
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

/** Returns whether the Identity is ready, and informs its actor of queued deliveries. */
const outcomeOf = ({ write }: Provisioning, { moved, queued }: Row): boolean => {
  if (queued > 0) write.due("deliveries")
  return moved
}

export class ProvisioningBatch extends Context.Service<
  ProvisioningBatch,
  {
    /** Returns whether the Identity is ready: false if a step failed or another statement holds a row that it needs. */
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
