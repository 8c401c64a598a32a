import { expect, layer } from "@effect/vitest"
import type { CredentialKind } from "@svc/domain/account/Account"
import { Caller, Open, RealmAuthorization, Subject } from "@svc/domain/account/Authorization"
import { decodeBy } from "@svc/domain/account/Initiator"
import * as ActorCalls from "@svc/api/account/ActorCalls"
import { callers, onIdentity, open, policyOf, type Unjudged } from "@svc/domain/account/Policy"
import type { Api } from "@svc/domain/Api"
import { toPublic } from "@svc/domain/Ids"
import { Effect, type Layer, Schema } from "effect"
import type { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { describe, expectTypeOf, it } from "vitest"
import {
  eventIds,
  handleOfEvent,
  authorize,
  testAuthorization,
  kinds,
  knownIdentities,
  type NamedRequest,
  org,
  RecordedCalls,
  uuid,
} from "./TestAuthorization.ts"
import { endpoints, manifest, rows } from "./Manifest.ts"
import { marks, marksOf } from "./Marks.ts"
import { operations } from "./Operations.ts"

const replay = JSON.stringify({ webhook_id: toPublic("wh_", uuid("21")) })

/** Returns a request that names `target` where the endpoint expects the name of its Identity. */
const naming = (where: string | undefined, target: string): NamedRequest => {
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

const unreadable = ["x".repeat(201), "ada@mail.localhost"]
const targetsOf = (where: string | undefined) =>
  where === "Resource"
    ? [eventIds.ada, eventIds.bob, eventIds.org, toPublic("evt_", uuid("99")), "evt_no"]
    : ["ada", "A-Da", "bob", "nobody", ...unreadable]

/** Returns the expected result as interface.md defines it, independently of the code under test. */
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
      const readable = !unreadable.includes(target)
      // Decoding rejects invalid Handles with an explanation.
      if (byKey && name !== "ada" && readable) return "foreign_identity"
      if (readable && !knownIdentities.has(name)) return "not_found"
      const handle = readable ? name : undefined
      return where === "Path" ? { subject: handle, realm: undefined } : realm(handle)
    }
  }
}

layer(testAuthorization)("Policy of", (it) => {
  it.effect.each(rows.filter(({ scope }) => scope !== "public"))("$id", ({ scope, naming: where, endpoint }) =>
    Effect.gen(function* () {
      for (const kind of kinds) {
        for (const target of targetsOf(where)) {
          const outcome = yield* authorize(endpoint, kind, naming(where, target))
          expect(outcome, `${kind} naming ${target}`).toEqual(promised(scope, where, kind, target))
          // A name in the path or the query is resolved by the same lookup as the credential.
          const { lookups } = yield* RecordedCalls
          if (where === "Path" || where === "Query") expect(lookups).toHaveLength(1)
        }
      }
      expect(yield* authorize(endpoint, "nobody's", naming(where, "ada"))).toBe("unauthenticated")
    }),
  )

  it.effect("a request without a target is authorized for the caller's own realm", () =>
    Effect.gen(function* () {
      for (const id of ["vault.list", "exports.create"]) {
        for (const kind of kinds) {
          const own = { subject: undefined, realm: kind === "identity_key" ? "ada" : null }
          expect(yield* authorize(endpoints.get(id)!, kind, {})).toEqual(own)
        }
      }
    }),
  )

  it.effect("a repeated name or an invalid body yields no proof", () =>
    Effect.gen(function* () {
      const nothing = { subject: undefined, realm: undefined }
      expect(
        yield* authorize(endpoints.get("vault.list")!, "session", { query: { identity: ["ada", "bob"] } }),
      ).toEqual(nothing)
      for (const body of ["{", `{"identity":7}`, `{"identity":"ada","other":1}`, "[]"]) {
        expect(yield* authorize(endpoints.get("exports.create")!, "session", { body }), body).toEqual(nothing)
      }
    }),
  )

  it.effect("a malformed request causes no lookup of a resource", () =>
    Effect.gen(function* () {
      const nothing = { subject: undefined, realm: undefined }
      const nobodys = { path: { id: toPublic("evt_", uuid("99")) }, body: "{}" }
      expect(yield* authorize(endpoints.get("events.replay")!, "session", nobodys)).toEqual(nothing)
    }),
  )

  it.effect("an Identity Key cannot find other Identities by any parameter", () =>
    Effect.gen(function* () {
      yield* authorize(endpoints.get("exports.create")!, "identity_key", { body: `{"identity":"bob"}` })
      expect((yield* RecordedCalls).lookups).toEqual(["credential and "])
    }),
  )

  const reserved = [
    ["mail_settings.switch", { outgoing: "active" }, { outgoing: "stopped", reason: "noise" }],
    ["tunnels.patch", { basic_auth: null }, { proxy_protocol: true }],
    ["tunnels.patch", { allowed_networks: [], proxy_protocol: true }, { host_header: "local" }],
  ] as const
  it.effect.each(reserved)(
    "%s restricts a part of its body to other credentials than Identity Keys",
    ([id, accounts, anyones]) =>
      Effect.gen(function* () {
        const ask = (kind: string, body: string) =>
          authorize(endpoints.get(id)!, kind, { path: { handle: "ada" }, body })
        const proofs = { subject: "ada", realm: undefined }
        expect(yield* ask("identity_key", JSON.stringify(accounts))).toBe("admin_required")
        expect(yield* ask("identity_key", JSON.stringify(anyones))).toEqual(proofs)
        expect(yield* ask("admin_key", JSON.stringify(accounts))).toEqual(proofs)
        // Authorization leaves requests to the decoder if the decoder will reject them.
        expect(yield* ask("identity_key", JSON.stringify({ ...accounts, stranger: 1 }))).toEqual(proofs)
        expect(yield* ask("identity_key", "{")).toEqual(proofs)
      }),
  )

  it.effect("every message to an actor names the caller and the request", () =>
    Effect.gen(function* () {
      const seen = yield* RecordedCalls
      const askIdentity = yield* ActorCalls.ofIdentity
      const askOrg = yield* ActorCalls.ofOrg
      for (const kind of kinds) {
        yield* authorize(
          endpoints.get("cards.read")!,
          kind,
          { path: { handle: "ada" } },
          Effect.gen(function* () {
            const subject = yield* Subject
            yield* askIdentity(subject, (actor, by) => actor.Retry({ org_id: subject.orgId }, by))
            yield* askOrg(yield* Caller, (actor, by) => actor.Delete(undefined, by))
          }),
        )
        expect(seen.asked.map(([to, by]) => [to, decodeBy(by)])).toEqual(
          ["ada", org.id].map((to) => [
            to,
            {
              kind,
              credentialId: `id-of-${kind}`,
              requestId: "req_1",
              ...(kind === "admin_key" ? { approves: true } : {}),
            },
          ]),
        )
      }
    }),
  )
})

describe("Endpoint without a policy", () => {
  const bare = HttpApiEndpoint.get("bare", "/bare/:handle", { params: { handle: Schema.String } })

  it("does not compile and prevents the start", () => {
    const api = HttpApi.make("api").add(
      HttpApiGroup.make("group").add(bare, open(HttpApiEndpoint.get("open", "/open"))),
    )
    expectTypeOf<Unjudged<typeof api.groups>>().toEqualTypeOf<"group.bare">()
    expectTypeOf<Unjudged<typeof Api.groups>>().toEqualTypeOf<never>()
    expect(() => policyOf(bare)).toThrow("bare has no policy")
  })

  it("gives its handler no Identity and cannot resolve one", () => {
    const asCaller = bare.pipe(callers("any"))
    const asSubject = bare.pipe(onIdentity("any"))
    expectTypeOf<HttpApiEndpoint.ExcludeProvided<typeof bare, Subject>>().toEqualTypeOf<Subject>()
    expectTypeOf<HttpApiEndpoint.ExcludeProvided<typeof asCaller, Subject>>().toEqualTypeOf<Subject>()
    expectTypeOf<HttpApiEndpoint.ExcludeProvided<typeof asSubject, Subject>>().toEqualTypeOf<never>()
    // @ts-expect-error there is no `:handle` in its path
    HttpApiEndpoint.get("nameless", "/nameless").pipe(onIdentity("any"))
    // If a handler needs a proof that its endpoint does not provide, the proof is a requirement of the layer and the service does not
    // compile.
    const group = HttpApiGroup.make("group").add(asCaller)
    const served = HttpApiBuilder.group(HttpApi.make("api").add(group), "group", (handlers) =>
      handlers.handle("bare", () => Effect.asVoid(Effect.service(Subject))),
    )
    expectTypeOf<HttpRouter.Request<"Requires", Subject>>().toExtend<Layer.Services<typeof served>>()
  })
})

it("the manifest lists every endpoint", () => {
  const actual = [...endpoints].map(([id, endpoint]) => {
    const { scope, names, reserved } = policyOf(endpoint)
    const where =
      names._tag !== "Nowhere" ? [names._tag] : endpoint.middlewares.has(RealmAuthorization) ? ["realm"] : []
    expect(endpoint.middlewares.has(Open), id).toBe(scope === "public")
    return [id, scope, ...where, ...(reserved === undefined ? [] : ["reserved"])].join(" ")
  })
  expect(actual).toEqual(manifest.trim().split("\n"))
})

it("the recorded problems are those that every endpoint declares", async () => {
  const lines = operations.map(({ id, problems }) => [id, ...problems].join(" "))
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("problems.txt")
})

it("the marks list every endpoint that has secrets, mail, a separate limit or a tool", () => {
  const expected = Object.entries(marks).map(([mark, ids]) => [mark, ids.trim().split("\n")])
  expect(marksOf(endpoints)).toEqual(Object.fromEntries(expected))
})
