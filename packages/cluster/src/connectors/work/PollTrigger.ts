/**
 * Requests an early poll when a stream reports activity. The due time is stored, so that the poll runs wherever the
 * actor is by then. It respects the platform's rate limit, and many polls are spaced further apart.
 */
import { Effect } from "effect"
import { commit } from "../../actor/Write.ts"
import { Timing } from "../../Timing.ts"
import type { PlatformCalls } from "../PlatformCalls.ts"
import { type Connection, type ConnectorState, isPaused } from "../ConnectorState.ts"

/** Number of polls within a minute from which the spacing grows. */
const manyPolls = 20
const minute = 60_000

export interface PollTrigger {
  /** Number of requests so far. A poll that started before the last request may have missed its cause. */
  readonly requests: () => number
  /** Returns the earliest time for a poll that is requested now. */
  readonly earliest: (now: number) => number
  /** Records the start of a poll. */
  readonly pollStarted: (now: number) => void
  /** Sets the platform's earliest time for the next poll, or null. */
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
    requests: () => requestCount,
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
