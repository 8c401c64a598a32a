/** The real authorization middleware on a store and actors that only record calls. */
import * as Authorization from "@svc/api/account/Authorization"
import { RequestContext, makeRequestContext, type Source } from "@svc/api/RequestContext"
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Orgs } from "@svc/cluster/account/Orgs"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { IdempotencyRecords } from "@svc/cluster/idempotency/IdempotencyRecords"
import { Identities } from "@svc/cluster/actor/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import type { CredentialKind } from "@svc/domain/account/Account"
import {
  Authorization as CallerAuthorization,
  type Caller,
  type CallerInfo,
  Realm,
  RealmAuthorization,
  Subject,
  SubjectAuthorization,
} from "@svc/domain/account/Authorization"
import { scopesOf, unlimited } from "@svc/domain/account/Scope"
import { initiatorHeader } from "@svc/domain/account/Initiator"
import { toPublic } from "@svc/domain/Ids"
import type { IdentityId, IdentityRef } from "@svc/domain/IdentityRef"
import { isProblem, NotFound, Unauthenticated } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Redacted, Result } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { quietFeed } from "../harness/Stores.ts"

export const uuid = (last: string) => `0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a${last}`
const identity = (name: string, last: string): IdentityRef => ({
  id: uuid(last) as IdentityId,
  handle: name,
  canonical: name,
  status: "ready",
})
const ada = identity("ada", "01")
const bob = identity("bob", "02")
export const knownIdentities = new Map([ada, bob].map((one) => [one.canonical, one]))
export const org = { id: uuid("ff"), email: "owner@example.org" } as CallerInfo["org"]
const callerOf = (kind: CredentialKind): CallerInfo => ({
  kind,
  org,
  credentialId: `id-of-${kind}`,
  keyName: null,
  scopes: unlimited,
  identities: kind === "identity_key" ? [ada] : null,
  networks: null,
  expiresAt: null,
  grant: null,
  session: null,
})
const grantOf = (identities: ReadonlyArray<IdentityRef> | null, scopes: string): CallerInfo => ({
  ...callerOf("grant"),
  scopes: scopesOf(scopes),
  identities,
  grant: { id: "grant", client: "An app" },
})
/** Credentials in addition to one of each kind. */
const others: Readonly<Record<string, CallerInfo>> = {
  "grant of all": grantOf(null, "*"),
  "grant of ada": grantOf([ada], "*"),
  "grant of ada and bob": grantOf([ada, bob], "*"),
  "grant to read": grantOf([ada, bob], "identity:read"),
}
export const kinds = ["session", "admin_key", "identity_key"] as const

export const eventIds = {
  ada: toPublic("evt_", uuid("11")),
  bob: toPublic("evt_", uuid("12")),
  org: toPublic("evt_", uuid("13")),
}
export const handleOfEvent = new Map<string, string | null>([
  [eventIds.ada, "ada"],
  [eventIds.bob, "bob"],
  [eventIds.org, null],
])

/** The lookups, actor calls and audit records that one call makes. */
export class RecordedCalls extends Context.Service<
  RecordedCalls,
  {
    lookups: Array<string>
    asked: Array<readonly [string, string | undefined]>
    acts: Array<Partial<Omit<Act, "class">> & { readonly class: string; readonly before: boolean }>
  }
>()("test/Seen") {}

const doubles = Layer.mergeAll(
  Layer.effect(
    CredentialLookup,
    Effect.map(RecordedCalls, (seen) =>
      CredentialLookup.of({
        resolve: () => Effect.die("the middleware resolves a credential together with what the call names"),
        resolveNaming: (credential, name) => {
          const text = Redacted.value(credential)
          const kind = kinds.find((one) => one === text)
          const caller = kind === undefined ? others[text] : callerOf(kind)
          seen.lookups.push(`credential and ${name}`)
          return caller === undefined
            ? Effect.fail(new Unauthenticated({ detail: "no" }))
            : Effect.succeed({ caller, named: knownIdentities.get(name) })
        },
      }),
    ),
  ),
  Layer.succeed(Addresses, { baseUrl: "https://api.example" } as Addresses["Service"]),
  Layer.mock(PublicLimits)({}),
  Layer.mock(OrgLimits)({ take: (_, policy) => Effect.succeed({ policy, quota: 9, remaining: 8, resetSeconds: 7 }) }),
  Layer.effect(
    IdentityQueries,
    Effect.map(RecordedCalls, (seen) =>
      IdentityQueries.of({
        find: (_: string, name: string) => {
          seen.lookups.push(`identity ${name}`)
          return Effect.succeed(knownIdentities.get(name))
        },
      } as unknown as IdentityQueries["Service"]),
    ),
  ),
  Layer.mock(EventQueries)({
    read: (_, id) =>
      handleOfEvent.has(id)
        ? Effect.succeed({ handle: handleOfEvent.get(id) } as never)
        : Effect.fail(new NotFound({ detail: "no" })),
  }),
  Layer.mock(IdempotencyRecords)({}),
  Layer.mock(RefusedCredentials)({ turnedAway: () => Effect.void }),
  quietFeed,
  Layer.mock(UsageCounters)({ add: () => {} }),
)

/** The audit log as calls. */
const audit = Layer.effect(
  Audit,
  Effect.map(RecordedCalls, ({ acts }) =>
    Audit.of({
      note: () => Effect.die("the middleware records, handlers note"),
      secret: (act) => Effect.sync(() => void acts.push({ ...act, before: true })),
      record: (act) => Effect.sync(() => void acts.push({ ...act, before: false })),
      isRecorded: () => Effect.succeed(false),
      kept: () => {},
      used: ({ action }) => void acts.push({ action, class: "read", outcome: "allowed", before: true }),
    }),
  ),
)

/** Actors that record their callers. */
const actors = Layer.mergeAll(
  Layer.effect(
    Identities,
    Effect.map(RecordedCalls, (seen) => ({
      of: (name: string) =>
        ({
          Retry: (_: unknown, options: { headers: Record<string, string> }) =>
            Effect.sync(() => void seen.asked.push([name, options.headers[initiatorHeader]])),
        }) as never,
    })),
  ),
  Layer.effect(
    Orgs,
    Effect.map(RecordedCalls, (seen) => ({
      of: (id: string) =>
        ({
          Delete: (_: unknown, options: { headers: Record<string, string> }) =>
            Effect.sync(() => void seen.asked.push([id, options.headers[initiatorHeader]])),
        }) as never,
    })),
  ),
)

export const testAuthorization = Authorization.layer.pipe(
  Layer.provide(doubles),
  Layer.provideMerge([actors, audit]),
  Layer.provideMerge(Layer.sync(RecordedCalls, () => ({ lookups: [], asked: [], acts: [] }))),
)

export interface NamedRequest {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | Array<string>>>
  readonly body?: string
  /** The surface through which the request arrives. */
  readonly via?: Source["via"]
}

const groups = Object.values(Api.groups) as unknown as ReadonlyArray<HttpApiGroup.Top>
const groupOf = (endpoint: HttpApiEndpoint.Top): HttpApiGroup.Top =>
  groups.find(({ endpoints }) => Object.values<HttpApiEndpoint.Top>(endpoints).includes(endpoint)) ??
  (HttpApiGroup.make("unused") as unknown as HttpApiGroup.Top)

const guards = [CallerAuthorization, SubjectAuthorization, RealmAuthorization] as const

/** Returns the code of the rejection, or the proofs that the handler received; `undefined` for a missing proof. */
export const authorize = Effect.fnUntraced(function* <A = unknown>(
  endpoint: HttpApiEndpoint.Top,
  credential: string,
  { path = {}, query = {}, body, via = "rest" }: NamedRequest,
  handler: Effect.Effect<A, unknown, Caller | Subject | Realm> = Effect.map(
    Effect.context<Caller | Subject | Realm>(),
    (context) => {
      const subject = Context.getOrUndefined(context as Context.Context<never>, Subject)
      const realm = Context.getOrUndefined(context as Context.Context<never>, Realm)
      return { subject: subject?.handle, realm: realm === undefined ? undefined : (realm.subject?.handle ?? null) } as A
    },
  ),
) {
  const seen = yield* RecordedCalls
  seen.lookups.length = 0
  seen.asked.length = 0
  seen.acts.length = 0
  const tag = guards.find((one) => endpoint.middlewares.has(one))!
  const guard = yield* tag as typeof SubjectAuthorization
  let proofs: A | undefined
  const run = guard.api_key(
    Effect.map(handler as Effect.Effect<A, never, Caller | Subject>, (got) => {
      proofs = got
      return HttpServerResponse.empty()
    }),
    { credential: Redacted.make(credential), endpoint, group: groupOf(endpoint) },
  )
  const request = new Request("http://localhost/", {
    method: endpoint.method,
    ...(body === undefined || endpoint.method === "GET" ? {} : { body }),
  })
  const result = yield* Effect.result(
    Effect.provideContext(
      Effect.scoped(run),
      Context.make(HttpServerRequest.HttpServerRequest, HttpServerRequest.fromWeb(request)).pipe(
        Context.add(HttpServerRequest.ParsedSearchParams, query),
        Context.add(HttpRouter.RouteContext, { params: path, route: undefined as never }),
        Context.add(
          RequestContext,
          makeRequestContext("req_1", { address: "unknown", via, tool: null, userAgent: null }),
        ),
      ),
    ),
  )
  if (Result.isSuccess(result)) return proofs
  return isProblem(result.failure) ? result.failure.code : yield* Effect.die(result.failure)
})
