/**
 * Runs the Identity's saga step by step. Each step's rows, the next state of the checklist and the Events of its end
 * are one commit under the actor's fence.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { Saga as SagaState, StepName } from "@svc/domain/identity/Identity"
import { Clock, Effect, Random } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { raiseForIdentity } from "../events/Raise.ts"
import { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { type Owned, type Ownership, sagaJson } from "./Ownership.ts"
import { ProvisioningSteps, type StepFailed, type StepRows } from "./Provisioning.ts"
import * as Saga from "./Saga.ts"
import * as Teardown from "./Teardown.ts"

const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

export const make = Effect.gen(function* () {
  const sql = yield* Writes
  const provisioning = yield* ProvisioningSteps
  const teardown = yield* Teardown.make

  const rowsOf = (
    step: StepName,
    identity: Owned,
    at: Date,
  ): Effect.Effect<StepRows, StepFailed | SqlError.SqlError> => {
    if (identity.saga.kind === "teardown") return teardown.rowsOf(step, identity, at)
    switch (step) {
      case "mailbox":
      case "tunnel":
      case "card":
      case "identity_key":
        return provisioning[step](identity, at)
      default:
        return Effect.die(new Error(`no such step in provisioning: ${step}`))
    }
  }

  /** Does the current step once and commits what came of it. */
  const advance = Effect.fn("SagaRunner.advance")(function* (ownership: Ownership, identity: Owned, step: StepName) {
    const at = yield* now
    return yield* rowsOf(step, identity, at).pipe(
      Effect.flatMap((rows) => commitSuccess(ownership, identity, step, rows, at)),
      Effect.catchTag("StepFailed", (failure) => commitFailure(ownership, identity, step, failure.message, at)),
      // The store out of reach is a failed try like any other, as soon as it can be written down.
      Effect.catchTag("SqlError", (error) => commitFailure(ownership, identity, step, error.message, at)),
      // A defect must not be tried for ever: it counts as a try, and its cause stays in our log.
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError(`The step ${step} ended in a defect`, defect),
          commitFailure(ownership, identity, step, "internal error", at),
        ),
      ),
    )
  })

  const commitSuccess = Effect.fnUntraced(function* (
    ownership: Ownership,
    identity: Owned,
    step: StepName,
    rows: StepRows,
    at: Date,
  ) {
    const saga = Saga.succeed(identity.saga, step, at)
    const next = advanced(identity, saga, at)
    const eventId = yield* makeUuidV7
    const made = yield* ownership.write((_, fence) => {
      const moved =
        next === undefined
          ? sql`moved as (delete from identity where id = ${identity.id} and exists (select from fence) and (${rows.made}) returning id)`
          : sql`moved as (
              update identity set saga = ${sagaJson(saga)}::jsonb, saga_due_at = ${next.sagaDueAt}::timestamptz, status = ${next.status}
                     ${next.status === "ready" ? sql`, ready_at = ${at}` : sql``}
              where id = ${identity.id} and status = ${identity.status} and exists (select from fence) and (${rows.made}) returning id)`
      const ready = next?.status === "ready" ? sql`, ${readiness(identity, eventId, at)}` : sql``
      return sql<{ owned: boolean; moved: boolean }>`
        with ${fence}, ${rows.rows}, ${moved} ${ready}
        select exists (select from fence) as owned, exists (select from moved) as moved`.pipe(
        Effect.map(([row]) =>
          row?.owned !== true
            ? undefined
            : row.moved
              ? next === undefined
                ? { value: true, removed: true }
                : { value: true, identity: next }
              : { value: false },
        ),
      )
    })
    // An account's deletion may have turned the saga round meanwhile; then the step was for nothing.
    if (made || (yield* ownership.state).identity?.status !== identity.status) return
    yield* commitFailure(ownership, identity, step, rows.otherwise, at)
  })

  /** `ready`: the Org's first ready Identity is noted, the Event is raised. */
  const readiness = (identity: Owned, eventId: string, at: Date): Statement.Fragment => sql`
    first as (
      update org set first_ready_identity = ${identity.id}
      where id = ${identity.orgId} and first_ready_identity is null and exists (select from moved)
    ),
    ${raiseForIdentity(sql, "moved", { eventId, type: "identity.ready", org: identity.orgId, identity, data: {}, at })}`

  const commitFailure = Effect.fnUntraced(function* (
    ownership: Ownership,
    identity: Owned,
    step: StepName,
    error: string,
    at: Date,
  ) {
    const failed = Saga.fail(identity.saga, step, error, at, yield* Random.next)
    const final = failed.dueAt === undefined
    const next: Owned = {
      ...identity,
      saga: failed.saga,
      sagaDueAt: failed.dueAt ?? null,
      status: final && identity.status === "provisioning" ? "failed" : identity.status,
    }
    const eventId = yield* makeUuidV7
    const raised =
      final && identity.saga.kind === "provisioning"
        ? sql`, ${raiseForIdentity(sql, "moved", { eventId, type: "identity.failed", org: identity.orgId, identity, data: { step, error }, at })}`
        : sql``
    yield* ownership.write((_, fence) =>
      sql<{ owned: boolean; moved: boolean }>`
        with ${fence}, moved as (
          update identity set saga = ${sagaJson(next.saga)}::jsonb, saga_due_at = ${next.sagaDueAt}::timestamptz, status = ${next.status}
          where id = ${identity.id} and status = ${identity.status} and exists (select from fence) returning id) ${raised}
        select exists (select from fence) as owned, exists (select from moved) as moved`.pipe(
        Effect.map(([row]) =>
          row?.owned !== true ? undefined : row.moved ? { value: undefined, identity: next } : { value: undefined },
        ),
      ),
    )
  })

  return { advance }
})

/** The Identity after a step succeeded; undefined when that was the last one of its teardown. */
const advanced = (identity: Owned, saga: SagaState, at: Date): Owned | undefined => {
  if (saga.status === "running")
    return { ...identity, saga, sagaDueAt: new Date(at.getTime() + Timing.sagaLeaseMillis) }
  if (saga.kind === "teardown") return undefined
  return { ...identity, saga, sagaDueAt: null, status: "ready" }
}

export type SagaRunner = Effect.Success<typeof make>
