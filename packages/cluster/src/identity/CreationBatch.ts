/**
 * Groups the first commits of Identities from all actors of this process: creations that wait at the same time share
 * one statement. Each actor proves its own ownership. If one has lost it, its Identity is not created and the others
 * proceed.
 *
 * The statements cannot deadlock. A statement for several Identities locks the rows of their Orgs in the order of their
 * ids and skips an Org that another statement holds, so one busy Org delays no other. Identities of a skipped Org are
 * then created one by one, each waiting for that one row. The row of an actor is shared with all other writes; a wait
 * for it only lasts while a claim commits, and a claim waits for nothing once it has the row. Handles and Identities
 * are new rows, which only the owner of the actor of that name could insert.
 */
import { nearAt } from "@svc/domain/limits/LimitApi"
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { type AuditNote, commitTogether, type FenceLost, type Fenced } from "../actor/Write.ts"
import { auditWrites, notesOf } from "../audit/AuditWrite.ts"
import { causedBy, raiseForOrg } from "../events/Raise.ts"
import { type Sql, Writes } from "../store/Database.ts"
import * as GroupCommit from "../store/GroupCommit.ts"

/** An Identity to create. */
export interface Creation {
  readonly fenced: Fenced
  readonly id: string
  readonly canonical: string
  readonly handle: string
  readonly orgId: string
  /** Identities an Org may ever create. */
  readonly quota: number
  /** The stored form of the new saga, and the time from which other processes may resume it. */
  readonly saga: string
  readonly sagaDueAt: Date
  /** The audit record of the command. */
  readonly note?: AuditNote | undefined
}

/** The outcome of a creation. */
export interface Created {
  readonly made: boolean
  /** The Org's status; null if the Org does not exist. */
  readonly status: string | null
  readonly data_key: Uint8Array | null
}

interface Row extends Created {
  /** Whether another statement holds the Org. */
  readonly held: boolean
}

const store = (sql: Sql, creations: ReadonlyArray<Creation>, patience: GroupCommit.Patience) => {
  const { notes, positions } = notesOf(creations)
  return commitTogether<Row>(
    creations.map(({ fenced }) => ({ ...fenced, sql })),
    sql`
    requested as materialized (
      select a.* from unnest(
        ${creations.map(({ id }) => id)}::uuid[], ${creations.map(({ canonical }) => canonical)}::text[],
        ${creations.map(({ handle }) => handle)}::text[], ${creations.map(({ orgId }) => orgId)}::uuid[],
        ${creations.map(({ quota }) => quota)}::int[], ${creations.map(({ saga }) => saga)}::text[],
        ${creations.map(({ sagaDueAt }) => sagaDueAt.toISOString())}::timestamptz[],
        ${creations.map(({ fenced }) => fenced.at.toISOString())}::timestamptz[],
        ${creations.map(({ fenced }) => causedBy(fenced.by))}::text[], ${creations.map(({ quota }) => nearAt(quota))}::int[],
        ${positions}::int[]
      ) with ordinality as a (id, canonical, handle, org_id, quota, saga, saga_due_at, at, caused_by, near, note, n)
      join fence on fence.n = a.n
    ),
    -- Reads the rows again under the lock, whatever was committed since the statement began.
    owner as materialized (
      select o.* from (select distinct org_id from requested order by org_id offset 0) a cross join lateral (
        select id, status, identities_created, data_key from org where id = a.org_id
        for no key update ${patience === "waits" ? sql`` : sql`skip locked`}
      ) o
    ),
    ranked as materialized (
      select a.*, o.identities_created + row_number() over (partition by a.org_id order by a.n) as place
      from requested a join owner o on o.id = a.org_id where o.status = 'active'
    ),
    spent as (
      update org set identities_created = identities_created + fitting.count
      from (select org_id, count(*)::int as count from ranked where place <= quota group by org_id) fitting
      where org.id = fitting.org_id
      returning org.id
    ),
    name as (
      insert into handle (canonical, handle, org_id, registered_at)
      select r.canonical, r.handle, r.org_id, r.at from ranked r join spent on spent.id = r.org_id
      where r.place <= r.quota order by r.canonical
      returning canonical
    ),
    made as (
      insert into identity (id, canonical, handle, org_id, status, saga, saga_due_at, created_at)
      select r.id, r.canonical, r.handle, r.org_id, 'provisioning', r.saga::jsonb, r.saga_due_at, r.at
      from ranked r join name using (canonical)
      returning id
    ),
    -- The Identity that reaches 80 % of the quota. The count never falls, so the Event is raised once.
    nearing as (select r.* from ranked r join made using (id) where r.place = r.near),
    ${raiseForOrg({ sql, org: sql`org_id`, at: sql`at`, by: sql`caused_by` }, "nearing", "limit.near", {
      limit: "identity_quota",
      used: sql`place`,
      quota: sql`quota`,
      window: null,
    })},
    created as (select note from requested join made using (id)) ${auditWrites(sql, notes, "created")}`,
    sql`
      exists (select from requested join made using (id) where requested.n = fence.n) as made,
      (select o.status from requested a join owner o on o.id = a.org_id where a.n = fence.n) as status,
      (select o.data_key from requested a join owner o on o.id = a.org_id where a.n = fence.n) as data_key,
      ${
        patience === "waits"
          ? sql`false`
          : sql`exists (
              select from requested a join org on org.id = a.org_id
              where a.n = fence.n and not exists (select from owner o where o.id = a.org_id))`
      } as held`,
  )
}

export class CreationBatch extends Context.Service<
  CreationBatch,
  { readonly make: (creation: Creation) => Effect.Effect<Created, SqlError.SqlError | FenceLost> }
>()("@svc/cluster/identity/CreationBatch") {}

export const layer = Layer.effect(
  CreationBatch,
  Effect.gen(function* () {
    const sql = yield* Writes
    // Two statements at a time would lock each other's Orgs.
    const limits = { atOnce: 1, most: 50 }
    return {
      make: yield* GroupCommit.makeSkipping(
        (creations: ReadonlyArray<Creation>, patience) => store(sql, creations, patience),
        ({ held }) => held,
        { sql, lock: ({ orgId }) => sql`select id from org where id = ${orgId} for no key update` },
        limits,
      ),
    }
  }),
)
