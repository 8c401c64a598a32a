/**
 * Long polling for mail: the request stays open until a message matches or the time is over. It queries after each change
 * notification of the Identity, so mail that does not match costs one query.
 */
import { Addresses } from "@svc/domain/Addresses"
import { Caller, mayActOn, type SubjectInfo } from "@svc/domain/account/Authorization"
import { judgeNetwork, judgeScope } from "@svc/domain/account/PolicyEvaluation"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { IdentityNotGranted } from "@svc/domain/problems/Problem"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { type MessageFilter, type MessagePage, MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { ShutdownSignal } from "../ShutdownSignal.ts"
import { RequestContext } from "../RequestContext.ts"

/** The scope that a wait needs. */
const scope = "mail:read"

const tokenOf = (header: string | undefined) => Redacted.make(header?.replace(/^Bearer\s+/i, "") ?? "")

export const make = Effect.gen(function* () {
  const book = yield* Addresses
  const messages = yield* MessageQueries
  const feed = yield* ChangeFeed
  const standingCredentials = yield* StandingCredentials
  const credentials = yield* CredentialLookup
  const departure = yield* ShutdownSignal

  /**
   * Returns the messages that arrived after the call (or after `after`) as soon as there are any; empty after `seconds`.
   * The returned `after` lets the next call continue without a gap.
   */
  return Effect.fn("Waiting.list")(function* (subject: SubjectInfo, filter: MessageFilter, seconds: number) {
    const identityId = subject.id
    const deadline = (yield* monotonicMillis) + seconds * 1000
    // Subscribes before the first query, so that no message falls between the two.
    const changes = yield* feed.subscribe(identityId)
    const newest = filter.after ?? (yield* messages.newest(identityId))
    // In an empty Mailbox, every message is newer.
    const look = messages.list(identityId, newest === undefined ? filter : { ...filter, after: newest })
    const found = yield* look
    const answer = (page: MessagePage) => ({ page, after: page.messages[0]?.id ?? newest })
    if (found.messages.length > 0) return answer(found)

    const request = yield* HttpServerRequest.HttpServerRequest
    const { source } = yield* RequestContext
    const use = { identityId, scope } as const
    const watching = yield* Caller
    while (true) {
      const left = deadline - (yield* monotonicMillis)
      if (left <= 0 || departure.isOpen()) return answer(found)
      // Reads the credential each time, so that a permission that was revoked and granted again counts.
      yield* Effect.scoped(
        Effect.flatMap(standingCredentials.watch(watching, use), (revoked) =>
          Effect.timeoutOption(Effect.raceAllFirst([changes.await, revoked, departure.await]), left),
        ),
      )
      // The credential may have been revoked or narrowed during the wait; then the error is returned instead of the mail.
      const caller = yield* credentials.resolve(tokenOf(request.headers["authorization"]), source)
      if (!mayActOn(caller, subject.canonical)) {
        return yield* new IdentityNotGranted({
          detail: `The account holder no longer lets you act as @${subject.handle}.`,
        })
      }
      const narrow = judgeNetwork(caller, source) ?? judgeScope(scope, caller, book)
      if (narrow !== undefined) return yield* narrow
      const come = yield* look
      if (come.messages.length > 0) return answer(come)
    }
  }, Effect.scoped)
})
