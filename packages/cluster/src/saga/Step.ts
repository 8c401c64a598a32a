/**
 * A step of an Identity's saga. It returns the rows that it creates or removes as common table expressions, which the
 * actor commits together with the next state of the checklist. The checklist therefore always matches the rows, and
 * repeating a step changes nothing. Each capability keeps its steps in its own folder (`<Capability>Steps`).
 */
import { type Effect, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { Write } from "../actor/Write.ts"
import type { Sql } from "../store/Database.ts"

/** An attempt of a step failed; `message` is shown in the checklist. */
export class StepFailed extends Schema.TaggedError<StepFailed>()("StepFailed", { message: Schema.String }) {}

/** The input of a step. Its rows are written later, under the actor's fence. */
export interface StepSubject extends Pick<Write, "sql" | "identity" | "at" | "by"> {
  /**
   * The CTE that has a row if the step may do its work: `fence`, or in provisioning `unprovisioned` or what an earlier step of
   * the statement left of it. The rows name the Identity ({@link Shared}).
   */
  readonly gate: Statement.Fragment
}

/**
 * Columns of `show_once`, each an expression over the row that `from` (CTEs of the statement) has for an `identity_id`;
 * there is no row if the step created nothing.
 */
export interface Shows {
  readonly from: Statement.Fragment
  readonly columns: Readonly<Record<string, Statement.Fragment>>
}

export interface StepRows {
  /**
   * CTEs that do nothing unless the subject's `gate` has a row. In provisioning they may share a statement with the CTEs
   * of other steps, which use other names and change other rows.
   */
  readonly rows: Statement.Fragment
  /** Whether the rows were created, and the reason of failure if not; left out if they always are. */
  readonly unless?: { readonly made: Statement.Fragment; readonly otherwise: string }
  /** Secrets to show once (`ShowOnce.shown`): one row that several steps may fill together. */
  readonly shows?: Shows
  /** The input of the rows, if one statement may create those of several Identities. */
  readonly part?: Part
}

/**
 * Creates the rows of several Identities in a step of provisioning. `gate` has a row for each Identity whose work may
 * be done, with `n` (its position among the values, from 1), `identity_id`, `org_id`, `handle` and `at`.
 */
export interface Shared<Value> {
  readonly rows: (sql: Sql, gate: Statement.Fragment, values: ReadonlyArray<Value>) => Statement.Fragment
  /**
   * The CTE with the `n` of the Identities whose rows were created, and the reason of failure for the others; left out if
   * there are no others.
   */
  readonly unless?: { readonly made: string; readonly otherwise: string }
  readonly shows?: (sql: Sql) => Shows
}

/** A step's work for one Identity. Only steps of the same `shared` know the type of the value. */
export interface Part {
  readonly shared: Shared<never>
  readonly value: never
}

/** Creates the rows of one Identity in the same way as those of several. */
export const partOf = <Value>({ sql, gate }: StepSubject, shared: Shared<Value>, value: Value): StepRows => {
  const { unless, shows } = shared
  return {
    // A getter, because in a batch the rows of a single Identity are not used.
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
