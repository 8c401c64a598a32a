/** Sessions that take turns on the event loop. */
import { Effect } from "effect"
import { expect, it } from "vitest"
import * as Turns from "@svc/mail-gateway/mail/imap/server/SessionTurns"

/** Uses the turn up, however quick the machine is. */
const work = () => {
  for (const until = performance.now() + 10; performance.now() < until;);
}

it("lets others go on once a turn is used up, and each session in the order it came", async () => {
  const turns = Turns.make()
  const went: Array<string> = []
  const session = (name: string) =>
    Effect.runPromise(
      Effect.gen(function* () {
        for (let n = 0; n < 3; n++) {
          work()
          yield* turns.take
          went.push(`${name}${n}`)
        }
      }),
    )
  turns.begin()
  let between = 0
  const others = setImmediate(function again() {
    between++
    if (went.length < 9) setImmediate(again)
  })
  const all = Promise.all(["a", "b", "c"].map(session))
  // Each has used up the turn by itself.
  expect(went).toEqual([])
  await all
  clearImmediate(others)
  expect(went).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"])
  // Of the third round nothing is left to do after the turn was taken.
  expect(between).toBeGreaterThanOrEqual(6)
})

it("goes on at once where there is time, and leaves nobody behind who stopped waiting", async () => {
  const turns = Turns.make()
  expect(Effect.runSync(Effect.as(turns.take, "at once"))).toBe("at once")
  work()
  const gone = new AbortController()
  const left = Effect.runPromise(turns.take, { signal: gone.signal }).catch(() => "gone")
  const stays = Effect.runPromise(Effect.as(turns.take, "went"))
  gone.abort()
  expect(await left).toBe("gone")
  expect(await stays).toBe("went")
})
