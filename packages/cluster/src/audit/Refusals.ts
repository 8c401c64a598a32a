/**
 * What a client can do over and over without changing anything: to be refused for one reason, to have an answer given
 * again, to open links. The first is recorded at once, those of the rest of its minute are one record that says how many
 * they were. So a client that goes on and on writes two rows a minute.
 */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect } from "effect"
import type { Act } from "./AuditWrite.ts"
import { Timing } from "../Timing.ts"

const minute = 60_000
/** Credentials and reasons that are followed at the same time; beyond, each refusal is a record. */
const followed = 20_000

interface Followed {
  readonly until: number
  /** The last one, and how many came after the first. */
  act: Act
  more: number
}

/** By the reason where it was refused, by what it was about otherwise. */
const keyOf = ({ org, actor, identity, outcome, action, code, class: of }: Act) =>
  `${org} ${actor.kind} ${actor.id ?? identity?.id ?? ""} ${of} ${outcome === "refused" ? (code ?? "") : `${outcome} ${action}`}`

/** Whether such acts of one credential are counted together. */
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
    /** All that is not on record yet. */
    flush: flushUntil(Infinity),
  }
})
