/**
 * Collects exports as work of the Org's actor: one at a time, under its fence, so that a replaced actor adds nothing.
 * An interrupted export starts over.
 */
import { system } from "@svc/domain/account/Initiator"
import { Cause, Clock, Effect, FiberSet } from "effect"
import type { Ownership } from "../../actor/Ownership.ts"
import { commit, type Fenced } from "../../actor/Write.ts"
import type { Sealing } from "../../sealing/Sealing.ts"
import { Unhurried } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"
import type { Source } from "../../work/Source.ts"
import type { OwnedOrg } from "../OrgState.ts"
import { ExportContents } from "./ExportContents.ts"
import * as Pieces from "./ExportPieces.ts"

type Needs = ExportContents | Sealing | Unhurried

/** Pieces removed by one statement. */
const batch = 50

interface Waiting {
  readonly id: string
  readonly identityId: string | null
  /** The exported Identity; null for the whole Org. */
  readonly canonical: string | null
}

const setStatus = (write: Fenced, id: string, status: "running" | "ready" | "failed", size: number | null) =>
  commit(
    write,
    write.sql`changed as (
      update export set status = ${status}, size = ${size}::bigint where id = ${id} and exists (select from fence))`,
  )

export const source: Source<OwnedOrg, Needs, Ownership<OwnedOrg | undefined>> = {
  name: "exports",

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ org_id: string }>`
        select org_id from export where status in ('queued', 'running') and created_at <= ${late} and expires_at > ${late}
        group by org_id order by min(created_at) limit ${atMost}`,
      (rows) => rows.map(({ org_id }) => org_id),
    ),

  make: Effect.fnUntraced(function* (ownership) {
    const sql = yield* Unhurried
    const context = yield* Effect.context<Needs>()
    const run = yield* FiberSet.make<void, unknown>()
    let busy = false

    const removePieces = (id: string) =>
      Effect.repeat(
        ownership.write(system, (write) =>
          commit<{ n: number }>(
            write,
            write.sql`gone as (
              delete from export_piece where (export_id, member, number) in (
                select export_id, member, number from export_piece where export_id = ${id} limit ${batch})
                and exists (select from fence)
              returning 1)`,
            { columns: write.sql`(select count(*)::int from gone) as n` },
          ),
        ),
        { while: ({ n }) => n === batch },
      )

    /** Removes exports that have expired, so that those of one Org do not fill the store. */
    const removeExpired = Effect.fnUntraced(function* (org: string, at: Date) {
      const expired = yield* sql<{ id: string }>`select id from export where org_id = ${org} and expires_at <= ${at}`
      for (const { id } of expired) {
        yield* removePieces(id)
        yield* ownership.write(system, (write) =>
          commit(write, write.sql`gone as (delete from export where id = ${id} and exists (select from fence))`),
        )
      }
    })

    const collect = Effect.fn("Collecting.collect")(function* (org: OwnedOrg, { id, identityId, canonical }: Waiting) {
      // An interrupted attempt has left its pieces.
      yield* removePieces(id)
      yield* ownership.write(system, (write) => setStatus(write, id, "running", null))
      const pieces = yield* Pieces.make(ownership, org, { id, identityId })
      yield* (yield* ExportContents).write(org.id, canonical, pieces)
      const size = yield* pieces.finish
      yield* ownership.write(system, (write) => setStatus(write, id, "ready", size))
    }, Effect.provideContext(context))

    /**
     * Leaves the export for later if another process owns the Org or the store is unreachable; any other error fails
     * it.
     */
    const collectOrFail = (org: OwnedOrg, waiting: Waiting) =>
      collect(org, waiting).pipe(
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause) || cause.reasons.some(isPassing)
            ? Effect.failCause(cause)
            : Effect.andThen(
                Effect.logWarning("An export failed", cause),
                ownership.write(system, (write) => setStatus(write, waiting.id, "failed", null)),
              ),
        ),
      )

    return {
      dispatch: Effect.fnUntraced(function* (org, changed) {
        if (busy) return false
        const at = new Date(yield* Clock.currentTimeMillis)
        const waiting = yield* sql<Waiting>`
          select e.id, e.identity_id as "identityId", i.canonical from export e left join identity i on i.id = e.identity_id
          where e.org_id = ${org.id} and e.status in ('queued', 'running') and e.expires_at > ${at} order by e.id`
        if (waiting.length === 0) return false
        busy = true
        yield* Effect.ignore(removeExpired(org.id, at)).pipe(
          Effect.andThen(Effect.forEach(waiting, (one) => collectOrFail(org, one), { discard: true })),
          Effect.ignore,
          Effect.ensuring(
            Effect.suspend(() => {
              busy = false
              return changed
            }),
          ),
          FiberSet.run(run),
        )
        return true
      }),
      // A dispatch starts every waiting export, and a new one wakes the worker.
      nextDue: () => Effect.succeed(null),
      isBusy: () => busy,
      settle: Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(run), Timing.settle)),
    }
  }),
}

const isPassing = (reason: Cause.Reason<unknown>) =>
  Cause.isFailReason(reason) &&
  typeof reason.error === "object" &&
  reason.error !== null &&
  "_tag" in reason.error &&
  (reason.error._tag === "Moved" || reason.error._tag === "unavailable")
