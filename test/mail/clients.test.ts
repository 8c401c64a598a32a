/** Limits per client, each at its boundary. */
import * as Clients from "@svc/mail-gateway/mail/smtp/Clients"
import { Timing } from "@svc/mail-gateway/Timing"
import { Bounces } from "@svc/mail-gateway/mail/sending/Bounces"
import * as Recipients from "@svc/mail-gateway/mail/Recipients"
import { Reception } from "@svc/mail-gateway/mail/Reception"
import { Screening } from "@svc/mail-gateway/mail/Screening"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { expect, it } from "vitest"

const { limits } = Clients
const many = (count: number, act: () => unknown) => Array.from({ length: count }, act)

it("a client has at most 100 concurrent connections, and another after one has closed", () => {
  const clients = Clients.make()
  expect(many(limits.atOnce, () => clients.enter("192.0.2.1", 0)).every(Boolean)).toBe(true)
  expect(clients.enter("192.0.2.1", 0)).toBe(false)
  expect(clients.enter("192.0.2.2", 0)).toBe(true)
  clients.leave("192.0.2.1")
  expect(clients.enter("192.0.2.1", 0)).toBe(true)
  expect(clients.enter("192.0.2.1", 0)).toBe(false)
})

it("a client opens at most 1,200 connections per minute", () => {
  const clients = Clients.make()
  const minute = Timing.smtpClientWindowMillis
  const opened = (at: number) =>
    many(limits.perMinute + 1, () => {
      const isIn = clients.enter("192.0.2.1", at)
      if (isIn) clients.leave("192.0.2.1")
      return isIn
    }).filter(Boolean).length
  expect(opened(0)).toBe(limits.perMinute)
  expect(clients.enter("192.0.2.1", minute)).toBe(false)
  expect(opened(minute + 1)).toBe(limits.perMinute)
  // The second minute starts where the first ends.
  expect(clients.enter("192.0.2.1", minute + 2)).toBe(false)
  expect(clients.enter("192.0.2.1", 2 * minute + 1)).toBe(false)
  expect(opened(2 * minute + 2)).toBe(limits.perMinute)
})

it("at most 2,000 connections are open in total", () => {
  const clients = Clients.make()
  for (let n = 0; n < limits.inAll; n++) expect(clients.enter(`192.0.${Math.floor(n / 100)}.1`, 0)).toBe(true)
  expect(clients.enter("198.51.100.1", 0)).toBe(false)
  clients.leave("192.0.0.1")
  expect(clients.enter("198.51.100.1", 0)).toBe(true)
})

it("unknown recipients count until the window since the first has passed", () => {
  const clients = Clients.make()
  const window = Timing.smtpUnknownWindowMillis
  expect([clients.unknown("192.0.2.1", 0), clients.unknown("192.0.2.1", window)]).toEqual([1, 2])
  expect(clients.unknown("192.0.2.1", window + 1)).toBe(1)
  expect(clients.unknown("192.0.2.2", window + 1)).toBe(1)
  expect(clients.unknown("192.0.2.1", 2 * window + 1)).toBe(2)
})

it("unknown recipients of a client count even if the least recent clients are forgotten meanwhile", () => {
  const clients = Clients.make()
  clients.unknown("192.0.2.1", 0)
  const later = Timing.smtpClientWindowMillis + 1
  for (let n = 0; n <= 10_001; n++) clients.unknown(`10.${Math.floor(n / 250)}.${n % 250}.1`, later)
  expect(clients.unknown("192.0.2.1", later)).toBe(2)
})

it("each unknown recipient of a session is answered later than the one before it, and the 20th ends the session", async () => {
  const screening = { isListed: () => Effect.succeed(false), isTooNew: () => Effect.succeed(false) }
  const run = Effect.gen(function* () {
    const judge = yield* Recipients.make({ mailDomain: "mail.example" }, Clients.make())
    const session = { remoteAddress: "192.0.2.1", envelope: { mailFrom: false, rcptTo: [] } } as never
    const answers: Array<readonly [code: number, millis: number]> = []
    for (let n = 1; n <= limits.unknownInSession; n++) {
      const answer = yield* Effect.forkChild(
        Effect.flip(judge({ address: "nobody@mail.example", args: false }, session)),
      )
      let millis = 0
      yield* TestClock.adjust(0)
      for (; answer.pollUnsafe() === undefined; millis += Timing.tarpitStepMillis)
        yield* TestClock.adjust(Timing.tarpitStepMillis)
      answers.push([(yield* Fiber.join(answer)).responseCode, millis])
    }
    return answers
  }).pipe(
    Effect.provideService(Screening, screening as never),
    Effect.provideService(Reception, { status: () => Effect.succeed("unknown") } as never),
    Effect.provideService(Bounces, {} as never),
    Effect.provide(TestClock.layer()),
  )
  const answers = await Effect.runPromise(run)
  expect(answers.map(([code]) => code)).toEqual([...Array.from({ length: 19 }, () => 550), 421])
  expect(answers.map(([, millis]) => millis)).toEqual(
    Array.from({ length: 20 }, (_, n) => Math.max(0, n + 1 - limits.unknownAtOnce) * Timing.tarpitStepMillis),
  )
})
