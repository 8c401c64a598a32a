/** Notifications to other processes: their content, and how many statements they need. */
import { expect, it } from "@effect/vitest"
import { decode, encode, make } from "@svc/cluster/feed/CrossProcessFeed"
import { Duration, Effect, Latch } from "effect"
import { TestClock } from "effect/testing"
import { Timing } from "@svc/cluster/Timing"

it.effect("the first change is notified immediately and the following ones in batches, one at a time", () =>
  Effect.gen(function* () {
    const sent: Array<ReadonlyArray<string>> = []
    const answered = Latch.makeUnsafe()
    const announce = yield* make((keys) => {
      sent.push([...keys])
      return sent.length === 2 ? answered.await : Effect.void
    })
    const pause = TestClock.adjust(Timing.feedGather)
    announce("a")
    yield* TestClock.adjust(0)
    expect(sent).toEqual([["a"]])
    for (const key of ["b", "c", "b"]) announce(key)
    yield* TestClock.adjust(Duration.subtract(Duration.fromInputUnsafe(Timing.feedGather), Duration.millis(1)))
    expect(sent).toEqual([["a"]])
    yield* TestClock.adjust("1 millis")
    expect(sent).toEqual([["a"], ["b", "c"]])
    // The second statement is in flight until the store responds.
    announce("d")
    announce("e")
    yield* pause
    yield* pause
    expect(sent.length).toBe(2)
    yield* answered.open
    yield* pause
    expect(sent).toEqual([["a"], ["b", "c"], ["d", "e"]])
  }),
)

it.effect("notifications continue after the store failed or hung", () =>
  Effect.gen(function* () {
    const sent: Array<ReadonlyArray<string>> = []
    const announce = yield* make((keys) => {
      sent.push([...keys])
      return sent.length === 1 ? Effect.die("broken") : sent.length === 2 ? Effect.never : Effect.void
    })
    for (const key of ["a", "b", "c"]) {
      announce(key)
      yield* TestClock.adjust(Duration.sum(Duration.fromInputUnsafe(Timing.ask), Duration.seconds(1)))
    }
    expect(sent).toEqual([["a"], ["b"], ["c"]])
  }),
)

it("splits keys to fit into notifications, and ignores its own notifications", () => {
  const keys = Array.from({ length: 1_000 }, (_, i) => `00000000-0000-7000-8000-${String(i).padStart(12, "0")}`)
  const payloads = encode("me", keys)
  expect(payloads.every((payload) => Buffer.byteLength(payload) < 8_000)).toBe(true)
  expect(payloads.flatMap((payload) => decode("you", payload))).toEqual(keys)
  expect(payloads.flatMap((payload) => decode("me", payload))).toEqual([])
  // A notification that a SQL statement sends itself names no sending process.
  expect(decode("me", "tunnel/ada")).toEqual(["tunnel/ada"])
  expect(encode("me", [])).toEqual([])
  // A notification that is exactly as long as allowed is not split.
  expect(encode("me", ["aaaa", "bbbb"], "from/me aaaa bbbb".length)).toEqual(["from/me aaaa bbbb"])
  expect(encode("me", ["aaaa", "bbbb"], "from/me aaaa bbb".length)).toEqual(["from/me aaaa", "from/me bbbb"])
})
