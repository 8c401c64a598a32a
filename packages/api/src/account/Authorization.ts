/**
 * Authorizes each call before its handler runs: the credential and its network, the Org's limits, the policy of the
 * endpoint, and the required scope. The handler receives the proofs: the caller, and the Identity on which it may act.
 */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import {
  Authorization,
  Caller,
  type CallerInfo,
  type CallerOfRequest,
  Open,
  Realm,
  RealmAuthorization,
  Subject,
  SubjectAuthorization,
  type SubjectInfo,
} from "@svc/domain/account/Authorization"
import {
  judge,
  judgeBody,
  judgeNetwork,
  judgeScope,
  looksAtBody,
  type Named,
} from "@svc/domain/account/PolicyEvaluation"
import type { Policy as Budget } from "@svc/domain/account/OrgProtocol"
import {
  AddressLimit,
  CallPolicy,
  type EndpointPolicy,
  policyOf,
  ShowsSecret,
  Tagged,
} from "@svc/domain/account/Policy"
import type { Initiator } from "@svc/domain/account/Initiator"
import { allows } from "@svc/domain/account/Scope"
import { reservedScopeOf, scopeOf } from "@svc/domain/account/EndpointScope"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import { type InvalidRequest, Unauthenticated } from "@svc/domain/problems/Problem"
import { translationOf, Versions, versionOfSetting } from "@svc/domain/Versions"
import { CredentialLookup, type Resolved } from "@svc/cluster/account/CredentialLookup"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { RequestContext, type RequestContextState } from "../RequestContext.ts"
import * as Recording from "../audit/AuditRecorder.ts"
import { inNewerForm } from "../http/Translations.ts"
import * as Idempotency from "../idempotency/Idempotency.ts"
import { limited } from "../limits/PublicLimit.ts"
import { note } from "../limits/RateLimitHeaders.ts"
import { needlessQuery, rejectBody } from "../problems/Violations.ts"
import * as RequestTarget from "./RequestTarget.ts"

interface Call {
  readonly credential: Redacted.Redacted<string>
  readonly endpoint: HttpApiEndpoint.Top
  readonly group: HttpApiGroup.Top
}

/** The service does not start unless every endpoint declares its policy and scope. */
for (const { endpoints } of Object.values(Api.groups)) {
  for (const endpoint of Object.values<HttpApiEndpoint.Top>(endpoints)) {
    policyOf(endpoint)
    scopeOf(endpoint)
  }
}

/** Tokens of apps are valid for the MCP tools only (RFC 8707), whatever the lookup returns. */
const onlyForTools = new Unauthenticated({ detail: "This credential is for the MCP server only." })

const make = Effect.gen(function* () {
  const book = yield* Addresses
  const credentials = yield* CredentialLookup
  const limits = yield* OrgLimits
  const publicLimits = yield* PublicLimits
  const naming = yield* RequestTarget.make
  const repeatable = yield* Idempotency.make
  const recording = yield* Recording.make
  const usage = yield* UsageCounters
  const feed = yield* ChangeFeed
  const versions = yield* Versions
  const newest = versions.at(-1)!.version

  const take = (exchange: RequestContextState, org: string, budget: Budget) =>
    Effect.map(limits.take(org, budget), ({ quota, remaining, resetSeconds }) =>
      note(exchange, { name: budget, quota, windowSeconds: 60, remaining, resetSeconds }),
    )

  /**
   * Returns the request in the form of the newest version, or undefined if it has this form already. Remembers how to translate
   * the response back.
   */
  const inVersion = (exchange: RequestContextState, group: HttpApiGroup.Top, endpoint: HttpApiEndpoint.Top) => {
    const { version } = exchange
    if (version === undefined || version === newest) return Effect.undefined
    const translation = translationOf(versions, version, `${group.identifier}.${endpoint.identifier}`)
    exchange.older = translation?.response
    const change = translation?.request
    return change === undefined
      ? Effect.undefined
      : Effect.map(HttpServerRequest.HttpServerRequest, (request) => inNewerForm(request, change))
  }

  /** Runs an effect with a translated request, or with the one of the context. */
  const withRequest = <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    translated: HttpServerRequest.HttpServerRequest | undefined,
  ): Effect.Effect<A, E, R> =>
    translated === undefined
      ? effect
      : (Effect.provideService(effect, HttpServerRequest.HttpServerRequest, translated) as typeof effect)

  const callerOf = (caller: CallerInfo, requestId: string): CallerOfRequest => {
    const by: Initiator = {
      kind: caller.kind,
      credentialId: caller.credentialId,
      requestId,
      // A caller that may decide on approvals needs no approval for its own messages.
      ...(caller.kind === "admin_key" && allows(caller.scopes, "mail:admin") ? { approves: true } : {}),
    }
    return { ...caller, by }
  }

  const subjectOf = (identity: IdentityRef, { org, by }: CallerOfRequest): SubjectInfo => ({
    ...identity,
    orgId: org.id,
    by,
  })

  /** Returns the caller and the Identity of the request, or fails with the refusal, which is audited. */
  const judgement = Effect.fnUntraced(function* (call: Call) {
    const { credential, endpoint, group } = call
    const policy = policyOf(endpoint)
    const { params } = yield* HttpRouter.RouteContext
    const query = yield* HttpServerRequest.ParsedSearchParams
    const handle = RequestTarget.handleIn(policy, params, query)
    const exchange = yield* RequestContext
    const { source } = exchange
    const known = yield* Effect.tapError(
      credentials.resolveNaming(credential, handle?.readable === true ? handle.canonical : "", source),
      (refused) => recording.turnedAway(call, credential, exchange, refused),
    )
    // The console and the tools are of this release; everyone else keeps the version of the account.
    if (exchange.source.via === "rest") exchange.version ??= versionOfSetting(versions, known.caller.org.api_version)
    const translated = yield* inVersion(exchange, group, endpoint)
    const identity = yield* Effect.tapError(
      withRequest(judgeKnown(call, policy, known, handle, params, query, exchange), translated),
      (refused) => recording.refused(call, known.caller, params, exchange, refused),
    )
    usage.add(identity == null ? { org: known.caller.org.id } : { identity: identity.id }, "call", { count: 1 })
    exchange.tagged = Context.get(endpoint.annotations, Tagged)
    return { caller: callerOf(known.caller, exchange.requestId), identity, params, query, exchange, translated }
  })

  /** Returns the Identity that the request of a known caller refers to. */
  const judgeKnown = Effect.fnUntraced(function* (
    { endpoint }: Call,
    policy: EndpointPolicy,
    known: Resolved,
    handle: RequestTarget.NamedHandle | undefined,
    params: RequestTarget.Members,
    query: RequestTarget.Members,
    exchange: RequestContextState,
  ) {
    const { source } = exchange
    const { org } = known.caller
    if (known.caller.kind === "grant" && source.via !== "mcp") return yield* onlyForTools
    const networkProblem = judgeNetwork(known.caller, source)
    if (networkProblem !== undefined) return yield* networkProblem
    yield* take(exchange, org.id, "calls")
    const budget = Context.getOrUndefined(endpoint.annotations, CallPolicy)
    if (budget !== undefined) yield* take(exchange, org.id, budget)
    const named: Named =
      handle === undefined
        ? yield* naming.otherwise(endpoint, policy, known.caller, params, query)
        : { _tag: "Handle", ...handle, found: known.named }
    const judged = judge(policy, known.caller, named)
    if (Result.isFailure(judged)) return yield* judged.failure
    const narrow = judgeScope(scopeOf(endpoint), known.caller, book)
    if (narrow !== undefined) return yield* narrow
    if (policy.reserved !== undefined) {
      const needed = reservedScopeOf(endpoint)
      if (looksAtBody(policy, needed, known.caller)) {
        const body = yield* RequestTarget.bodyOf(endpoint)
        const refused = Option.isSome(body) ? judgeBody(policy, needed, known.caller, body.value, book) : undefined
        if (refused !== undefined) return yield* refused
      }
    }
    return judged.success
  })

  /**
   * Runs the handler, but rejects a query or a body at an endpoint that takes none. Others are validated when they are
   * decoded.
   */
  const ofKnownMembers = <E, R>(
    endpoint: HttpApiEndpoint.Top,
    query: RequestTarget.Members,
    handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  ): Effect.Effect<
    HttpServerResponse.HttpServerResponse,
    E | InvalidRequest,
    R | HttpServerRequest.HttpServerRequest
  > => {
    const refused = needlessQuery(endpoint, query)
    if (refused !== undefined) return Effect.fail(refused)
    if (endpoint.method === "GET" || endpoint.payload.size > 0) return handler
    return Effect.andThen(rejectBody(endpoint), handler)
  }

  /** Notifies open pages after a call that changed a resource. */
  const announced =
    ({ group }: Call, { org }: CallerInfo, identity: IdentityRef | null | undefined) =>
    ({ status }: HttpServerResponse.HttpServerResponse) =>
      Effect.sync(() => {
        if (status < 400) feed.changed(org.id, { resource: group.identifier, handle: identity?.handle ?? null })
      })

  type Admitted = Effect.Success<ReturnType<typeof judgement>>

  /** Runs the handler with its proofs layered over the request's context; merging contexts would copy them. */
  const admit = <E, R>(
    handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
    call: Call,
    { caller, identity, params, query, exchange, translated }: Admitted,
  ) =>
    withRequest(
      Effect.provideService(
        recording.recorded(
          ofKnownMembers(call.endpoint, query, handler),
          (once) =>
            call.endpoint.method !== "GET"
              ? Effect.tap(
                  repeatable(once, caller, Context.get(call.endpoint.annotations, ShowsSecret)),
                  announced(call, caller, identity),
                )
              : once,
          call,
          caller,
          identity,
          params,
          exchange,
        ),
        Caller,
        caller,
      ),
      translated,
    )

  /** A request without a proof is malformed; decoding rejects it before a handler needs the proof. */
  const withProof = <A, E, R, I, S>(handler: Effect.Effect<A, E, R>, tag: Context.Key<I, S>, proof: S | undefined) =>
    proof === undefined ? (handler as Effect.Effect<A, E, Exclude<R, I>>) : Effect.provideService(handler, tag, proof)

  const callers = Authorization.of({
    api_key: Effect.fnUntraced(function* (handler, call) {
      // Endpoints without an Identity need no proof of one.
      return yield* admit(handler, call, yield* Effect.catchTag(judgement(call), "not_found", Effect.die))
    }),
  })
  const subjects = SubjectAuthorization.of({
    api_key: Effect.fnUntraced(function* (handler, call) {
      const admitted = yield* judgement(call)
      const { caller, identity } = admitted
      const subject = identity == null ? undefined : subjectOf(identity, caller)
      return yield* admit(withProof(handler, Subject, subject), call, admitted)
    }),
  })
  const realms = RealmAuthorization.of({
    api_key: Effect.fnUntraced(function* (handler, call) {
      const admitted = yield* judgement(call)
      const { caller, identity } = admitted
      const realm =
        identity === undefined
          ? undefined
          : { orgId: caller.org.id, subject: identity === null ? null : subjectOf(identity, caller) }
      return yield* admit(withProof(handler, Realm, realm), call, admitted)
    }),
  })

  /** Fails with `rate_limited`; only endpoints with a limit declare it. */
  const anyone = Open.of((handler, { endpoint, group }) => {
    const limit = Context.getOrUndefined(endpoint.annotations, AddressLimit)
    // Public endpoints run their own queries.
    const judged =
      endpoint.method === "GET"
        ? handler
        : Effect.flatMap(HttpServerRequest.ParsedSearchParams, (query) => {
            const refused = needlessQuery(endpoint, query)
            return refused === undefined ? handler : Effect.die(refused)
          })
    const translated = Effect.flatMap(RequestContext, (exchange) => {
      exchange.tagged = Context.get(endpoint.annotations, Tagged)
      return Effect.flatMap(inVersion(exchange, group, endpoint), (request) => withRequest(judged, request))
    })
    return limit === undefined ? translated : Effect.andThen(Effect.orDie(limited(publicLimits, limit)), translated)
  })

  return Context.make(Open, anyone).pipe(
    Context.add(Authorization, callers),
    Context.add(SubjectAuthorization, subjects),
    Context.add(RealmAuthorization, realms),
  )
})

export const layer = Layer.effectContext(make)
