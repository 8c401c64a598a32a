/** Handlers that post and read callConnected a Connector, pause it and remove it. */
import type { Page, Post } from "@svc/domain/connectors/Post"
import type { Capability } from "@svc/domain/connectors/Connector"
import { ConnectorCapabilityUnsupported } from "@svc/domain/problems/Problem"
import { Clock, Effect } from "effect"
import { Rpc } from "effect/rpc"
import * as Permit from "../actor/Permit.ts"
import type { Fenced } from "../actor/Write.ts"
import { byOf, requireOwner, type Request, type ActorIdentity } from "../actor/ActorHandlers.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable } from "../store/Database.ts"
import type { SqlError } from "effect/sql"
import { Timing } from "../Timing.ts"
import { withTimeout } from "./PlatformCalls.ts"
import * as ConnectionWrites from "./ConnectionWrites.ts"
import { type Connection, type ConnectorState, isPaused } from "./ConnectorState.ts"
import { boundedPost } from "./platforms/ResponseBounds.ts"
import { InputRefused, isFailure, type PlatformFailure, PlatformUnreachable } from "./platforms/Failure.ts"
import type { ReceivedPost, NewPost, Session } from "./platforms/Platform.ts"
import type { Parts } from "./work/DueWork.ts"
import * as Refusals from "./Refusals.ts"
import type { Revocations } from "./credentials/Revocations.ts"
import * as PostLedger from "./PostLedger.ts"
import { credentialRefused } from "./Refusals.ts"

/** The dependencies of the handlers. */
export interface Actor extends Parts {
  readonly sealing: Sealing["Service"]
  readonly revocations: Revocations
  readonly wake: Effect.Effect<void>
  /** Address to which platforms redirect the browser after an authorization. */
  readonly redirectUri: string
  readonly reload: Effect.Effect<ConnectorState, SqlError.SqlError>
}

export interface Tenant {
  readonly org_id: string
}

/**
 * Returns the state with its Identity if it belongs to the caller's Org. Reloads the state once if the Identity was
 * created after the actor was loaded.
 */
export const requireIdentity = Effect.fnUntraced(function* (actor: Actor, tenant: Tenant) {
  const { calls, ownership } = actor
  let state = yield* ownership.state
  if (state.identity === undefined) {
    state = yield* calls.change(() => Effect.map(actor.reload, (reloaded) => ({ value: reloaded, state: reloaded })))
  }
  // Only the owner matters here; the Identity's actor checks the status.
  const owner: ActorIdentity | undefined =
    state.identity === undefined ? undefined : { ...state.identity, status: "ready" }
  const identity = yield* requireOwner(owner, tenant)
  return { state, identity }
})

interface PageOf {
  readonly limit: number
  readonly cursor: string | null
}

interface PublishPayload extends Tenant {
  readonly command_id: string
  readonly text: string
  readonly reply_to: string | null
  readonly to: string | null
  readonly options: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

const wantedOf = ({ limit, cursor }: PageOf) => ({ limit, cursor: cursor ?? undefined })

/** Number of attempts after which a teardown continues without the revocation, which is still retried later. */
const attemptsBeforeRemoval = 3

/** A call that requires a working connection. */
interface PlatformCall<A> {
  readonly capability: Capability
  readonly call: (session: Session) => Effect.Effect<A, PlatformFailure>
}

export const handlers = (actor: Actor) => {
  const { calls, ownership, revocations } = actor
  const { platform } = calls

  /** Returns the connection if it can be used for a call. */
  const working = Effect.fnUntraced(function* (tenant: Tenant, capability: Capability) {
    const { state, identity } = yield* requireIdentity(actor, tenant)
    const { connection } = state
    if (connection === undefined) return yield* Refusals.notConnected(platform.title)
    if (connection.status === "stopped") return yield* Refusals.stopped(connection.lastError)
    if (isPaused(state)) return yield* Refusals.paused()
    if (!connection.capabilities.includes(capability)) {
      return yield* new ConnectorCapabilityUnsupported({
        detail: `The Connector does not have the capability ${capability}: ${platform.title} does not allow it with this credential.`,
      })
    }
    return { identity, connection }
  })

  /** Stops the Connector if the platform rejects its credential. */
  const orStopped = <A, E>(connection: Connection, call: Effect.Effect<A, E | PlatformFailure>) =>
    Effect.tapError(call, (failure) =>
      isFailure(failure) && failure._tag === "CredentialRefused"
        ? Effect.ignore(
            calls.change((write, state) =>
              ConnectionWrites.stop(write, state, connection.id, credentialRefused(platform, failure.message)),
            ),
          )
        : Effect.void,
    )

  const withProblem =
    <Refusal>(refusal: (title: string, failure: PlatformFailure, now: number) => Refusal) =>
    <A, E>(call: Effect.Effect<A, E | PlatformFailure>) =>
      Effect.catchIf(call, isFailure, (failure) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(refusal(platform.title, failure, now))),
      )
  const withCallProblem = withProblem(Refusals.whileConnected)
  const withPostProblem = withProblem(Refusals.whilePosting)

  const callConnected = Effect.fnUntraced(function* <A>(tenant: Tenant, { capability, call }: PlatformCall<A>) {
    const { identity, connection } = yield* working(tenant, capability)
    return yield* withCallProblem(orStopped(connection, withTimeout(call(calls.session(identity, connection)))))
  })

  /** Tries the revocation for a short time before the reply; it continues in the background. */
  const revokeNow = (early: boolean) =>
    Effect.ignore(Effect.timeoutOption(revocations.attemptAll(early), Timing.revokeAtOnce))

  const posts = (page: Page<Post>) => ({ entries: page.entries.map(boundedPost), cursor: page.cursor })
  const receivedPosts = (page: Page<ReceivedPost>) => ({
    entries: page.entries.map(({ kind, post, at }) => ({ kind, post: boundedPost(post), at })),
    cursor: page.cursor,
  })

  const publish = Effect.fn("Connector.publish")(function* (request: Request<PublishPayload>) {
    const { payload } = request
    const isDm = payload.to !== null
    const capability = isDm ? "dm" : payload.reply_to === null ? "post" : "reply"
    const { identity, connection } = yield* working(payload, capability)
    const other = Object.keys(payload.options).find((name) => name !== platform.name)
    if (other !== undefined) {
      return yield* withPostProblem(
        Effect.fail(
          new InputRefused({
            message: `The Connector is for ${platform.title}, which has no options of "${other.slice(0, 100)}".`,
            path: `/options/${other.slice(0, 100)}`,
            unknownOption: true,
          }),
        ),
      )
    }
    const post: NewPost = {
      text: payload.text,
      replyTo: payload.reply_to ?? undefined,
      options: payload.options[platform.name] ?? {},
      command: payload.command_id,
      again: false,
      ...(isDm ? { to: payload.to } : {}),
    }
    yield* withPostProblem(platform.validate(post))
    const started = yield* ownership.write(
      byOf(request),
      Effect.fnUntraced(function* (write: Fenced, state: ConnectorState) {
        if (isPaused(state)) return yield* Refusals.paused()
        const begin = PostLedger.start(write, identity, platform.name, payload.command_id)
        return yield* calls.permit.renewedBy(write, begin, ({ _tag }) => _tag === "Started")
      }),
    )
    if (started._tag === "Done") return started.post
    const session = calls.session(identity, connection)
    const wanted = { ...post, again: started.again }
    const made = yield* withPostProblem(
      orStopped(connection, withTimeout(isDm ? platform.sendDm(session, wanted) : platform.post(session, wanted))).pipe(
        // A post that was definitely not created is removed from the ledger. Otherwise it stays, so that a retry looks
        // for it. The failure of a retry says nothing about the attempts before it.
        Effect.tapError((failure) =>
          !started.again && isFailure(failure) && !(failure instanceof PlatformUnreachable)
            ? Effect.ignore(ownership.write(byOf(request), (write) => PostLedger.cancel(write, payload.command_id)))
            : Effect.void,
        ),
      ),
    )
    const stored = boundedPost(made)
    yield* ownership.write(byOf(request), (write) => PostLedger.complete(write, payload.command_id, stored))
    return stored
  })

  return {
    Pause: Effect.fnUntraced(function* (
      request: Request<Tenant & { readonly paused: boolean; readonly everyone: boolean }>,
    ) {
      yield* requireIdentity(actor, request.payload)
      yield* calls.change((write, state) => ConnectionWrites.pause(write, state, request.payload), byOf(request))
      // The reply waits for the permits of previous owners, which may be suspended and not know about the pause.
      if (request.payload.paused) yield* ownership.write(byOf(request), Permit.formerEnded)
      yield* actor.wake
    }),

    Disconnect: (request: Request<Tenant>) =>
      Rpc.fork(
        Effect.gen(function* () {
          yield* requireIdentity(actor, request.payload)
          yield* calls.change(ConnectionWrites.remove, byOf(request))
          yield* revokeNow(false)
          yield* actor.wake
        }),
      ),

    Leave: (request: Request<Tenant>) =>
      Rpc.fork(
        Effect.gen(function* () {
          const state = yield* ownership.state
          if (state.connection !== undefined && state.identity?.orgId === request.payload.org_id) {
            yield* Effect.catchTag(calls.change(ConnectionWrites.remove, byOf(request)), "not_found", () => Effect.void)
          }
          yield* revokeNow(true)
          yield* actor.wake
          const attempts = yield* orUnavailable(revocations.fewestAttempts)
          return { revoked: attempts === undefined || attempts >= attemptsBeforeRemoval }
        }),
      ),

    Publish: (request: Request<PublishPayload>) => Rpc.fork(publish(request)),

    ReadPosts: ({ payload }: Request<Tenant & PageOf & { readonly of: "posts" | "dms" }>) =>
      Rpc.fork(
        callConnected(payload, {
          capability: payload.of === "dms" ? "dm" : "post",
          call: (session) => Effect.map(platform[payload.of](session, wantedOf(payload)), posts),
        }),
      ),

    ReadThread: ({ payload }: Request<Tenant & { readonly uri: string }>) =>
      Rpc.fork(
        callConnected(payload, {
          capability: "thread",
          call: (session) => Effect.map(platform.thread(session, payload.uri), posts),
        }),
      ),

    ReadNotifications: ({ payload }: Request<Tenant & PageOf>) =>
      Rpc.fork(
        callConnected(payload, {
          capability: "notifications",
          call: (session) => Effect.map(platform.notifications(session, wantedOf(payload)), receivedPosts),
        }),
      ),
  }
}
