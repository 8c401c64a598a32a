/** The keys by which a retry of a transaction is recognized. */
import { byMailbox, split } from "@svc/mail-gateway/mail/RecipientAddress"
import { keyOf, operator, Transactions } from "@svc/mail-gateway/mail/Transactions"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/mail-gateway/Timing"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

const mail = { sha256: new Uint8Array(32).fill(1), envelopeFrom: "grace@example.org" }
const key = (addresses: ReadonlyArray<string>, of = mail) =>
  Buffer.from(keyOf(of, byMailbox(addresses.map((one) => `${one}@mail.localhost`))[0]!)).toString("hex")

describe("The key of a transaction", () => {
  it("is the same for every order and spelling of the recipients", () => {
    expect(key(["ada+b", "ada", "ada+a"])).toBe(key(["ada", "ada+a", "ada+b"]))
    expect(key(["A-da+B", "ada+b"])).toBe(key(["ada+b"]))
  })

  it("differs for every other Mailbox, set of tags, sender and content", () => {
    const keys = [
      key(["ada"]),
      key(["grace"]),
      key(["ada+"]),
      key(["ada+a"]),
      key(["ada+b"]),
      key(["ada+a", "ada+b"]),
      key(["ada", "ada+a"]),
      key(["ada"], { ...mail, envelopeFrom: "" }),
      key(["ada"], { ...mail, sha256: new Uint8Array(32) }),
      Buffer.from(keyOf(mail, operator)).toString("hex"),
    ]
    expect(new Set(keys).size).toBe(keys.length)
  })
})

describe("An address", () => {
  it("has its domain after the last @, also behind a quoted local part", () => {
    expect(split('"ada@home"@Mail.localhost')).toEqual({ local: '"ada@home"', domain: "mail.localhost" })
    expect(split("postmaster")).toEqual({ local: "postmaster", domain: "" })
  })
})

describe("Equal transactions", () => {
  const [one, other] = [new Uint8Array([1]), new Uint8Array([2])]
  /** Collects the keys whose marks were deleted. */
  const gone: Array<ReadonlyArray<Uint8Array>> = []
  const database = Layer.succeed(Writes, ((_: unknown, keys: ReadonlyArray<Uint8Array>) =>
    Effect.sync(() => {
      gone.push(keys)
      return []
    })) as never)
  const transactions = Layer.provide(Transactions.layer, database)
  const work: Effect.Effect<void, string> = Effect.void
  const settle = Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow)

  it.effect("run one after another, and a mark is deleted only after a 250", () =>
    Effect.gen(function* () {
      gone.length = 0
      const { within } = yield* Transactions
      const order: Array<string> = []
      const run = (name: string, keys: ReadonlyArray<Uint8Array>) =>
        Effect.forkChild(
          within(
            keys,
            Effect.sync(() => void order.push(name)),
            "busy" as never,
          ),
        )
      const first = yield* Fiber.join(yield* run("first", [one]))
      const second = yield* run("second", [other, one])
      yield* Fiber.join(yield* run("unequal", [new Uint8Array([3])]))
      yield* settle
      expect(order).toEqual(["first", "unequal"])
      first.end(true)
      const transaction = yield* Fiber.join(second)
      expect([order, gone]).toEqual([["first", "unequal", "second"], [[one]]])
      transaction.end(false)
      yield* Fiber.join(yield* run("third", [one]))
      yield* settle
      expect(gone).toHaveLength(1)
    }).pipe(Effect.provide(transactions)),
  )

  it.effect("that failed, or waited too long or in vain, hold nobody up", () =>
    Effect.gen(function* () {
      const { within } = yield* Transactions
      expect(yield* Effect.flip(within([one], Effect.fail("failed"), "busy"))).toBe("failed")
      const holder = yield* within([other], work, "busy")
      const run = () => Effect.forkChild(Effect.flip(within([one, other], work, "busy")))
      const late = yield* run()
      yield* settle
      yield* TestClock.adjust(Timing.smtpEqual)
      expect(yield* Fiber.join(late)).toBe("busy")
      const interrupted = yield* run()
      yield* settle
      yield* Fiber.interrupt(interrupted)
      // Both had taken the first key, and waited for the second.
      yield* within([one], work, "busy")
      holder.end(false)
      yield* within([other], work, "busy")
    }).pipe(Effect.provide(transactions)),
  )

  it.effect("lose their marks in one statement at a time, and at a shutdown in a last one", () =>
    Effect.gen(function* () {
      const statements: Array<ReadonlyArray<Uint8Array>> = []
      const answers = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = Layer.succeed(Writes, ((_: unknown, keys: ReadonlyArray<Uint8Array>) =>
        Effect.suspend(() => {
          const answer = answers[statements.push(keys) - 1]
          return answer === undefined ? Effect.succeed([]) : Deferred.await(answer)
        })) as never)
      const third = new Uint8Array([3])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { within } = Context.get(yield* Layer.build(Layer.provide(Transactions.layer, slow)), Transactions)
          const answer = (key: Uint8Array) => Effect.map(within([key], work, "busy"), ({ end }) => end(true))
          yield* answer(one)
          yield* settle
          yield* answer(other)
          yield* settle
          expect(statements).toEqual([[one]])
          yield* Deferred.succeed(answers[0]!, undefined)
          yield* settle
          expect(statements).toEqual([[one], [other]])
          yield* answer(third)
          yield* settle
        }),
      )
      expect(statements).toEqual([[one], [other], [other, third]])
    }),
  )
})
