/** Sharing the event loop between sessions. */
import { Effect } from "effect"
import { expect, it } from "vitest"
import * as Turns from "@svc/mail-gateway/mail/imap/server/SessionTurns"

/** Uses up the turn on any machine. */
const work = () => {
  for (const until = performance.now() + 10; performance.now() < until;);
}

it("session turns yield once the turn is used up and continue in order of arrival", async () => {
  const turns = Turns.make()
  const order: Array<string> = []
  const session = (name: string) =>
    Effect.runPromise(
      Effect.gen(function* () {
        for (let n = 0; n < 3; n++) {
          work()
          yield* turns.take
          order.push(`${name}${n}`)
        }
      }),
    )
  turns.begin()
  let between = 0
  const others = setImmediate(function again() {
    between++
    if (order.length < 9) setImmediate(again)
  })
  const all = Promise.all(["a", "b", "c"].map(session))
  // Each session alone used its whole share of time.
  expect(order).toEqual([])
  await all
  clearImmediate(others)
  expect(order).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"])
  // The third round has no work after the turn.
  expect(between).toBeGreaterThanOrEqual(6)
})

it("session turns continue immediately while there is time and forget interrupted waiters", async () => {
  const turns = Turns.make()
  expect(Effect.runSync(Effect.as(turns.take, "at once"))).toBe("at once")
  work()
  const aborted = new AbortController()
  const remaining = Effect.runPromise(turns.take, { signal: aborted.signal }).catch(() => "gone")
  const stays = Effect.runPromise(Effect.as(turns.take, "went"))
  aborted.abort()
  expect(await remaining).toBe("gone")
  expect(await stays).toBe("went")
})
