/**
 * The saga as a state machine without I/O: the next step, and the checklist after a success or a failure. The actor
 * commits each transition together with the step's rows, so the checklist never runs ahead of the work.
 *
 * A step is tried six times, with waits of 1, 2, 4, 8 and 16 s (with jitter) in between, then the saga has failed
 * (decisions.md "Resources"). A retry resumes at the failed step; completed steps stay `done`.
 */
import { type Saga, type SagaKind, sagaSteps, type SagaStep, type StepName } from "@svc/domain/identity/Identity"

export const triesPerStep = 6

export const start = (kind: SagaKind, now: Date): Saga => ({
  kind,
  status: "running",
  steps: sagaSteps[kind].map((name, index): SagaStep => ({
    name,
    status: index === 0 ? "running" : "pending",
    attempts: 0,
    error: null,
    finished_at: null,
  })),
  started_at: now,
  finished_at: null,
})

/** Returns the steps that are still to be done, in order; empty once the saga has ended. */
export const stepsLeft = (saga: Saga): ReadonlyArray<StepName> =>
  saga.status === "running" ? saga.steps.filter((step) => step.status !== "done").map(({ name }) => name) : []

/** Returns the step to do next. */
export const currentStep = (saga: Saga): StepName | undefined => stepsLeft(saga)[0]

const replaceStep = (saga: Saga, name: StepName, change: (step: SagaStep) => SagaStep): ReadonlyArray<SagaStep> =>
  saga.steps.map((step) => (step.name === name ? change(step) : step))

/** Marks a step as done: the next one runs, or the saga is complete. */
export const succeed = (saga: Saga, name: StepName, now: Date): Saga => {
  const done = replaceStep(saga, name, (step) => ({
    ...step,
    status: "done",
    attempts: step.attempts + 1,
    error: null,
    finished_at: now,
  }))
  const next = done.findIndex((step) => step.status !== "done")
  return next < 0
    ? { ...saga, status: "completed", steps: done, finished_at: now }
    : { ...saga, steps: done.map((step, index) => (index === next ? { ...step, status: "running" } : step)) }
}

/** Records a failed attempt: the step is due again after a wait, or the saga has failed (`dueAt` is undefined). */
export const fail = (
  saga: Saga,
  name: StepName,
  error: string,
  now: Date,
  /** A random number from 0 to 1 for the jitter. */
  random: number,
): { readonly saga: Saga; readonly dueAt: Date | undefined } => {
  const attempts = (saga.steps.find((step) => step.name === name)?.attempts ?? 0) + 1
  const final = attempts >= triesPerStep
  const steps = replaceStep(saga, name, (step) => ({
    ...step,
    status: final ? "failed" : "retrying",
    attempts,
    error,
    finished_at: final ? now : null,
  }))
  return final
    ? { saga: { ...saga, status: "failed", steps, finished_at: now }, dueAt: undefined }
    : { saga: { ...saga, steps }, dueAt: new Date(now.getTime() + waitMillis(attempts, random)) }
}

/** Returns the wait after each failure: 1, 2, 4, 8, 16 s, up to 20 % longer or shorter. */
const waitMillis = (failures: number, random: number) => 1000 * 2 ** (failures - 1) * (0.8 + 0.4 * random)

/** Resumes a failed saga at its failed step. */
export const rerun = (saga: Saga): Saga => ({
  ...saga,
  status: "running",
  finished_at: null,
  steps: saga.steps.map((step) =>
    step.status === "failed" ? { ...step, status: "running", attempts: 0, finished_at: null } : step,
  ),
})
