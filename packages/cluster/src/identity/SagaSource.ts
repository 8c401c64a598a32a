/**
 * Runs the Identity's saga as work of its actor. The rows of one or several steps, the next state of the checklist and
 * the Events of its end are one commit under the actor's fence.
 */
import { system } from "@svc/domain/account/Initiator"
import type { Saga as SagaState, StepName } from "@svc/domain/identity/Identity"
import { Clock, Effect, Exit, Random } from "effect"
import { Statement } from "effect/sql"
import type { Ownership } from "../actor/Ownership.ts"
import { commit, type Fenced, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import * as Metrics from "../observe/Metrics.ts"
import { shown } from "../credentials/ShowOnce.ts"
import type { Part, Shows, Step, StepRows, StepSubject } from "../saga/Step.ts"
import { isTransient, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Source } from "../work/Source.ts"
import { ProvisioningSteps } from "./Provisioning.ts"
import { ProvisioningBatch } from "./ProvisioningBatch.ts"
import * as Saga from "./Saga.ts"
import { type Owned, sagaJson, sagaWait } from "./State.ts"
import * as Teardown from "./Teardown.ts"

const steps = Metrics.counter("svc_saga_steps_total", "Attempts of the steps of sagas", ["step", "outcome"])

type Needs = Effect.Services<typeof Teardown.make> | ProvisioningSteps | ProvisioningBatch | Writes

export const source: Source<Owned, Needs, Ownership<Owned | undefined>> = {
  name: "saga",

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ canonical: string }>`
        select canonical from identity where saga_due_at <= ${late} order by saga_due_at limit ${atMost}`,
      (rows) => rows.map(({ canonical }) => canonical),
    ),

  make: Effect.fnUntraced(function* (ownership) {
    const sql = yield* Writes
    const provisionings = yield* ProvisioningBatch
    const stepsOf: Readonly<Record<SagaState["kind"], Readonly<Partial<Record<StepName, Step>>>>> = {
      provisioning: yield* ProvisioningSteps,
      teardown: yield* Teardown.make,
    }

    const writeOf = (fenced: Fenced, { identity, at }: StepSubject): Write => ({ ...fenced, identity, at })

    const attempt = (kind: SagaState["kind"], name: StepName, subject: StepSubject) => {
      const step = stepsOf[kind][name]
      return step === undefined ? Effect.die(new Error(`no such step: ${kind}, ${name}`)) : step(subject)
    }

    /** Commits the result of an attempt: the step's rows, or its failure. */
    const settle = (identity: Owned, name: StepName, subject: StepSubject, tried: ReturnType<Step>) =>
      tried.pipe(
        Effect.flatMap((rows) => succeed(identity, [name], together(sql, [rows]), subject)),
        Effect.flatMap((otherwise) =>
          otherwise === undefined ? Effect.void : fail(identity, name, otherwise, subject),
        ),
        Effect.tap(Effect.logDebug("saga step", { saga: identity.saga.kind, step: name, handle: identity.handle })),
        Effect.catchTag("StepFailed", (failure) => fail(identity, name, failure.message, subject)),
        // An unreachable store counts as a failed attempt, recorded once the store is back. The message of another error of the
        // store names internals, so it only goes into the log.
        Effect.catchTag("SqlError", (error) =>
          isTransient(error) ? fail(identity, name, "the database is unavailable", subject) : Effect.die(error),
        ),
        // A defect counts as an attempt, so that it is not retried forever; its cause only goes into the log.
        Effect.catchDefect((defect) =>
          Effect.andThen(
            Effect.logError(`The step ${name} ended in a defect`, defect),
            fail(identity, name, "internal error", subject),
          ),
        ),
      )

    /**
     * Runs the remaining steps once. The steps of a provisioning that can run now share one commit; a step that creates
     * its rows only under a condition is the gate of the steps after it. If that commit fails, the steps run one at a
     * time, so that the checklist counts the attempts of each.
     */
    const advance = Effect.fn("SagaSource.advance")(function* (identity: Owned, names: ReadonlyArray<StepName>) {
      const { saga } = identity
      const { kind } = saga
      const at = new Date(yield* Clock.currentTimeMillis)
      const gate = kind === "provisioning" ? sql`unprovisioned` : sql`fence`
      const subject: StepSubject = { sql, identity, at, by: system, gate }
      if (kind !== "provisioning") {
        return yield* settle(identity, names[0]!, subject, yield* Effect.exit(attempt(kind, names[0]!, subject)))
      }
      const { run, failed } = yield* tried(names, subject)
      const parts = run.flatMap(({ part }) => (part === undefined ? [] : [part]))
      if (parts.length === saga.steps.length && (yield* finish(identity, names, parts, subject))) return
      if (run.length > 1) {
        const done = yield* succeed(identity, names.slice(0, run.length), together(sql, run), subject).pipe(
          Effect.map((otherwise) => otherwise === undefined),
          Effect.catchDefect((defect) =>
            Effect.as(
              Effect.logError(`The steps from ${names[0]} to ${names[run.length - 1]} ended in a defect`, defect),
              false,
            ),
          ),
        )
        if (done && failed === undefined) return
      }
      for (const name of names.slice(0, run.length + 1)) {
        const present = yield* ownership.state
        if (present?.status !== identity.status) return
        if (Saga.currentStep(present.saga) !== name) continue
        const own = { ...subject, identity: present }
        // The failed step was tried already; the others are tried anew, because only the store shows whether they fail.
        const exit =
          name === failed?.name
            ? failed.exit
            : run.length === 1
              ? Exit.succeed(run[0]!)
              : yield* Effect.exit(attempt(kind, name, own))
        yield* settle(present, name, own, exit)
        if (Saga.currentStep((yield* ownership.state)?.saga ?? present.saga) === name) return
      }
    })

    /** Returns the rows of the steps before the first that fails, and its failure. */
    const tried = Effect.fnUntraced(function* (names: ReadonlyArray<StepName>, subject: StepSubject) {
      const run: Array<StepRows> = []
      let { gate } = subject
      for (const name of names) {
        const exit = yield* Effect.exit(attempt("provisioning", name, { ...subject, gate }))
        if (Exit.isFailure(exit)) return { run, failed: { name, exit } }
        if (exit.value.unless !== undefined) gate = sql`${sql(`after_${run.length}`)}`
        run.push(exit.value)
      }
      return { run, failed: undefined }
    })

    /**
     * Runs all steps of a provisioning in one statement with other Identities. Returns whether the Identity is ready.
     */
    const finish = Effect.fnUntraced(
      function* (identity: Owned, names: ReadonlyArray<StepName>, parts: ReadonlyArray<Part>, subject: StepSubject) {
        const saga = names.reduce((before, name) => Saga.succeed(before, name, subject.at), identity.saga)
        const state: Owned = { ...identity, saga, sagaDueAt: null, status: "ready" }
        const done = yield* ownership.change(system, (fenced) =>
          Effect.map(provisionings.finish({ write: writeOf(fenced, subject), parts, saga: sagaJson(saga) }), (moved) =>
            moved ? { value: true, state } : { value: false },
          ),
        )
        if (done) for (const name of names) steps.of(name, "done").n++
        return done
      },
      // The steps report the error themselves when they run one at a time.
      Effect.catchDefect((defect) => Effect.as(Effect.logDebug("Steps ended in a defect together", defect), false)),
    )

    /** Commits successful steps. Returns the reason if nothing was created. */
    const succeed = Effect.fnUntraced(function* (
      identity: Owned,
      names: ReadonlyArray<StepName>,
      { rows, unless, shows }: Made,
      subject: StepSubject,
    ) {
      const { at } = subject
      const saga = names.reduce((before, name) => Saga.succeed(before, name, at), identity.saga)
      const next = advanced(identity, saga, at)
      const isProvisioning = saga.kind === "provisioning"
      const done = yield* ownership.change(system, (fenced) => {
        const write = writeOf(fenced, subject)
        const made = unless?.made ?? sql`true`
        const moved =
          next === undefined
            ? sql`moved as (delete from identity where id = ${identity.id} and exists (select from fence) and (${made}) returning id)`
            : sql`moved as (
                update identity set saga = ${sagaJson(saga)}::jsonb, saga_due_at = ${next.sagaDueAt}::timestamptz, status = ${next.status}
                       ${next.status === "ready" ? sql`, ready_at = ${at}` : sql``}
                where id = ${identity.id} and status = ${identity.status} and exists (select from fence) and (${made}) returning id)`
        const kept = shows.length === 0 ? sql`` : sql`, ${shown(sql, sql`unprovisioned`, shows)}`
        const ready = next?.status === "ready"
        return Effect.map(
          commit<{ moved: boolean }>(
            write,
            sql`${isProvisioning ? sql`${unprovisioned(subject)},` : sql``} ${rows} ${kept}, ${moved} ${ready ? sql`, ${readiness(write)}` : sql``}`,
            {
              columns: sql`exists (select from moved) as moved`,
              raises: ready,
            },
          ),
          (row) => (row.moved ? { value: true, state: next } : { value: false }),
        )
      })
      if (done) for (const name of names) steps.of(name, "done").n++
      // The deletion of the account may have reversed the saga meanwhile, which makes the step obsolete.
      if (done || (yield* ownership.state)?.status !== identity.status) return undefined
      return unless?.otherwise ?? "nothing was made"
    })

    /** Records the Org's first ready Identity and raises `identity.ready`. */
    const readiness = (write: Write) => sql`
      first as (
        update org set first_ready_identity = ${write.identity.id}
        where id = ${write.identity.orgId} and first_ready_identity is null and exists (select from moved)
      ),
      ${raise(write, "moved", "identity.ready", {})}`

    const fail = Effect.fnUntraced(function* (identity: Owned, step: StepName, error: string, subject: StepSubject) {
      steps.of(step, "failed").n++
      const failed = Saga.fail(identity.saga, step, error, subject.at, yield* Random.next)
      const final = failed.dueAt === undefined
      const next: Owned = {
        ...identity,
        saga: failed.saga,
        sagaDueAt: failed.dueAt ?? null,
        status: final && identity.status === "provisioning" ? "failed" : identity.status,
      }
      const raises = final && identity.saga.kind === "provisioning"
      yield* ownership.change(system, (fenced) => {
        const write = writeOf(fenced, subject)
        return Effect.map(
          commit<{ moved: boolean }>(
            write,
            sql`moved as (
              update identity set saga = ${sagaJson(next.saga)}::jsonb, saga_due_at = ${next.sagaDueAt}::timestamptz, status = ${next.status}
              where id = ${identity.id} and status = ${identity.status} and exists (select from fence) returning id)
            ${raises ? sql`, ${raise(write, "moved", "identity.failed", { step, error })}` : sql``}`,
            { columns: sql`exists (select from moved) as moved`, raises },
          ),
          (row) => (row.moved ? { value: undefined, state: next } : { value: undefined }),
        )
      })
    })

    return {
      dispatch: Effect.fnUntraced(function* (identity) {
        const steps = Saga.stepsLeft(identity.saga)
        if (steps.length === 0 || (yield* sagaWait(identity)) > 0) return false
        yield* advance(identity, steps)
        return true
      }),
      nextDue: (identity) => Effect.succeed(Saga.currentStep(identity.saga) === undefined ? null : identity.sagaDueAt),
      isBusy: () => false,
      settle: Effect.void,
    }
  }),
}

/** CTE `unprovisioned`: the single Identity, in the shape that shared steps expect. */
const unprovisioned = ({ sql, identity, at }: StepSubject) => sql`
  unprovisioned as materialized (
    select 1 as n, ${identity.id}::uuid as identity_id, ${identity.orgId}::uuid as org_id, ${identity.handle}::text as handle,
           ${at}::timestamptz as at
    from fence
  )`

/** The rows of several steps for one statement. */
interface Made extends Pick<StepRows, "rows" | "unless"> {
  readonly shows: ReadonlyArray<Shows>
}

/**
 * Joins the rows of several steps. After a step that creates its rows only under a condition follows the gate of the
 * next steps, `after_<position>`.
 */
const together = (sql: Sql, run: ReadonlyArray<StepRows>): Made => {
  const conditions = run.flatMap(({ unless }) => (unless === undefined ? [] : [unless]))
  let gate = sql`unprovisioned`
  const rows = run.flatMap(({ rows: own, unless }, place) => {
    if (unless === undefined || place === run.length - 1) return [own]
    const before = gate
    gate = sql`${sql(`after_${place}`)}`
    return [own, sql`${gate} as (select g.* from ${before} g where ${unless.made})`]
  })
  return {
    rows: Statement.join(", ", false)(rows),
    shows: run.flatMap(({ shows }) => (shows === undefined ? [] : [shows])),
    ...(conditions.length === 0
      ? {}
      : {
          unless: {
            made: Statement.join(" and ", false)(conditions.map(({ made }) => sql`(${made})`)),
            otherwise: conditions[0]!.otherwise,
          },
        }),
  }
}

/** Returns the Identity after a successful step, or undefined after the last step of its teardown. */
const advanced = (identity: Owned, saga: SagaState, at: Date): Owned | undefined => {
  if (saga.status === "running")
    return { ...identity, saga, sagaDueAt: new Date(at.getTime() + Timing.sagaLeaseMillis) }
  if (saga.kind === "teardown") return undefined
  return { ...identity, saga, sagaDueAt: null, status: "ready" }
}
