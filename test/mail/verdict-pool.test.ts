/** How the pool of verdict workers distributes messages, on workers that do what a message says. */
import { hash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { Worker } from "node:worker_threads"
import { it } from "@effect/vitest"
import * as VerdictPool from "@svc/mail-gateway/mail/judging/VerdictPool"
import { LookupFailed, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Timing } from "@svc/mail-gateway/Timing"
import { Deferred, Effect, Exit, Fiber, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, describe, expect, vi } from "vitest"
import type { Reported } from "./ScriptedThread.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }))
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const entry = new URL("./ScriptedThread.ts", import.meta.url)
const arrival = { ip: "192.0.2.1", helo: "mx.example.org", mailFrom: "a@example.org", host: "mail.localhost" }
const large = VerdictPool.limits.small + 1

/** A message of this size whose bytes are never copied. */
const huge = (length: number) =>
  Object.assign(Object.create(null), { length, subarray: () => Buffer.alloc(0) }) as Buffer

/** Sends every busy worker pings. The first also ends the messages that it holds. */
const ping = (times = 1) => void vi.advanceTimersByTime(times * Timing.judgingPingMillis)

/** Lets the workers and the timers of the process continue. */
const turn = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))

const made = (options: Parameters<typeof VerdictPool.make>[0]) =>
  Effect.map(VerdictPool.make({ entry, ...options }), ({ judge }) => ({
    /** Gives the pool a message at once, and returns the fiber that waits for its verdict. */
    give: (action: string, bytes = 0) =>
      Effect.map(
        Effect.forkChild(judge(Buffer.from(action.padEnd(bytes)), arrival), { startImmediately: true }),
        (fiber) => fiber as unknown as Fiber.Fiber<Reported>,
      ),
    judge: (action: string) => judge(Buffer.from(action), arrival) as unknown as Effect.Effect<Reported>,
    raw: (raw: Buffer) => judge(raw, arrival),
  }))

const withDns = Effect.provideService(Resolver, { lookup: (name) => Effect.succeed([name]) })

describe("A verdict pool", () => {
  it.effect("fills one worker with the small messages of a moment before it wakes the next", () =>
    Effect.gen(function* () {
      const { give } = yield* made({ workers: 2 })
      const fibers = yield* Effect.forEach(Array.from({ length: 9 }), () => give("hold"))
      ping()
      const judged = yield* Effect.forEach(fibers.slice(0, 8), Fiber.join)
      // Up to three share a worker. After that the worker with the fewest gets one, up to four.
      expect(judged.map(({ beside }) => beside)).toEqual([0, 1, 2, 0, 1, 2, 3, 3])
      expect(judged.map(({ isPatient }) => isPatient)).toEqual([false, false, false, true, true, true, false, true])
      ping()
      // It waited until a worker had finished a message.
      expect(yield* Fiber.join(fibers[8]!)).toMatchObject({ memory: 256 })
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("gives nothing more to a worker that takes long, as long as another is free", () =>
    Effect.gen(function* () {
      const { give } = yield* made({ workers: 2 })
      const first = yield* give("hold")
      yield* TestClock.adjust(Timing.judgingBriskMillis)
      const second = yield* give("hold")
      yield* TestClock.adjust(1)
      const third = yield* give("hold")
      yield* TestClock.adjust(Timing.judgingBriskMillis + 1)
      // Both take long. The second has fewer messages.
      const fourth = yield* give("hold")
      ping()
      const judged = yield* Effect.forEach([first, second, third, fourth], Fiber.join)
      expect(judged.map(({ isPatient }) => isPatient)).toEqual([false, false, true, true])
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("reserves a worker for small messages, and gives each other one a single large message", () =>
    Effect.gen(function* () {
      const { give } = yield* made({ workers: 3 })
      const fibers = yield* Effect.forEach([large, large, large, large - 1, 0, 0, 0, 0], (bytes) => give("hold", bytes))
      ping()
      // The last small one shares a worker with a large one, since the worker for small ones is full.
      const judged = yield* Effect.forEach(fibers.toSpliced(2, 1), Fiber.join)
      expect(judged.map(({ isPatient }) => isPatient)).toEqual([true, true, false, false, false, false, true])
      expect(judged.map(({ beside }) => beside)).toEqual([0, 0, 0, 1, 2, 3, 1])
      ping()
      expect(yield* Fiber.join(fibers[2]!)).toMatchObject({ isPatient: true, bytes: large })
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("gives a worker every byte of a large message", () =>
    Effect.gen(function* () {
      const bytes = Buffer.from("reply 0 ".padEnd(2.5 * 1024 * 1024, "0123456789 "))
      const { raw } = yield* made({ workers: 1 })
      expect(yield* raw(bytes)).toMatchObject({ bytes: bytes.length, sha256: hash("sha256", bytes) })
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("refuses a message if its queue has too many messages or bytes", () =>
    Effect.gen(function* () {
      const { give, raw } = yield* made({ workers: 1 })
      for (let n = 0; n < VerdictPool.limits.running + VerdictPool.limits.waiting; n++) yield* give("hold")
      expect(yield* Effect.flip(raw(Buffer.from("reply")))).toMatchObject({ _tag: "JudgingOverloaded" })

      const other = yield* made({ workers: 1 })
      const half = VerdictPool.limits.waitingBytes / 2
      const first = yield* other.give("hold", large)
      const queued = yield* Effect.forkChild(
        Effect.all([other.raw(huge(half)), other.raw(huge(half))], { concurrency: 2 }),
      )
      yield* Effect.yieldNow
      expect(yield* Effect.flip(other.raw(Buffer.from("x")))).toMatchObject({ _tag: "JudgingOverloaded" })
      ping()
      yield* Fiber.join(first)
      yield* Effect.yieldNow
      // The queue has room again once a worker has taken the first of them.
      expect((yield* other.judge("reply")).bytes).toBe(5)
      yield* Fiber.interrupt(queued)
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("ignores a second verdict, and keeps a worker in which a message failed", () =>
    Effect.gen(function* () {
      const { judge } = yield* made({ workers: 1 })
      const twice = yield* judge("twice")
      expect(twice.replies).toEqual(["first"])
      expect(yield* judge("fail")).toMatchObject({ origin: { verdict: "error" } })
      expect((yield* judge("reply")).thread).toBe(twice.thread)
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("retries the messages of a worker that ended one at a time, in a worker of their own", () =>
    Effect.gen(function* () {
      const { give, judge } = yield* made({ workers: 1, silenceMillis: Infinity })
      const { thread } = yield* judge("reply")
      const [first, second, third] = yield* Effect.forEach(["hold", "hold", "exit"], (action) => give(action))
      while (third!.pollUnsafe() === undefined) {
        // Every message is a reason to assign those that wait.
        yield* give("reply")
        ping()
        yield* turn
      }
      const retried = [yield* Fiber.join(first!), yield* Fiber.join(second!)]
      expect(retried).toMatchObject([
        { beside: 0, isPatient: true },
        { beside: 0, isPatient: true },
      ])
      expect(retried[0]!.thread).toBe(retried[1]!.thread)
      expect(yield* Fiber.join(third!)).toMatchObject({ origin: { verdict: "error" } })
      expect(new Set([thread, retried[0]!.thread, (yield* judge("reply")).thread]).size).toBe(3)
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("kills a busy worker that did not reply to pings for too long, and allows more to one that starts", () =>
    Effect.gen(function* () {
      const killed = vi.spyOn(Worker.prototype, "terminate")
      const silenceMillis = 4 * Timing.judgingPingMillis
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { give, judge } = yield* made({ workers: 1, silenceMillis })
          yield* give("ask 1")
          for (let n = 0; n < 2; n++) {
            // Any message of the worker shows that it is alive.
            yield* judge("reply")
            ping(4)
          }
          expect(killed).not.toHaveBeenCalled()
        }),
      )
      killed.mockClear()

      const { give, judge } = yield* made({ workers: 1, silenceMillis })
      yield* judge("reply")
      const mute = yield* give("mute")
      ping(4)
      expect(killed).not.toHaveBeenCalled()
      ping()
      expect(killed).toHaveBeenCalledTimes(1)
      expect(yield* Fiber.join(mute)).toMatchObject({ origin: { verdict: "error" } })
      const next = yield* give("reply")
      ping(5)
      expect((yield* Fiber.join(next)).bytes).toBe(5)

      const silent = new URL("data:text/javascript,setInterval(() => {}, 60_000)")
      const starting = yield* made({ workers: 1, silenceMillis, entry: silent })
      const unanswered = yield* starting.give("reply")
      ping(4 * 6)
      expect(killed).toHaveBeenCalledTimes(1)
      ping()
      expect(yield* Fiber.join(unanswered)).toMatchObject({ origin: { verdict: "error" } })
      expect(killed).toHaveBeenCalledTimes(2)
    }).pipe(Effect.scoped, Effect.provideService(Resolver, { lookup: () => Effect.never })),
  )

  it.effect("gives a message up after twice the time for its look-ups, and keeps its worker", () =>
    Effect.gen(function* () {
      const lines: Array<unknown> = []
      const logger = Logger.make(({ message }) => void lines.push(message))
      yield* Effect.gen(function* () {
        const { give, judge } = yield* made({ workers: 1 })
        const { thread } = yield* judge("reply")
        const early = yield* give("ask 1")
        yield* TestClock.adjust(1)
        const late = yield* give("hold")
        yield* TestClock.adjust(2 * Timing.verdictMillis - 1)
        ping(2)
        expect(yield* Fiber.join(early)).toMatchObject({ origin: { verdict: "error" } })
        expect(yield* Fiber.join(late)).toMatchObject({ thread, beside: 1 })
        expect(lines).toEqual([["A message could not be judged", { reason: "not done in time", bytes: 5 }]])
      }).pipe(Effect.provide(Logger.layer([logger])))
    }).pipe(Effect.scoped, Effect.provideService(Resolver, { lookup: () => Effect.never })),
  )

  it.effect("ends its workers when it had no message for some minutes, and when its scope closes", () =>
    Effect.gen(function* () {
      const killed = vi.spyOn(Worker.prototype, "terminate")
      const scope = yield* Scope.make()
      const { give, judge } = yield* Scope.provide(made({ workers: 2, silenceMillis: Infinity }), scope)
      const first = yield* judge("reply")
      ping(Timing.judgingIdleMillis / Timing.judgingPingMillis - 1)
      // A message between two pings counts.
      expect(yield* judge("reply")).toMatchObject({ thread: first.thread })
      ping(Timing.judgingIdleMillis / Timing.judgingPingMillis - 1)
      expect(killed).not.toHaveBeenCalled()
      ping()
      expect(killed).toHaveBeenCalledTimes(1)
      yield* judge("reply")
      yield* give("ask 1")
      ping(Timing.judgingIdleMillis / Timing.judgingPingMillis)
      expect(killed).toHaveBeenCalledTimes(1)
      yield* Scope.close(scope, Exit.void)
      expect(killed).toHaveBeenCalledTimes(2)
      expect(vi.getTimerCount()).toBe(0)
    }).pipe(Effect.provideService(Resolver, { lookup: () => Effect.never })),
  )

  it.effect(
    "tries to start a worker again after a minute, and never judges in the process what may have ended one",
    () =>
      Effect.gen(function* () {
        const folder = mkdtempSync(path.join(tmpdir(), "svc-pool-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
        const file = path.join(folder, "Worker.mjs")
        const pool = yield* made({ workers: 1, entry: pathToFileURL(file) })
        expect(yield* pool.judge("reply")).not.toHaveProperty("thread")
        writeFileSync(file, `import ${JSON.stringify(entry.href)}`)
        yield* TestClock.adjust(Timing.judgingRetryMillis - 1)
        expect(yield* pool.judge("reply")).not.toHaveProperty("thread")
        yield* TestClock.adjust(1)
        expect(yield* pool.judge("reply")).toHaveProperty("thread")

        rmSync(file)
        const lost = yield* Effect.forEach(["hold", "hold", "exit"], (action) => pool.give(action))
        for (const one of lost) expect(yield* Fiber.join(one)).toMatchObject({ origin: { verdict: "error" } })
      }).pipe(Effect.scoped, withDns),
  )
})

describe("A look-up for a message in a verdict worker", () => {
  it.effect("returns the records or the error code of the resolver, up to a number of look-ups", () =>
    Effect.gen(function* () {
      const { judge } = yield* made({ workers: 1 })
      const { replies } = yield* judge(`ask ${VerdictPool.limits.lookups + 1}`)
      expect(replies.slice(0, 2)).toEqual([["0.example.org"], "ENOTFOUND"])
      expect(replies.slice(-2)).toEqual([["119.example.org"], "ETIMEOUT"])
    }).pipe(
      Effect.scoped,
      Effect.provideService(Resolver, {
        lookup: (name) =>
          name.startsWith("1.") ? Effect.fail(new LookupFailed({ code: "ENOTFOUND" })) : Effect.succeed([name]),
      }),
    ),
  )

  it.effect("frees the place of its message in the worker only until it is answered", () =>
    Effect.gen(function* () {
      let asked = 0
      const lookup = (name: string) => Effect.sync(() => (asked++, [name]))
      const { give } = yield* Effect.provideService(made({ workers: 1 }), Resolver, { lookup })
      const held = yield* Effect.forEach(Array.from({ length: VerdictPool.limits.running }), () => give("hold 1"))
      while (asked < VerdictPool.limits.running) yield* turn
      yield* turn
      const next = yield* give("reply")
      ping()
      yield* Effect.forEach(held, Fiber.join)
      expect((yield* Fiber.join(next)).beside).toBeLessThan(VerdictPool.limits.running)
    }).pipe(Effect.scoped),
  )

  it.effect("is answered only in the worker that asked", () =>
    Effect.gen(function* () {
      const answers = yield* Effect.forEach([1, 2, 3], () => Deferred.make<Array<string>>())
      let asked = 0
      const { give } = yield* Effect.provideService(made({ workers: 1 }), Resolver, {
        lookup: () => Deferred.await(answers[asked++]!),
      })
      const asking = (count: number) => Effect.repeat(turn, { until: () => asked === count })
      const first = yield* give("ask 1")
      yield* asking(1)
      // Ends the worker. The first message asks again in another one.
      yield* give("exit")
      yield* asking(2)
      const next = yield* give("ask 1")
      yield* asking(3)
      for (const [n, answer] of answers.entries()) {
        yield* Deferred.succeed(answer, [`answer ${n + 1}`])
        yield* turn
      }
      expect((yield* Fiber.join(first)).replies).toEqual([["answer 2"]])
      expect((yield* Fiber.join(next)).replies).toEqual([["answer 3"]])
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))),
  )

  it.effect("is answered however long the worker of its message took to start", () =>
    Effect.gen(function* () {
      const { give } = yield* made({ workers: 1 })
      const waiting = yield* give("ask 1")
      yield* TestClock.adjust(Timing.verdictMillis)
      expect((yield* Fiber.join(waiting)).replies).toEqual([["0.example.org"]])
    }).pipe(Effect.scoped, withDns),
  )

  it.effect("times out when the time of its message is over", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const { give } = yield* Effect.provideService(made({ workers: 1 }), Resolver, {
        lookup: (name) =>
          name.startsWith("0.")
            ? Effect.andThen(Deferred.succeed(first, undefined), Effect.delay(Effect.succeed([name]), 1_000))
            : Effect.andThen(Deferred.succeed(second, undefined), Effect.never),
      })
      const waiting = yield* give("ask 2")
      yield* Deferred.await(first)
      yield* TestClock.adjust(1_000)
      yield* Deferred.await(second)
      yield* TestClock.adjust(Timing.verdictMillis - 1_000 - 1)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect((yield* Fiber.join(waiting)).replies).toEqual([["0.example.org"], "ETIMEOUT"])
    }).pipe(Effect.scoped),
  )
})
