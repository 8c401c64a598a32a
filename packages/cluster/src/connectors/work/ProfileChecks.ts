/**
 * The daily profile check as a work source of the actor: updates the account's name and capabilities, and stops a
 * Connector whose profile is no longer marked as automated.
 */
import { Effect } from "effect"
import { commit, type OwnIdentity } from "../../actor/Write.ts"
import { Timing } from "../../Timing.ts"
import { withTimeout } from "../PlatformCalls.ts"
import * as ConnectionWrites from "../ConnectionWrites.ts"
import { type Connection, type ConnectorState, isPaused } from "../ConnectorState.ts"
import { dueWork } from "./DueWork.ts"
import { credentialRefused, undeclared } from "../Refusals.ts"

export const source = dueWork({
  name: "profiles",
  column: "check_due_at",
  dueOf: ({ checkDueAt }) => checkDueAt,

  make: Effect.fnUntraced(function* ({ calls }) {
    const { platform } = calls

    const inspect = Effect.fn("ProfileChecks.inspect")(function* (identity: OwnIdentity, connection: Connection) {
      const status = yield* withTimeout(platform.inspect(calls.session(identity, connection)))
      yield* calls.change((write, state) => {
        if (state.connection?.id !== connection.id) return Effect.succeed({ value: undefined })
        if (connection.declared && !status.disclosed) {
          return connection.status === "stopped"
            ? postpone(write, state, connection, Timing.profileRecheckMillis)
            : ConnectionWrites.stop(write, state, connection.id, undeclared(platform))
        }
        return connection.status === "stopped"
          ? ConnectionWrites.recover(write, state, status)
          : ConnectionWrites.updateAccount(write, state, connection.id, status)
      })
    })

    const postpone = (
      write: Parameters<typeof ConnectionWrites.stop>[0],
      state: ConnectorState,
      connection: Connection,
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

    const later = (connection: Connection) =>
      calls.change((write, state) => postpone(write, state, connection, Timing.profileRecheckMillis))

    const check = (identity: OwnIdentity, connection: Connection) =>
      inspect(identity, connection).pipe(
        Effect.catchTags({
          CredentialRefused: ({ message }) =>
            connection.status === "stopped"
              ? later(connection)
              : calls.change((write, state) =>
                  ConnectionWrites.stop(write, state, connection.id, credentialRefused(platform, message)),
                ),
          PlatformRateLimited: () => later(connection),
          PlatformUnreachable: () => later(connection),
          PlatformRefused: () => later(connection),
          Unsupported: () => later(connection),
          InputRefused: () => later(connection),
          Halted: () => Effect.void,
        }),
        Effect.catchDefect((defect) =>
          Effect.andThen(Effect.logError("A inspect at a profile ended in a defect", defect), later(connection)),
        ),
      )

    return check
  }),
})
