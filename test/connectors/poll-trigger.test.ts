import * as PollTrigger from "@svc/cluster/connectors/work/PollTrigger"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"

const second = 1_000
const start = 1_800_000_000_000

it("a requested poll keeps its distance to the last one, a longer one after twenty polls in a minute", () => {
  const trigger = PollTrigger.make()
  expect(trigger.earliest(start)).toBe(start)
  for (let n = 0; n < 19; n++) trigger.pollStarted(start + n * second)
  const [nineteenth, twentieth] = [start + 18 * second, start + 19 * second]
  expect(trigger.earliest(nineteenth)).toBe(nineteenth + second)
  expect(trigger.earliest(nineteenth + 3 * second)).toBe(nineteenth + 3 * second)
  trigger.pollStarted(twentieth)
  expect(trigger.earliest(twentieth)).toBe(twentieth + 5 * second)
  trigger.pollStarted(twentieth + 5 * second)
  expect(trigger.earliest(twentieth + 5 * second)).toBe(twentieth + 10 * second)
  // The first two polls are a minute ago, so that nineteen are left.
  const later = start + 61 * second
  trigger.pollStarted(later - 500)
  expect(trigger.earliest(later - 500)).toBe(later - 500 + 5 * second)
  expect(trigger.earliest(later + second)).toBe(later + second)
})

it("a requested poll does not come before the time that the platform allows, until the next poll", () => {
  const trigger = PollTrigger.make()
  trigger.deferUntil(new Date(start + 60 * second))
  expect(trigger.earliest(start)).toBe(start + 60 * second)
  expect(trigger.earliest(start + 61 * second)).toBe(start + 61 * second)
  trigger.deferUntil(null)
  expect(trigger.earliest(start)).toBe(start)
})

it.effect("a request is counted, and changes nothing for a Connector that does not poll or is due anyway", () =>
  Effect.gen(function* () {
    const trigger = PollTrigger.make()
    const connection = { id: "1", status: "connected", pollDueAt: new Date(start) }
    const state = { connection, pause: { own: false, everyone: false } }
    const others = [
      { ...state, connection: undefined },
      { ...state, connection: { ...connection, id: "2" } },
      { ...state, connection: { ...connection, status: "stopped" } },
      { ...state, pause: { own: true, everyone: false } },
      { ...state, pause: { own: false, everyone: true } },
      state,
    ]
    for (const [n, present] of others.entries()) {
      const calls = { change: (run: any) => run({ at: new Date(start) }, present) }
      expect(yield* trigger.request(calls as never, "1")).toEqual({ value: undefined })
      expect(trigger.requests()).toBe(n + 1)
    }
  }),
)
