import { it } from "@effect/vitest"
import * as VerdictPool from "@svc/mail-gateway/mail/judging/VerdictPool"
import { LookupFailed, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { Deferred, Effect, Fiber } from "effect"
import { describe, expect } from "vitest"

const arrival = { ip: "192.0.2.1", helo: "mx.example.org", mailFrom: "a@example.org", host: "mail.localhost" }
const letter = (text: string, subject = "hello") =>
  Buffer.from(`From: Ada <a@example.org>\r\nSubject: ${subject}\r\n\r\n${text}\r\n`)

const zone: Readonly<Record<string, string>> = { "TXT example.org": "v=spf1 ip4:192.0.2.1 -all" }
const dns = {
  lookup: (name: string, type: string) => {
    const record = zone[`${type} ${name}`]
    return record === undefined
      ? Effect.fail(new LookupFailed({ code: "ENOTFOUND" }))
      : Effect.succeed([[record]] as const)
  },
}
/** Longer than a healthy worker is silent on a busy machine. */
const stuck = { entry: new URL("./StuckThread.ts", import.meta.url), silenceMillis: 2_000 }
const withDns = Effect.provideService(Resolver, dns)

describe("A verdict worker", () => {
  it.live("queries DNS through the process, as the process does without workers", () =>
    Effect.gen(function* () {
      for (const workers of [0, 1]) {
        const { judge } = yield* VerdictPool.make({ workers })
        const judged = yield* judge(letter("text"), arrival)
        expect(judged.origin).toMatchObject({ verdict: "verified", spf: "pass" })
        expect(judged.parsed).toMatchObject({ subject: "hello", text: "text\n", from: { address: "a@example.org" } })
      }
    }).pipe(Effect.scoped, withDns),
  )

  it.live("that is blocked by a message is killed; the message is kept with its header, and the next is judged", () =>
    Effect.gen(function* () {
      const { judge } = yield* VerdictPool.make({ workers: 1, ...stuck })
      for (const text of ["loop forever", "end the thread"]) {
        yield* judge(letter("first"), arrival)
        const lost = yield* judge(letter(text, "=?utf-8?q?n=C3=B6?="), arrival)
        expect(lost.origin.verdict).toBe("error")
        expect(lost.parsed).toMatchObject({ subject: "nö", from: { address: "a@example.org" }, text: null })
        expect((yield* judge(letter("next"), arrival)).origin.verdict).toBe("verified")
      }
    }).pipe(Effect.scoped, withDns),
  )
})

describe("A message that waits for DNS", () => {
  it.live("does not block others, however many there are", () =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<void>()
      const allWait = yield* Deferred.make<void>()
      let waiting = 0
      const slow = {
        lookup: (name: string, type: string) => {
          if (!name.endsWith("slow.example")) return dns.lookup(name, type)
          if (++waiting === 50) Deferred.doneUnsafe(allWait, Effect.void)
          return Effect.andThen(Deferred.await(answer), dns.lookup(name, type))
        },
      }
      yield* Effect.gen(function* () {
        const { judge } = yield* VerdictPool.make({ workers: 1 })
        const late = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: 50 }, (_, at) => at),
            // Some of them repeat a query.
            (at) => judge(letter("late"), { ...arrival, mailFrom: `a@${at % 25}.slow.example` }),
            { concurrency: "unbounded" },
          ),
        )
        yield* Deferred.await(allWait)
        expect((yield* judge(letter("text"), arrival)).origin.verdict).toBe("verified")
        yield* Deferred.succeed(answer, undefined)
        expect(yield* Fiber.join(late)).toHaveLength(50)
      }).pipe(Effect.scoped, Effect.provideService(Resolver, slow))
    }),
  )
})
