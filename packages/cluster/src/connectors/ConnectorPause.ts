/**
 * Pauses one Connector, or all Connectors of an Identity. The pause is in the actor's memory before the reply and ends
 * the permit for platform calls. The reply also waits for the permits of processes that owned the Connector before, so
 * that no call leaves after it. A connection that is made later is paused too.
 */
import { ConnectorPaused, NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { commit, type Fenced } from "../actor/Write.ts"
import { Timing } from "../Timing.ts"
import { type ConnectorState, isPaused } from "./ConnectorState.ts"

export interface Pause {
  readonly paused: boolean
  /** Applies to all Connectors of the Identity instead of this one. */
  readonly everyone: boolean
}

export const pause = Effect.fnUntraced(function* (write: Fenced, state: ConnectorState, wanted: Pause) {
  const { identity, connection } = state
  if (identity === undefined || (connection === undefined && !wanted.everyone)) {
    return yield* new NotFound({ detail: "There is no such Connector." })
  }
  if (!wanted.everyone && !wanted.paused && state.pause.everyone) {
    return yield* new ConnectorPaused({
      detail: "All Connectors of the Identity are paused: PATCH /api/identities/{handle}/connectors lets them go on.",
    })
  }
  const next: ConnectorState = {
    ...state,
    pause: wanted.everyone ? { ...state.pause, everyone: wanted.paused } : { ...state.pause, own: wanted.paused },
  }
  const { sql, at } = write
  const goesOn = !isPaused(next)
  const working = connection?.status === "connected"
  const pollDueAt = goesOn && working ? at : null
  const checkDueAt =
    goesOn && (working || connection?.checkDueAt != null)
      ? (connection?.checkDueAt ?? new Date(at.getTime() + (working ? 0 : Timing.profileRecheckMillis)))
      : null
  yield* commit(
    write,
    sql`paused as (
      insert into connector_pause (identity_id, platform, paused, everyone)
      select ${identity.id}::uuid, ${state.platform}::text, ${next.pause.own}::boolean, ${next.pause.everyone}::boolean from fence
      on conflict (identity_id, platform) do update set paused = excluded.paused, everyone = excluded.everyone
    ),
    held as (
      update connector set poll_due_at = ${pollDueAt}::timestamptz, check_due_at = ${checkDueAt}::timestamptz,
        updated_at = ${at}::timestamptz
      where identity_id = ${identity.id}::uuid and platform = ${state.platform}::text and exists (select from fence)
    )`,
  )
  return {
    value: undefined,
    state: connection === undefined ? next : { ...next, connection: { ...connection, pollDueAt, checkDueAt } },
  }
})
