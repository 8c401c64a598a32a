/**
 * Asks for a poll before its time, when something was said. It becomes due in the store, so that it is made wherever the
 * actor is by then; no sooner than the platform wants, and further apart when they are many.
 */
import { Effect } from "effect"
import { commit } from "../../actor/Write.ts"
import { Timing } from "../../Timing.ts"
import type { PlatformCalls } from "../PlatformCalls.ts"
import { type Connection, type ConnectorState, isPaused } from "../ConnectorState.ts"

/** Polls within a minute; more than that are further apart. */
const manyPolls = 20
const minute = 60_000

export interface PollTrigger {
  /** How often it rang: a poll that began before the last one has not heard what that was for. */
  readonly rings: () => number
  /** When the next poll may be made, for one that is asked for now. */
  readonly earliest: (now: number) => number
  /** A poll begins. */
  readonly pollStarted: (now: number) => void
  /** The platform wants none before then; null where it did not say. */
  readonly deferUntil: (until: Date | null) => void
  readonly request: (calls: PlatformCalls, connection: string) => ReturnType<PlatformCalls["change"]>
}

export const make = (): PollTrigger => {
  let requestCount = 0
  let polled: ReadonlyArray<number> = []
  let quietUntil = 0

  const earliest: PollTrigger["earliest"] = (now) => {
    const gap =
      polled.filter((at) => at > now - minute).length < manyPolls ? Timing.streamGapMillis : Timing.streamManyGapMillis
    return Math.max(now, quietUntil, (polled.at(-1) ?? -Infinity) + gap)
  }

  return {
    rings: () => requestCount,
    earliest,
    pollStarted: (now) => {
      polled = [...polled.slice(-manyPolls), now]
    },
    deferUntil: (until) => {
      quietUntil = until?.getTime() ?? 0
    },
    request: (calls, connection) => {
      requestCount++
      return calls.change((write, state) => {
        const present = state.connection
        if (present?.id !== connection || present.status !== "connected" || isPaused(state)) {
          return Effect.succeed({ value: undefined })
        }
        const due = new Date(earliest(write.at.getTime()))
        if (present.pollDueAt !== null && present.pollDueAt <= due) return Effect.succeed({ value: undefined })
        const next: Connection = { ...present, pollDueAt: due, pollWaitMillis: Timing.pollSoonestMillis }
        return Effect.as(
          commit(
            write,
            write.sql`rung as (
              update connector set poll_due_at = ${due}::timestamptz, poll_wait_millis = ${next.pollWaitMillis}::int
              where connection_id = ${connection}::uuid and status = 'connected' and exists (select from fence)
            )`,
          ),
          { value: undefined, state: { ...state, connection: next } satisfies ConnectorState },
        )
      })
    },
  }
}
