/**
 * The logged-in account of each session. Logins take the same credentials as IMAP, are throttled together with it, and
 * end when the credential is revoked.
 */
import type { SubjectInfo } from "@svc/domain/account/Authorization"
import { Effect, Exit, FiberSet, type Redacted, Scope } from "effect"
import type { SMTPServerSession } from "smtp-server"
import type { SessionLimits } from "../imap/server/SessionLimits.ts"
import { Logins, submissionPurpose } from "../imap/server/Logins.ts"
import type { Reply } from "../smtp/Replies.ts"
import { openConnection } from "../smtp/Server.ts"
import { replies } from "./Refusals.ts"

/** The failed logins after which a session is closed. */
const triesInSession = 5

interface Account {
  readonly subject: SubjectInfo
  readonly scope: Scope.Closeable
}

export const make = Effect.fnUntraced(function* (guests: SessionLimits) {
  const logins = yield* Logins
  const run = yield* FiberSet.makeRuntime()
  const accounts = new WeakMap<SMTPServerSession, Account>()
  const tries = new WeakMap<SMTPServerSession, number>()

  const closeSession = (session: SMTPServerSession) => {
    const connection = openConnection(session)
    connection?.send(replies.ended.responseCode, replies.ended.message)
    connection?.close()
  }

  const logOut = (session: SMTPServerSession) => {
    const account = accounts.get(session)
    accounts.delete(session)
    if (account !== undefined) run(Scope.close(account.scope, Exit.void))
  }

  const failed = (session: SMTPServerSession) => {
    const count = (tries.get(session) ?? 0) + 1
    tries.set(session, count)
    return count >= triesInSession ? replies.tooManyTries : replies.credentials
  }

  /** Authenticates a session. Whatever the session holds while logged in is released with the scope. */
  const authenticate = Effect.fnUntraced(function* (
    session: SMTPServerSession,
    user: string | undefined,
    password: Redacted.Redacted<string>,
  ) {
    const login = yield* logins.judge(user, password, session.remoteAddress, submissionPurpose)
    const opened = yield* Effect.acquireRelease(
      Effect.sync(() => guests.open(login.identityId)),
      (isOpen) => Effect.sync(() => isOpen && guests.close(login.identityId)),
    )
    if (!opened) return yield* Effect.fail(replies.tooManySessions)
    yield* login.whenRevoked(() => closeSession(session))
    const subject: SubjectInfo = {
      id: login.identityId,
      handle: login.handle,
      canonical: login.canonical,
      status: "ready",
      orgId: login.orgId,
      by: login.by,
    }
    return subject
  })

  return {
    /** Fails with the reply for the client. */
    login: (
      session: SMTPServerSession,
      user: string | undefined,
      password: Redacted.Redacted<string>,
    ): Effect.Effect<void, Reply> =>
      Effect.gen(function* () {
        // Discards the state from before STARTTLS (RFC 3207 section 4.2).
        logOut(session)
        const scope = yield* Scope.make()
        const subject = yield* authenticate(session, user, password).pipe(
          Scope.provide(scope),
          Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit))),
        )
        // The client may have disconnected during authentication.
        if (openConnection(session) === undefined) return yield* Scope.close(scope, Exit.void)
        accounts.set(session, { subject, scope })
        session.user = subject.handle
      }).pipe(
        Effect.catchTags({
          LoginRefused: () => Effect.suspend(() => Effect.fail(failed(session))),
          unavailable: () => Effect.fail(replies.unavailable),
        }),
      ),
    logOut,
    /** Returns the Identity of a session, or undefined before login. */
    of: (session: SMTPServerSession): SubjectInfo | undefined =>
      session.user ? accounts.get(session)?.subject : undefined,
  }
})
