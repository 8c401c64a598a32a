/**
 * A step of an Identity's saga. It answers the rows it makes or removes as common table expressions, which the actor
 * commits together with the next state of the checklist: a step is done exactly when the checklist says so, and doing one
 * again changes nothing. Each capability keeps its steps in its own folder (`<Capability>Steps`).
 */
import { type Effect, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { Write } from "../actor/Write.ts"

/** A try of a step failed; `message` is shown in the checklist. */
export class StepFailed extends Schema.TaggedError<StepFailed>()("StepFailed", { message: Schema.String }) {}

/** What a step is about; its rows are written later, under the fence of the actor. */
export interface StepSubject extends Pick<Write, "sql" | "identity" | "at" | "by"> {
  /** The CTE that has a row where the step may do its work: `fence`, or what an earlier step of the statement left it to. */
  readonly gate: Statement.Fragment
}

/** Columns of `show_once`, each an expression over the row of CTE `from`, which has none where nothing was made. */
export interface Shows {
  readonly from: string
  readonly columns: Readonly<Record<string, Statement.Fragment>>
}

export interface StepRows {
  /**
   * CTEs, each of which does nothing unless the subject's `gate` has a row. In provisioning they may share a statement
   * with those of other steps, which have other names and change other rows.
   */
  readonly rows: Statement.Fragment
  /** Whether the rows were made, and why the step failed otherwise; left out where they always are. */
  readonly unless?: { readonly made: Statement.Fragment; readonly otherwise: string }
  /** What is shown once of what was made (`ShowOnce.shown`): one row, which several steps may write together. */
  readonly shows?: Shows
}

export type Step = (subject: StepSubject) => Effect.Effect<StepRows, StepFailed | SqlError.SqlError>
