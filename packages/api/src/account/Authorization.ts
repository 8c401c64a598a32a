/**
 * Judges each call before the handler runs: the credential and where it is used from, the Org's limits, then the policy
 * of the endpoint, then whether what the credential may do includes the scope that the endpoint needs.
 * The handler gets the proofs of that: who calls, and the Identity it may act on with the way to its actor.
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
import { CredentialLookup, type Resolved } from "@svc/cluster/account/CredentialLookup"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { RequestContext, type RequestContextState } from "../RequestContext.ts"
import * as Recording from "../audit/AuditRecorder.ts"
import * as Idempotency from "../idempotency/Idempotency.ts"
import { limited } from "../limits/PublicLimit.ts"
import { note } from "../limits/RateLimitHeaders.ts"
import { needlessQuery } from "../problems/Violations.ts"
import * as RequestTarget from "./RequestTarget.ts"

interface Call {
  readonly credential: Redacted.Redacted<string>
  readonly endpoint: HttpApiEndpoint.Top
  readonly group: HttpApiGroup.Top
}

/** Serving begins with every endpoint saying who may call it and which scope that takes, or not at all. */
for (const { endpoints } of Object.values(Api.groups)) {
  for (const endpoint of Object.values<HttpApiEndpoint.Top>(endpoints)) {
    policyOf(endpoint)
    scopeOf(endpoint)
  }
}

/** An app's token is good for the tools, which is what it was given for (RFC 8707); looking one up says so already. */
const onlyForTools = new Unauthenticated({ detail: "This credential is for the MCP server only." })

const make = Effect.gen(function* () {
  const book = yield* Addresses
  const credentials = yield* CredentialLookup
  const limits = yield* OrgLimits
  const publicLimits = yield* PublicLimits
  const naming = yield* RequestTarget.make
  const repeatable = yield* Idempotency.make
  const recording = yield* Recording.make

  const take = (exchange: RequestContextState, org: string, budget: Budget) =>
    Effect.map(limits.take(org, budget), ({ quota, remaining, resetSeconds }) =>
      note(exchange, { name: budget, quota, windowSeconds: 60, remaining, resetSeconds }),
    )

  const callerOf = (caller: CallerInfo, requestId: string): CallerOfRequest => {
    const by: Initiator = {
      kind: caller.kind,
      credentialId: caller.credentialId,
      requestId,
      // Whoever may decide about waiting messages needs no approval for their own.
      ...(caller.kind === "admin_key" && allows(caller.scopes, "mail:admin") ? { approves: true } : {}),
    }
    return { ...caller, by }
  }

  const subjectOf = (identity: IdentityRef, { org, by }: CallerOfRequest): SubjectInfo => ({
    ...identity,
    orgId: org.id,
    by,
  })

  /** Who calls, and the Identity it is about; fails with whatever refuses the call, which is on record then. */
  const judgement = Effect.fnUntraced(function* (call: Call) {
    const { credential, endpoint } = call
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
    const identity = yield* Effect.tapError(
      judgeKnown(call, policy, known, handle, params, query, exchange),
      (refused) => recording.refused(call, known.caller, params, exchange, refused),
    )
    exchange.tagged = Context.get(endpoint.annotations, Tagged)
    return { caller: callerOf(known.caller, exchange.requestId), identity, params, query, exchange }
  })

  /** The Identity that a known caller's request is about. */
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
    const elsewhere = judgeNetwork(known.caller, source)
    if (elsewhere !== undefined) return yield* elsewhere
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

  /** The handler, unless the query has members and the endpoint takes none. What it does take, its decoding judges. */
  const ofKnownQuery = <E, R>(
    endpoint: HttpApiEndpoint.Top,
    query: RequestTarget.Members,
    handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E | InvalidRequest, R> => {
    const refused = needlessQuery(endpoint, query)
    return refused === undefined ? handler : Effect.fail(refused)
  }

  type Admitted = Effect.Success<ReturnType<typeof judgement>>

  /** Runs the handler with its proofs, which are laid over the request's context: to merge contexts would copy them. */
  const admit = <E, R>(
    handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
    call: Call,
    { caller, identity, params, query, exchange }: Admitted,
  ) =>
    Effect.provideService(
      recording.recorded(
        ofKnownQuery(call.endpoint, query, handler),
        (once) =>
          call.endpoint.method !== "GET"
            ? repeatable(once, caller, Context.get(call.endpoint.annotations, ShowsSecret))
            : once,
        call,
        caller,
        identity,
        params,
        exchange,
      ),
      Caller,
      caller,
    )

  /** Without a proof the request is not readable: decoding refuses it before a handler could miss anything. */
  const withProof = <A, E, R, I, S>(handler: Effect.Effect<A, E, R>, tag: Context.Key<I, S>, proof: S | undefined) =>
    proof === undefined ? (handler as Effect.Effect<A, E, Exclude<R, I>>) : Effect.provideService(handler, tag, proof)

  const callers = Authorization.of({
    api_key: Effect.fnUntraced(function* (handler, call) {
      // Where no Identity is named, none is missing.
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

  /** Refuses as its endpoint says it may: only those with a limit have one. */
  const anyone = Open.of((handler, { endpoint }) => {
    const limit = Context.getOrUndefined(endpoint.annotations, AddressLimit)
    // Probes and pages add queries of their own to what anyone may read.
    const judged =
      endpoint.method === "GET"
        ? handler
        : Effect.flatMap(HttpServerRequest.ParsedSearchParams, (query) => {
            const refused = needlessQuery(endpoint, query)
            return refused === undefined ? handler : Effect.die(refused)
          })
    return limit === undefined ? judged : Effect.andThen(Effect.orDie(limited(publicLimits, limit)), judged)
  })

  return Context.make(Open, anyone).pipe(
    Context.add(Authorization, callers),
    Context.add(SubjectAuthorization, subjects),
    Context.add(RealmAuthorization, realms),
  )
})

export const layer = Layer.effectContext(make)
