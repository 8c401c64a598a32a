/**
 * Work of a Connector with its own schedule, such as a poll. A column of its row contains the due time, and one run is
 * in progress at a time. An interrupted run leaves the row due and is repeated.
 */
import { Clock, Effect, type Scope } from "effect"
import type { OwnIdentity } from "../../actor/Write.ts"
import type { Ownership } from "../../actor/Ownership.ts"
import type { Sql } from "../../store/Database.ts"
import * as SingleRun from "../../work/SingleRun.ts"
import type { Source } from "../../work/Source.ts"
import type { PollTrigger } from "./PollTrigger.ts"
import type { PlatformCalls } from "../PlatformCalls.ts"
import { type Connection, type ConnectorState, isPaused } from "../ConnectorState.ts"

/** Dependencies of the work sources. */
export interface Parts {
  readonly ownership: Ownership<ConnectorState>
  readonly calls: PlatformCalls
  readonly pollTrigger: PollTrigger
  readonly sql: Sql
}

interface DueWork {
  readonly name: string
  readonly column: "poll_due_at" | "check_due_at"
  /** Returns the due time from the in-memory state. */
  readonly dueOf: (connection: Connection) => Date | null
  readonly make: (
    parts: Parts,
  ) => Effect.Effect<
    (identity: OwnIdentity, connection: Connection) => Effect.Effect<void, unknown>,
    never,
    Scope.Scope
  >
}

export const dueWork = ({ name, column, dueOf, make }: DueWork): Source<ConnectorState, never, Parts> => ({
  name,

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ id: string }>`
        select canonical || '/' || platform as id from connector where ${sql(column)} <= ${late}
        order by ${sql(column)} limit ${atMost}`,
      (rows) => rows.map(({ id }) => id),
    ),

  make: Effect.fnUntraced(function* (parts) {
    const one = yield* SingleRun.make
    const run = yield* make(parts)
    const dueAt = (state: ConnectorState) =>
      state.connection === undefined || isPaused(state) ? null : dueOf(state.connection)

    return {
      dispatch: Effect.fnUntraced(function* (state, changed) {
        const { identity, connection } = state
        const now = yield* Clock.currentTimeMillis
        const due = dueAt(state)
        if (identity === undefined || connection === undefined || due === null) return false
        if (due.getTime() > now || !one.isFree(now)) return false
        return yield* one.start(run(identity, connection), `Work was interrupted: ${name}`, changed)
      }),
      nextDue: (state) => Effect.suspend(() => one.from(dueAt(state))),
      isBusy: one.isBusy,
      settle: one.settle,
    }
  }),
})
