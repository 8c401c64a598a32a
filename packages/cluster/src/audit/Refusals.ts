/**
 * Summarizes what a client can repeat endlessly without changing anything: rejected calls, repeated responses, opening
 * links. The first is recorded immediately, and the others of its minute are one record with their number. A client
 * that keeps repeating therefore writes two rows a minute.
 */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect } from "effect"
import type { Act } from "./AuditWrite.ts"
import { Timing } from "../Timing.ts"

const minute = 60_000
/** Maximum number of followed credentials and reasons; above that, each rejection is a record. */
const followed = 20_000

interface Followed {
  readonly until: number
  /** The last operation, and the number after the first. */
  act: Act
  more: number
}

/** Returns the key of a summary: the reason of a rejection, otherwise what the operation concerns. */
const keyOf = ({ org, actor, identity, outcome, action, code, class: of }: Act) =>
  `${org} ${actor.kind} ${actor.id ?? identity?.id ?? ""} ${of} ${outcome === "refused" ? (code ?? "") : `${outcome} ${action}`}`

/** Returns whether such operations of one credential are summarized. */
export const areCounted = ({ outcome, source }: Act): boolean =>
  outcome === "refused" || outcome === "repeated" || source.via === "tunnel"

export const make = Effect.fnUntraced(function* (keep: (act: Act, count: number) => Effect.Effect<void>) {
  const known = new Map<string, Followed>()

  const flushUntil = (now: number) =>
    Effect.suspend(() => {
      const over = [...known].filter(([, { until }]) => until <= now)
      for (const [key] of over) known.delete(key)
      return Effect.forEach(
        over.filter(([, { more }]) => more > 0),
        ([, { act, more }]) => keep(act, more),
        { concurrency: "unbounded", discard: true },
      )
    })
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(Timing.auditRefusals), Effect.flatMap(monotonicMillis, flushUntil))),
  )

  return {
    record: (act: Act): Effect.Effect<void> =>
      Effect.flatMap(monotonicMillis, (now) => {
        const key = keyOf(act)
        const present = known.get(key)
        if (present !== undefined && present.until > now) {
          present.act = act
          present.more++
          return Effect.void
        }
        if (present === undefined && known.size >= followed) return keep(act, 1)
        known.set(key, { until: now + minute, act, more: 0 })
        const before = present === undefined || present.more === 0 ? Effect.void : keep(present.act, present.more)
        return Effect.andThen(before, keep(act, 1))
      }),
    /** Records all pending summaries. */
    flush: flushUntil(Infinity),
  }
})
