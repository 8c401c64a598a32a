/** Throttling of failed mail client logins, by address and by Mailbox. */
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { StandingPasswords } from "@svc/cluster/credentials/StandingPasswords"
import { make as makeToken } from "@svc/domain/account/Token"
import { Unauthenticated } from "@svc/domain/problems/Problem"
import * as Logins from "@svc/mail-gateway/mail/imap/server/Logins"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { foundation } from "../../harness/Stores.ts"

/** Rejects every key without a database, so that only the throttle takes time. */
const logins = Layer.fresh(Logins.Logins.layer({ mailDomain: "mail.localhost" })).pipe(
  Layer.provide([
    Layer.mock(CredentialLookup, { resolve: () => Effect.fail(new Unauthenticated({ detail: "no" })) }),
    Layer.mock(Audit, { record: () => Effect.void, kept: () => {}, used: () => {} }),
    Layer.mock(RefusedCredentials, { turnedAway: () => Effect.void }),
    Layer.mock(StandingCredentials, {}),
    Layer.mock(StandingPasswords, {}),
  ]),
  Layer.provide(foundation),
  Layer.orDie,
)

const key = Redacted.make(makeToken("identity_key", new Uint8Array(32)))

/** Fails once and returns the delay in milliseconds. */
const refusedAfter = Effect.fnUntraced(function* (mailbox: string, address: string) {
  const { judge } = yield* Logins.Logins
  const tried = yield* Effect.forkChild(Effect.flip(judge(mailbox, key, address, Logins.imapPurpose)))
  for (let waited = 0; ; waited += 50) {
    for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
    if (tried.pollUnsafe() !== undefined) {
      expect(yield* Fiber.join(tried)).toBeInstanceOf(Logins.LoginRefused)
      return waited
    }
    yield* TestClock.adjust(50)
  }
})

const failures = (count: number, mailbox: (n: number) => string, address: (n: number) => string) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => refusedAfter(mailbox(n), address(n)),
  )

describe("failed logins", () => {
  it.effect("are not delayed twice, then by 250 ms more each time up to 8 s, per address", () =>
    Effect.gen(function* () {
      const waits = yield* failures(
        36,
        (n) => `mailbox${n}`,
        () => "192.0.2.1",
      )
      expect(waits.slice(0, 5)).toEqual([0, 0, 250, 500, 750])
      expect(waits.slice(-3)).toEqual([8_000, 8_000, 8_000])
      expect(yield* refusedAfter("another", "198.51.100.1")).toBe(0)
    }).pipe(Effect.provide(logins)),
  )

  it.effect("are also counted per Mailbox, for any address and any spelling of the name", () =>
    Effect.gen(function* () {
      const spellings = ["ada", "Ada", "a-da@mail.localhost", "ADA@MAIL.LOCALHOST"]
      const waits = yield* failures(
        4,
        (n) => spellings[n]!,
        (n) => `192.0.${n}.1`,
      )
      expect(waits).toEqual([0, 0, 250, 500])
      expect(yield* refusedAfter("grace", "192.0.100.1")).toBe(0)
    }).pipe(Effect.provide(logins)),
  )

  it.effect("are forgotten after ten minutes and not earlier", () =>
    Effect.gen(function* () {
      const address = () => "192.0.2.1"
      yield* failures(2, () => "ada", address)
      yield* TestClock.adjust("10 minutes")
      expect(yield* refusedAfter("ada", address())).toBe(250)
      yield* TestClock.adjust("10 minutes")
      expect(yield* refusedAfter("ada", address())).toBe(0)
    }).pipe(Effect.provide(logins)),
  )
})
