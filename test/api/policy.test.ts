import { expect, layer } from "@effect/vitest"
import * as Authorization from "@svc/api/account/Authorization"
import { Exchange, makeExchange } from "@svc/api/Exchange"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Orgs } from "@svc/cluster/account/Orgs"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { IdempotencyRecords } from "@svc/cluster/idempotency/IdempotencyRecords"
import { Identities } from "@svc/cluster/identity/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import type { CredentialKind } from "@svc/domain/account/Account"
import {
  Authorization as CallerAuthorization,
  Caller,
  type CallerInfo,
  Open,
  Realm,
  RealmAuthorization,
  Subject,
  SubjectAuthorization,
} from "@svc/domain/account/Authorization"
import { byHeader, decodeBy } from "@svc/domain/account/By"
import { callers, onIdentity, open, policyOf, type Unjudged } from "@svc/domain/account/Policy"
import { Api } from "@svc/domain/Api"
import { toPublic } from "@svc/domain/Ids"
import type { IdentityId, IdentityRef } from "@svc/domain/identity/IdentityRef"
import { isProblem, NotFound, Unauthenticated } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Redacted, Result, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { describe, expectTypeOf, it } from "vitest"

/** Who may call what, and where each endpoint names its Identity: a change here is a change of what is promised. */
const manifest = `
health.report public
sign_in.requestMagicLink public
sign_in.consumeMagicLink public
sign_in.registration public
session.read any
session.revoke session
session.whoami any
account.acceptTerms session
account.remove session
device_login.start public
device_login.poll public
device_confirmation.read admin
device_confirmation.approve admin
device_confirmation.deny admin
exports.create any Body
exports.list any realm
exports.read any realm
exports.archive any realm
api_keys.list org
api_keys.create org
api_keys.read org
api_keys.revoke org
handles.check org
identities.list org
identities.create org
identities.read any Path
identities.remove org Path
identities.retry org Path
identities.secrets any Path
identities.acknowledge any Path
identities.rotate admin Path
cards.read any Path
cards.patch any Path
profiles.read public
messages.list any Path
messages.read any Path
messages.remove any Path
messages.raw any Path
messages.attachment any Path
mail_settings.recipients any Path
mail_settings.allow admin Path
mail_settings.disallow admin Path
mail_settings.disclosure any Path
mail_settings.setDisclosure admin Path
mail_settings.resetDisclosure admin Path
mail_settings.status any Path
mail_settings.switch any Path reserved
webhooks.list any Path
webhooks.create any Path
webhooks.read any Path
webhooks.patch any Path
webhooks.remove any Path
webhooks.test any Path
webhooks.rotate any Path
webhooks.deliveries any Path
events.list org
events.stream org
events.streamOfIdentity any Path
events.read org
events.replay any Resource
tunnels.read any Path
tunnels.patch any Path reserved
vault.list any Query
vault.value any Query
vault.put any Query
vault.remove any Query
vault.versions any Query
vault.restore any Query
public.hit public
public.contact public
public.clientMetadata public`

const endpoints = new Map<string, HttpApiEndpoint.Top>(
  Object.entries(Api.groups).flatMap(([group, of]) =>
    Object.entries<HttpApiEndpoint.Top>(of.endpoints).map(
      ([name, endpoint]) => [`${group}.${name}`, endpoint] as const,
    ),
  ),
)
const rows = manifest
  .trim()
  .split("\n")
  .map((line) => {
    const [id, scope, naming] = line.split(" ") as [string, string, string | undefined]
    return { id, scope, naming, endpoint: endpoints.get(id)! }
  })

// -- The store and the actors as the judgement sees them ------------------------------------------------------------

const uuid = (last: string) => `0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a${last}`
const identity = (name: string, last: string): IdentityRef => ({
  id: uuid(last) as IdentityId,
  handle: name,
  canonical: name,
  status: "ready",
})
const ada = identity("ada", "01")
const bob = identity("bob", "02")
const known = new Map([ada, bob].map((one) => [one.canonical, one]))
const org = { id: uuid("ff"), email: "owner@example.org" } as CallerInfo["org"]
const callerOf = (kind: CredentialKind): CallerInfo => ({
  kind,
  org,
  credentialId: `id-of-${kind}`,
  keyName: null,
  identity: kind === "identity_key" ? ada : null,
  session: null,
})
const kinds = ["session", "admin_key", "identity_key"] as const

const eventIds = {
  ada: toPublic("evt_", uuid("11")),
  bob: toPublic("evt_", uuid("12")),
  org: toPublic("evt_", uuid("13")),
}
const handleOfEvent = new Map<string, string | null>([
  [eventIds.ada, "ada"],
  [eventIds.bob, "bob"],
  [eventIds.org, null],
])

/** What was looked up and asked since a call began. */
class Seen extends Context.Service<
  Seen,
  { lookups: Array<string>; asked: Array<readonly [string, string | undefined]> }
>()("test/Seen") {}

const doubles = Layer.mergeAll(
  Layer.effect(
    CredentialLookup,
    Effect.map(Seen, (seen) =>
      CredentialLookup.of({
        resolve: () => Effect.die("the middleware resolves a credential together with what the call names"),
        resolveNaming: (credential, name) => {
          const kind = kinds.find((one) => one === Redacted.value(credential))
          seen.lookups.push(`credential and ${name}`)
          return kind === undefined
            ? Effect.fail(new Unauthenticated({ detail: "no" }))
            : Effect.succeed({ caller: callerOf(kind), named: known.get(name) })
        },
      }),
    ),
  ),
  Layer.mock(OrgLimits)({ take: (_, policy) => Effect.succeed({ policy, quota: 9, remaining: 8, resetSeconds: 7 }) }),
  Layer.effect(
    IdentityQueries,
    Effect.map(Seen, (seen) =>
      IdentityQueries.of({
        find: (_: string, name: string) => {
          seen.lookups.push(`identity ${name}`)
          return Effect.succeed(known.get(name))
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
  Layer.effect(
    Identities,
    Effect.map(Seen, (seen) => ({
      of: (name: string) =>
        ({
          Retry: (_: unknown, options: { headers: Record<string, string> }) =>
            Effect.sync(() => void seen.asked.push([name, options.headers[byHeader]])),
        }) as never,
    })),
  ),
  Layer.effect(
    Orgs,
    Effect.map(Seen, (seen) => ({
      of: (id: string) =>
        ({
          Delete: (_: unknown, options: { headers: Record<string, string> }) =>
            Effect.sync(() => void seen.asked.push([id, options.headers[byHeader]])),
        }) as never,
    })),
  ),
)
const tests = Authorization.layer.pipe(
  Layer.provide(doubles),
  Layer.provideMerge(Layer.sync(Seen, () => ({ lookups: [], asked: [] }))),
)

// -- Calls ----------------------------------------------------------------------------------------------------------

interface Named {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | Array<string>>>
  readonly body?: string
}

const guards = [CallerAuthorization, SubjectAuthorization, RealmAuthorization] as const

/** The code of the refusal, or the proofs that the handler got: `undefined` for none. */
const judged = Effect.fnUntraced(function* <A = unknown>(
  endpoint: HttpApiEndpoint.Top,
  credential: string,
  { path = {}, query = {}, body }: Named,
  handler: Effect.Effect<A, unknown, Caller | Subject | Realm> = Effect.map(
    Effect.context<Caller | Subject | Realm>(),
    (context) => {
      const subject = Context.getOrUndefined(context as Context.Context<never>, Subject)
      const realm = Context.getOrUndefined(context as Context.Context<never>, Realm)
      return { subject: subject?.handle, realm: realm === undefined ? undefined : (realm.subject?.handle ?? null) } as A
    },
  ),
) {
  const seen = yield* Seen
  seen.lookups.length = 0
  seen.asked.length = 0
  const tag = guards.find((one) => endpoint.middlewares.has(one))!
  const guard = yield* tag as typeof SubjectAuthorization
  let proofs: A | undefined
  const run = guard.api_key(
    Effect.map(handler as Effect.Effect<A, never, Caller | Subject>, (got) => {
      proofs = got
      return HttpServerResponse.empty()
    }),
    { credential: Redacted.make(credential), endpoint, group: HttpApiGroup.make("unused") as never },
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
        Context.add(Exchange, makeExchange("req_1")),
      ),
    ),
  )
  if (Result.isSuccess(result)) return proofs
  return isProblem(result.failure) ? result.failure.code : yield* Effect.die(result.failure)
})

const replay = JSON.stringify({ webhook_id: toPublic("wh_", uuid("21")) })

/** A request that names `target` where the endpoint names its Identity. */
const naming = (where: string | undefined, target: string): Named => {
  switch (where) {
    case "Path":
      return { path: { handle: target } }
    case "Query":
      return { query: { identity: target } }
    case "Body":
      return { body: JSON.stringify({ identity: target }) }
    case "Resource":
      return { path: { id: target }, body: replay }
    default:
      return {}
  }
}

const unreadable = "x".repeat(201)
const targetsOf = (where: string | undefined) =>
  where === "Resource"
    ? [eventIds.ada, eventIds.bob, eventIds.org, toPublic("evt_", uuid("99")), "evt_no"]
    : ["ada", "A-Da", "bob", "nobody", unreadable]

/** What interface.md says comes of it, written apart from the code that judges. */
const promised = (scope: string, where: string | undefined, kind: CredentialKind, target: string) => {
  if (scope === "session" && kind !== "session") return "session_required"
  const byKey = kind === "identity_key"
  if (byKey && scope === "org") return "org_scope_required"
  if (byKey && scope === "admin") return "admin_required"
  const realm = (handle: string | null | undefined) => ({ subject: undefined, realm: handle })
  switch (where) {
    case undefined:
      return { subject: undefined, realm: undefined }
    case "realm":
      return realm(byKey ? "ada" : null)
    case "Resource":
      if (target === "evt_no") return realm(undefined)
      if (target === eventIds.ada) return realm("ada")
      if (byKey || !handleOfEvent.has(target)) return "not_found"
      return realm(handleOfEvent.get(target))
    default: {
      const name = target.toLowerCase().replaceAll("-", "")
      const readable = target !== unreadable
      if (byKey && name !== "ada" && (readable || where !== "Body")) return "foreign_identity"
      if (readable && !known.has(name)) return "not_found"
      const handle = readable ? name : undefined
      return where === "Path" ? { subject: handle, realm: undefined } : realm(handle)
    }
  }
}

layer(tests)("the policy of", (it) => {
  it.effect.each(rows.filter(({ scope }) => scope !== "public"))("$id", ({ scope, naming: where, endpoint }) =>
    Effect.gen(function* () {
      for (const kind of kinds) {
        for (const target of targetsOf(where)) {
          const outcome = yield* judged(endpoint, kind, naming(where, target))
          expect(outcome, `${kind} naming ${target}`).toEqual(promised(scope, where, kind, target))
          // A name in the path or the query costs no look-up of its own.
          const { lookups } = yield* Seen
          if (where === "Path" || where === "Query") expect(lookups).toHaveLength(1)
        }
      }
      expect(yield* judged(endpoint, "nobody's", naming(where, "ada"))).toBe("unauthenticated")
    }),
  )

  it.effect("a realm is the caller's own where nothing is named", () =>
    Effect.gen(function* () {
      for (const id of ["vault.list", "exports.create"]) {
        for (const kind of kinds) {
          const own = { subject: undefined, realm: kind === "identity_key" ? "ada" : null }
          expect(yield* judged(endpoints.get(id)!, kind, {})).toEqual(own)
        }
      }
    }),
  )

  it.effect("a name that is given twice, or a body that is none, gets no proof", () =>
    Effect.gen(function* () {
      const nothing = { subject: undefined, realm: undefined }
      expect(yield* judged(endpoints.get("vault.list")!, "session", { query: { identity: ["ada", "bob"] } })).toEqual(
        nothing,
      )
      for (const body of ["{", `{"identity":7}`, `{"identity":"ada","other":1}`, "[]"]) {
        expect(yield* judged(endpoints.get("exports.create")!, "session", { body }), body).toEqual(nothing)
      }
    }),
  )

  it.effect("a resource is not looked up for a request that is malformed", () =>
    Effect.gen(function* () {
      const nothing = { subject: undefined, realm: undefined }
      const nobodys = { path: { id: toPublic("evt_", uuid("99")) }, body: "{}" }
      expect(yield* judged(endpoints.get("events.replay")!, "session", nobodys)).toEqual(nothing)
    }),
  )

  it.effect("an Identity Key finds no other Identity by trying, in whatever place", () =>
    Effect.gen(function* () {
      yield* judged(endpoints.get("exports.create")!, "identity_key", { body: `{"identity":"bob"}` })
      expect((yield* Seen).lookups).toEqual(["credential and "])
    }),
  )

  const reserved = [
    ["mail_settings.switch", { outgoing: "active" }, { outgoing: "stopped", reason: "noise" }],
    ["tunnels.patch", { basic_auth: null }, { proxy_protocol: true }],
    ["tunnels.patch", { allowed_networks: [], proxy_protocol: true }, { host_header: "local" }],
  ] as const
  it.effect.each(reserved)("%s keeps a part of its body from Identity Keys", ([id, accounts, anyones]) =>
    Effect.gen(function* () {
      const ask = (kind: string, body: string) => judged(endpoints.get(id)!, kind, { path: { handle: "ada" }, body })
      const proofs = { subject: "ada", realm: undefined }
      expect(yield* ask("identity_key", JSON.stringify(accounts))).toBe("admin_required")
      expect(yield* ask("identity_key", JSON.stringify(anyones))).toEqual(proofs)
      expect(yield* ask("admin_key", JSON.stringify(accounts))).toEqual(proofs)
      // What decoding will refuse is left to it.
      expect(yield* ask("identity_key", JSON.stringify({ ...accounts, stranger: 1 }))).toEqual(proofs)
      expect(yield* ask("identity_key", "{")).toEqual(proofs)
    }),
  )

  it.effect("every message to an actor says who asked, in which request", () =>
    Effect.gen(function* () {
      const seen = yield* Seen
      for (const kind of kinds) {
        yield* judged(
          endpoints.get("cards.read")!,
          kind,
          { path: { handle: "ada" } },
          Effect.gen(function* () {
            const { ask, orgId } = yield* Subject
            yield* ask((actor, by) => actor.Retry({ org_id: orgId }, by))
            yield* (yield* Caller).askOrg((actor, by) => actor.Delete(undefined, by))
          }),
        )
        expect(seen.asked.map(([to, by]) => [to, decodeBy(by)])).toEqual(
          ["ada", org.id].map((to) => [to, { kind, credentialId: `id-of-${kind}`, requestId: "req_1" }]),
        )
      }
    }),
  )
})

describe("an endpoint without a policy", () => {
  const bare = HttpApiEndpoint.get("bare", "/bare/:handle", { params: { handle: Schema.String } })

  it("is named by the compiler, and refused at the start", () => {
    const api = HttpApi.make("api").add(
      HttpApiGroup.make("group").add(bare, open(HttpApiEndpoint.get("open", "/open"))),
    )
    expectTypeOf<Unjudged<typeof api.groups>>().toEqualTypeOf<"group.bare">()
    expectTypeOf<Unjudged<typeof Api.groups>>().toEqualTypeOf<never>()
    expect(() => policyOf(bare)).toThrow("bare does not say who may call it")
  })

  it("hands no Identity to its handler, and one that names none cannot resolve one", () => {
    const asCaller = bare.pipe(callers("any"))
    const asSubject = bare.pipe(onIdentity("any"))
    expectTypeOf<HttpApiEndpoint.ExcludeProvided<typeof bare, Subject>>().toEqualTypeOf<Subject>()
    expectTypeOf<HttpApiEndpoint.ExcludeProvided<typeof asCaller, Subject>>().toEqualTypeOf<Subject>()
    expectTypeOf<HttpApiEndpoint.ExcludeProvided<typeof asSubject, Subject>>().toEqualTypeOf<never>()
    // @ts-expect-error there is no `:handle` in its path
    HttpApiEndpoint.get("nameless", "/nameless").pipe(onIdentity("any"))
    // What a handler is still in need of stands in its layer's requirements, so the service does not compile.
    const group = HttpApiGroup.make("group").add(asCaller)
    const served = HttpApiBuilder.group(HttpApi.make("api").add(group), "group", (handlers) =>
      handlers.handle("bare", () => Effect.asVoid(Effect.service(Subject))),
    )
    expectTypeOf<HttpRouter.Request<"Requires", Subject>>().toExtend<Layer.Services<typeof served>>()
  })
})

it("the manifest has every endpoint", () => {
  const actual = [...endpoints].map(([id, endpoint]) => {
    const { scope, names, reserved } = policyOf(endpoint)
    const where =
      names._tag !== "Nowhere" ? [names._tag] : endpoint.middlewares.has(RealmAuthorization) ? ["realm"] : []
    expect(endpoint.middlewares.has(Open), id).toBe(scope === "public")
    return [id, scope, ...where, ...(reserved === undefined ? [] : ["reserved"])].join(" ")
  })
  expect(actual).toEqual(manifest.trim().split("\n"))
})
