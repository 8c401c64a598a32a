/**
 * The daily look at the profile as work of the actor: what the account is and may, and whether it still says that it is
 * automated. One that does not say so any more is stopped rather than left undeclared.
 */
import { Cause, Clock, Effect, FiberSet } from "effect"
import { commit, type OwnIdentity } from "../actor/Write.ts"
import { Timing } from "../Timing.ts"
import type { Source } from "../work/Source.ts"
import { within } from "./Calls.ts"
import * as Connection from "./Connection.ts"
import { type Connection as Kept, type ConnectorState, isPaused } from "./ConnectorState.ts"
import type { Parts } from "./Polling.ts"
import { credentialRefused, undeclared } from "./Stopping.ts"

export const source: Source<ConnectorState, never, Parts> = {
  name: "profiles",

  overdue: (sql, late, atMost) =>
    Effect.map(
      sql<{ id: string }>`
        select canonical || '/' || platform as id from connector where check_due_at <= ${late}
        order by check_due_at limit ${atMost}`,
      (rows) => rows.map(({ id }) => id),
    ),

  make: Effect.fnUntraced(function* ({ calls }) {
    const { platform } = calls
    const fibers = yield* FiberSet.make<void, unknown>()
    let busy = false
    let notBefore = 0

    const look = Effect.fn("ProfileChecks.look")(function* (identity: OwnIdentity, connection: Kept) {
      const standing = yield* within(platform.look(calls.session(identity, connection)), platform.title)
      yield* calls.change((write, state) => {
        if (state.connection?.id !== connection.id) return Effect.succeed({ value: undefined })
        if (connection.declared && !standing.disclosed) {
          return connection.status === "stopped"
            ? postpone(write, state, connection, Timing.profileRecheckMillis)
            : Connection.stop(write, state, connection.id, undeclared(platform))
        }
        return connection.status === "stopped"
          ? Connection.recover(write, state, standing)
          : Connection.learn(write, state, connection.id, standing)
      })
    })

    const postpone = (
      write: Parameters<typeof Connection.stop>[0],
      state: ConnectorState,
      connection: Kept,
      millis: number,
    ) => {
      const present = state.connection
      if (present?.id !== connection.id) return Effect.succeed({ value: undefined })
      const checkDueAt = isPaused(state) ? null : new Date(write.at.getTime() + millis)
      return Effect.as(
        commit(
          write,
          write.sql`postponed as (
            update connector set check_due_at = ${checkDueAt}::timestamptz
            where connection_id = ${connection.id}::uuid and exists (select from fence)
          )`,
        ),
        { value: undefined, state: { ...state, connection: { ...present, checkDueAt } } },
      )
    }

    const later = (connection: Kept) =>
      calls.change((write, state) => postpone(write, state, connection, Timing.profileRecheckMillis))

    const check = (identity: OwnIdentity, connection: Kept) =>
      look(identity, connection).pipe(
        Effect.catchTags({
          CredentialRefused: ({ message }) =>
            connection.status === "stopped"
              ? later(connection)
              : calls.change((write, state) =>
                  Connection.stop(write, state, connection.id, credentialRefused(platform, message)),
                ),
          PlatformRateLimited: () => later(connection),
          PlatformUnreachable: () => later(connection),
          PlatformRefused: () => later(connection),
          Unsupported: () => later(connection),
          InputRefused: () => later(connection),
          Halted: () => Effect.void,
        }),
        Effect.catchDefect((defect) =>
          Effect.andThen(Effect.logError("A look at a profile ended in a defect", defect), later(connection)),
        ),
      )

    return {
      dispatch: Effect.fnUntraced(function* (state, changed) {
        const { identity, connection } = state
        const now = yield* Clock.currentTimeMillis
        if (identity === undefined || connection?.checkDueAt == null || isPaused(state)) return false
        if (busy || connection.checkDueAt.getTime() > now || notBefore > now) return false
        busy = true
        yield* check(identity, connection).pipe(
          Effect.catchCause((cause) =>
            Cause.hasInterruptsOnly(cause)
              ? Effect.void
              : Effect.logWarning("A look at a profile was cut short", cause),
          ),
          Effect.ensuring(
            Effect.flatMap(Clock.currentTimeMillis, (ended) => {
              busy = false
              notBefore = ended + Timing.busyLookMillis
              return changed
            }),
          ),
          FiberSet.run(fibers),
        )
        return true
      }),
      nextDue: (state) =>
        Effect.sync(() => {
          const due = isPaused(state) ? null : (state.connection?.checkDueAt ?? null)
          return due === null ? null : new Date(Math.max(due.getTime(), notBefore))
        }),
      isBusy: () => busy,
      settle: Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(fibers), Timing.settle)),
    }
  }),
}
