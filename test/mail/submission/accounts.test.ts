/** The login of a submission session: what it holds of its Mailbox, and what a failure counts as. */
import { describe, expect, it } from "@effect/vitest"
import { system } from "@svc/domain/account/Initiator"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { Unavailable } from "@svc/domain/problems/Problem"
import { LoginRefused, Logins } from "@svc/mail-gateway/mail/imap/server/Logins"
import * as SessionLimits from "@svc/mail-gateway/mail/imap/server/SessionLimits"
import * as Accounts from "@svc/mail-gateway/mail/submission/Accounts"
import { Effect, Exit, Layer, Redacted } from "effect"
import type { SMTPServerSession } from "smtp-server"

const identityId = "01890000-0000-7000-8000-000000000001" as IdentityId
const login = {
  identityId,
  orgId: "01890000-0000-7000-8000-000000000002",
  canonical: "ada",
  handle: "ada",
  by: system,
  whenRevoked: () => Effect.void,
}

/** Logs in to a session whose client has disconnected meanwhile. */
const loggedIn = (judge: Logins["Service"]["judge"], times: number, perMailbox = 1, open = 0) =>
  Effect.gen(function* () {
    const guests = SessionLimits.make({ inAll: 1, perClient: 1, perMailbox })
    for (let n = 0; n < open; n++) guests.open(identityId)
    const accounts = yield* Accounts.make(guests)
    const session = { remoteAddress: "192.0.2.1" } as SMTPServerSession
    const codes: Array<number> = []
    for (let n = 0; n < times; n++) {
      const exit = yield* Effect.exit(Effect.flip(accounts.login(session, "ada", Redacted.make("x"))))
      codes.push(Exit.isSuccess(exit) ? exit.value.responseCode : 235)
    }
    return { codes, account: accounts.of(session), isReleased: guests.isEmpty() }
  }).pipe(Effect.scoped, Effect.provide(Layer.mock(Logins, { judge })))

describe("A login to the submission server", () => {
  it.effect("holds nothing of the Mailbox if the client disconnects during it", () =>
    Effect.gen(function* () {
      const both = yield* loggedIn(() => Effect.succeed(login), 2)
      expect(both).toEqual({ codes: [235, 235], account: undefined, isReleased: true })
    }),
  )

  it.effect("can be retried if the Mailbox has too many sessions or the service is unavailable", () =>
    Effect.gen(function* () {
      const outage = () => Effect.fail(new Unavailable({ detail: "x", retry_after_seconds: 1 }))
      expect((yield* loggedIn(() => Effect.succeed(login), 1, 0)).codes).toEqual([454])
      // A session that was refused does not make room for another one.
      expect((yield* loggedIn(() => Effect.succeed(login), 2, 1, 1)).codes).toEqual([454, 454])
      expect((yield* loggedIn(outage, 6)).codes).toEqual(Array(6).fill(454))
      const refused = () => Effect.fail(new LoginRefused())
      expect((yield* loggedIn(refused, 5)).codes).toEqual([535, 535, 535, 535, 421])
    }),
  )
})
