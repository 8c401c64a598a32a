/**
 * Finds work whose time has passed because its actor is not in memory (it was passivated, or its process died) and
 * wakes the actor. In the normal case actors drive their own rows and this finds nothing.
 */
import { Clock, Effect, Layer, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { Orgs } from "../account/Orgs.ts"
import { Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { ask } from "../actor/Ask.ts"
import { Identities } from "./Identities.ts"

/** Identities woken per scan; the rest is found by the next one. */
const batch = 500
const atOnce = 16

const scan = Effect.gen(function* () {
  const sql = yield* Reads
  const identities = yield* Identities
  const late = new Date((yield* Clock.currentTimeMillis) - Timing.overdueGraceMillis)
  const rows = yield* sql<{ canonical: string }>`
    select canonical from identity where saga_due_at <= ${late}
    union
    select i.canonical from (
      select distinct identity_id from delivery where next_attempt_at <= ${late} limit ${batch}
    ) d join identity i on i.id = d.identity_id
    limit ${batch}`
  const orgs = yield* Orgs
  const waiting = yield* sql<{ id: string }>`
    select id from org where status = 'deleting'
    union select org_id from export where status in ('queued', 'running') and created_at <= ${late}
    limit ${batch}`
  yield* Effect.forEach(waiting, ({ id }) => Effect.ignore(ask(orgs.of(id).Work(undefined, { discard: true }))), {
    concurrency: atOnce,
    discard: true,
  })
  yield* Effect.forEach(
    rows,
    ({ canonical }) => Effect.ignore(ask(identities.of(canonical).Work(undefined, { discard: true }))),
    {
      concurrency: atOnce,
      discard: true,
    },
  )
})

export const layer = Singleton.make(
  "Overdue",
  scan.pipe(
    Effect.catchCause((cause) => Effect.logWarning("The scan for overdue work failed", cause)),
    Effect.repeat(Schedule.spaced(Timing.overdueScan)),
    Effect.asVoid,
  ),
).pipe(Layer.provide([Identities.layer, Orgs.layer]))
