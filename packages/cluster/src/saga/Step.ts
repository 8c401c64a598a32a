/**
 * A step of an Identity's saga. It answers the rows it makes or removes as common table expressions, which the actor
 * commits together with the next state of the checklist: a step is done exactly when the checklist says so, and doing one
 * again changes nothing. Each capability keeps its steps in its own folder (`<Capability>Steps`).
 */
import { type Effect, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { Write } from "../actor/Write.ts"
import type { Sql } from "../store/Database.ts"

/** A try of a step failed; `message` is shown in the checklist. */
export class StepFailed extends Schema.TaggedError<StepFailed>()("StepFailed", { message: Schema.String }) {}

/** What a step is about; its rows are written later, under the fence of the actor. */
export interface StepSubject extends Pick<Write, "sql" | "identity" | "at" | "by"> {
  /**
   * The CTE that has a row where the step may do its work: `fence`, or in provisioning `todo` or what an earlier step of the
   * statement left of it, whose rows say what they are of ({@link Shared}).
   */
  readonly gate: Statement.Fragment
}

/**
 * Columns of `show_once`, each an expression over the row that `from` (CTEs of the statement) has for an `identity_id`; none
 * where nothing was made.
 */
export interface Shows {
  readonly from: Statement.Fragment
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
  /** What the rows are made of, where one statement may make those of several Identities. */
  readonly part?: Part
}

/**
 * How a step of provisioning makes the rows of several Identities. `gate` has a row for each that it may do its work for, with
 * `n` (its place among the values, from 1), `identity_id`, `org_id`, `handle` and `at`.
 */
export interface Shared<Value> {
  readonly rows: (sql: Sql, gate: Statement.Fragment, values: ReadonlyArray<Value>) => Statement.Fragment
  /** The CTE that has the `n` of those whose rows were made, and why the step failed for the others; left out where they always are. */
  readonly unless?: { readonly made: string; readonly otherwise: string }
  readonly shows?: (sql: Sql) => Shows
}

/** What a step makes of one Identity: only steps of the same `shared` know what the value is. */
export interface Part {
  readonly shared: Shared<never>
  readonly value: never
}

/** The rows of one Identity, made as those of several are. */
export const partOf = <Value>({ sql, gate }: StepSubject, shared: Shared<Value>, value: Value): StepRows => {
  const { unless, shows } = shared
  return {
    // Of several, those of each by itself are not asked for.
    get rows() {
      return shared.rows(sql, gate, [value])
    },
    ...(unless === undefined
      ? {}
      : { unless: { made: sql`exists (select from ${sql(unless.made)})`, otherwise: unless.otherwise } }),
    ...(shows === undefined ? {} : { shows: shows(sql) }),
    part: { shared, value: value as never },
  }
}

export type Step = (subject: StepSubject) => Effect.Effect<StepRows, StepFailed | SqlError.SqlError>
