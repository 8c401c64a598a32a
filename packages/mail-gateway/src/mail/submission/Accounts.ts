/**
 * Whose each session is: logged in by the same credentials as IMAP, with the same slow-down, and only for as long as the
 * credential stands.
 */
import type { SubjectInfo } from "@svc/domain/account/Authorization"
import { Effect, Exit, FiberSet, type Redacted, Scope } from "effect"
import type { SMTPServerSession } from "smtp-server"
import type { SessionLimits } from "../imap/server/SessionLimits.ts"
import { Logins, submissionDoor } from "../imap/server/Logins.ts"
import type { Reply } from "../smtp/Replies.ts"
import { openConnection } from "../smtp/Server.ts"
import { replies } from "./Refusals.ts"

/** Failed logins of one session. */
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

  const end = (session: SMTPServerSession) => {
    const connection = openConnection(session)
    connection?.send(replies.ended.responseCode, replies.ended.message)
    connection?.close()
  }

  const leave = (session: SMTPServerSession) => {
    const account = accounts.get(session)
    accounts.delete(session)
    if (account !== undefined) run(Scope.close(account.scope, Exit.void))
  }

  const failed = (session: SMTPServerSession) => {
    const count = (tries.get(session) ?? 0) + 1
    tries.set(session, count)
    return count >= triesInSession ? replies.tooManyTries : replies.credentials
  }

  /** Everything that the session holds while it is logged in is the scope's. */
  const entered = Effect.fnUntraced(function* (
    session: SMTPServerSession,
    user: string | undefined,
    password: Redacted.Redacted<string>,
  ) {
    const login = yield* logins.judge(user, password, session.remoteAddress, submissionDoor)
    const opened = yield* Effect.acquireRelease(
      Effect.sync(() => guests.open(login.identityId)),
      (isOpen) => Effect.sync(() => isOpen && guests.close(login.identityId)),
    )
    if (!opened) return yield* Effect.fail(replies.tooManySessions)
    yield* login.whenGone(() => end(session))
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
    /** Fails with what the client is told. */
    login: (
      session: SMTPServerSession,
      user: string | undefined,
      password: Redacted.Redacted<string>,
    ): Effect.Effect<void, Reply> =>
      Effect.gen(function* () {
        // Of a session that went on by STARTTLS nothing is left (RFC 3207 section 4.2).
        leave(session)
        const scope = yield* Scope.make()
        const subject = yield* entered(session, user, password).pipe(
          Scope.provide(scope),
          Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit))),
        )
        // It may have gone while its credential was looked at.
        if (openConnection(session) === undefined) return yield* Scope.close(scope, Exit.void)
        accounts.set(session, { subject, scope })
        session.user = subject.handle
      }).pipe(
        Effect.catchTags({
          LoginRefused: () => Effect.suspend(() => Effect.fail(failed(session))),
          unavailable: () => Effect.fail(replies.unavailable),
        }),
      ),
    leave,
    /** Whose it is; undefined before it is logged in. */
    of: (session: SMTPServerSession): SubjectInfo | undefined =>
      session.user ? accounts.get(session)?.subject : undefined,
  }
})

export type Accounts = Effect.Success<ReturnType<typeof make>>
