/** The endpoints of OAuth for programs without a store: which limits they count against, and what they record. */
import * as Registration from "@svc/api/oauth/Registration"
import * as TokenEndpoint from "@svc/api/oauth/TokenEndpoint"
import { Audit } from "@svc/cluster/audit/Audit"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { GrantInvalid, GrantTokens } from "@svc/cluster/oauth/GrantTokens"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { SignInRefused, SignInTokens } from "@svc/cluster/proof/SignInTokens"
import { makeOAuthToken } from "@svc/domain/account/Token"
import { Addresses } from "@svc/domain/Addresses"
import { RateLimited, Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { afterAll, expect, it } from "vitest"

type Outcome = Effect.Effect<unknown, unknown>
/** The outcomes of the services, which each test replaces. */
let outcomes: Readonly<Record<string, Outcome>> = {}
let limit: Outcome | undefined
const taken: Array<string> = []
const recorded: Array<string> = []
const outcome = (name: string) => Effect.suspend(() => outcomes[name] ?? Effect.void) as Effect.Effect<never>

const state = { limit: { quota: 5, windowSeconds: 60 }, remaining: 4, resetSeconds: 60 }
const known = {
  id: "s",
  site: "shop.example",
  clientName: "Shop",
  subject: { orgId: "o", id: "i", handle: "ada" },
  credential: { kind: "admin_key", credentialId: "k" },
}
const services = Layer.mergeAll(
  Layer.succeed(Addresses, {
    environment: "production",
    baseUrl: "https://id.example",
    profileBase: "https://id.example",
    mailDomain: "mail.id.example",
    tunnelDomain: "tunnel.id.example",
  } as never),
  Layer.succeed(PublicLimits, {
    take: (name: string, who: string) =>
      Effect.suspend(() => {
        taken.push(`${name} ${who}`)
        return limit ?? Effect.succeed(state)
      }),
  } as never),
  Layer.succeed(OAuthClients, {
    known: () => Effect.succeed({ id: "oc_1" }),
    register: () => Effect.succeed({ id: "oc_2", issuedAt: new Date(1_700_000_000_900) }),
  } as never),
  Layer.succeed(GrantTokens, {
    exchange: () => outcome("exchange"),
    refresh: () => outcome("refresh"),
    isAlive: () => outcome("isAlive"),
    revoke: () => outcome("revoke"),
  } as never),
  Layer.succeed(SignInTokens, {
    exchange: (_: unknown, noteOf: (one: typeof known) => Effect.Effect<unknown>) =>
      Effect.andThen(noteOf(known), outcome("signIn")),
    claims: () => outcome("claims"),
  } as never),
  Layer.succeed(Audit, {
    note: (row: unknown) => Effect.succeed({ row }),
    kept: ({ row }: { row: { action: string } }) => void recorded.push(`kept ${row.action}`),
    record: (act: { action: string; outcome: string; code: string | null; target: { id: string; name: string } }) =>
      Effect.sync(
        () => void recorded.push([act.action, act.outcome, act.code, act.target.id, act.target.name].join(" ")),
      ),
  } as never),
)
const { handler, dispose } = HttpRouter.toWebHandler(
  Layer.mergeAll(TokenEndpoint.layer, Registration.layer).pipe(Layer.provide(services)) as never,
  { disableLogger: true },
)
const context = Effect.runSync(Effect.scoped(Layer.build(services)))
afterAll(dispose)

const call = async (path: string, body: Readonly<Record<string, unknown>>, set: typeof outcomes = {}) => {
  outcomes = set
  taken.length = 0
  recorded.length = 0
  const isJson = path === "register"
  const response: Response = await (handler as (request: Request, context: unknown) => Promise<Response>)(
    new Request(`https://id.example/api/oauth/${path}`, {
      method: "POST",
      headers: {
        "content-type": isJson ? "application/json" : "application/x-www-form-urlencoded",
        authorization: "Bearer t",
      },
      body: isJson ? JSON.stringify(body) : new URLSearchParams(body as Record<string, string>).toString(),
    }),
    context,
  )
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const client_id = "oc_1"
const random = new Uint8Array(32)
const exchange = {
  client_id,
  grant_type: "authorization_code",
  code: makeOAuthToken("code", random),
  redirect_uri: "https://app.example/",
  code_verifier: "v",
}
const signIn = { ...exchange, code: makeOAuthToken("signInCode", random) }
const refresh = { client_id, grant_type: "refresh_token", refresh_token: "r" }
const revoke = { client_id, token: "t" }
const registration = { redirect_uris: ["https://app.example/"], client_name: "App" }

const pair = Effect.succeed({ orgId: "o", grantId: "g", client: "App", access: "a", refresh: "r", scopes: ["x", "y"] })
const invalid = (ended: string | null) =>
  Effect.fail(new GrantInvalid({ description: "No.", whose: { grantId: "g", orgId: "o", client: "App", ended } }))
const foreign = Effect.fail(new GrantInvalid({ description: "No.", whose: null }))
const unusable = (hasEnded: boolean) =>
  Effect.fail(new SignInRefused({ description: "No.", known: known as never, hasEnded }))
const unknown = Effect.fail(new SignInRefused({ description: "No.", known: undefined, hasEnded: false }))
const alive = { isAlive: Effect.succeed(true) }

type Counted = readonly [what: string, path: string, body: object, set: typeof outcomes, limits: ReadonlyArray<string>]
/** A client at two addresses has two limits; these requests come from an unknown address. */
const counted: ReadonlyArray<Counted> = [
  ["The exchange of a code", "token", exchange, { exchange: pair }, ["oauth_token oc_1 unknown"]],
  [
    "An invalid code",
    "token",
    exchange,
    { exchange: foreign },
    ["oauth_token oc_1 unknown", "oauth_token_failed oc_1 unknown"],
  ],
  [
    "An invalid code of a site",
    "token",
    signIn,
    { signIn: unknown },
    ["oauth_token oc_1 unknown", "oauth_token_failed oc_1 unknown"],
  ],
  ["A refresh", "token", refresh, { ...alive, refresh: pair }, ["oauth_token oc_1 unknown"]],
  ["A revocation", "revoke", revoke, {}, ["oauth_token oc_1 unknown"]],
  ["A read of claims", "userinfo", {}, {}, ["oauth_token userinfo unknown"]],
  ["A registration", "register", registration, {}, ["oauth_register unknown"]],
]

it.each(counted)("%s counts against the limit of its caller", async (_, path, body, set, limits) => {
  limit = undefined
  await call(path, { ...body }, set)
  expect(taken).toEqual(limits)
  for (const [failure, status] of [
    [new RateLimited({ detail: "Wait.", retry_after_seconds: 7 }), 429],
    [new Unavailable({ detail: "Wait." }), 503],
  ] as const) {
    limit = Effect.fail(failure)
    const { body: answer, headers, status: found } = await call(path, { ...body }, set)
    expect([found, answer.error, headers.get("retry-after")]).toEqual([
      status,
      "temporarily_unavailable",
      status === 429 ? "7" : "1",
    ])
  }
  limit = undefined
})

it("An invalid refresh token is reported despite the limit, so that its client does not repeat it forever", async () => {
  const { body, headers, status } = await call("token", refresh, { refresh: foreign })
  expect([status, body.error, taken]).toEqual([400, "invalid_grant", []])
  expect([headers.get("cache-control"), headers.get("pragma")]).toEqual(["no-store", "no-cache"])
})

it.each<readonly [what: string, path: string, body: object, set: typeof outcomes, records: ReadonlyArray<string>]>([
  ["The exchange of a code", "token", exchange, { exchange: pair }, ["oauth.token allowed  g App"]],
  [
    "A second use of a code",
    "token",
    exchange,
    { exchange: invalid("code_reuse") },
    ["oauth.token refused code_reuse g App"],
  ],
  ["An expired code", "token", exchange, { exchange: invalid(null) }, ["oauth.token refused invalid_grant g App"]],
  ["An unknown code", "token", exchange, { exchange: foreign }, []],
  ["A refresh", "token", refresh, { ...alive, refresh: pair }, ["oauth.refresh allowed  g App"]],
  [
    "A stolen refresh token",
    "token",
    refresh,
    { refresh: invalid("token_reuse") },
    ["oauth.refresh refused token_reuse g App"],
  ],
  ["An unknown refresh token", "token", refresh, { refresh: foreign }, []],
  [
    "A sign-in at a site",
    "token",
    signIn,
    { signIn: Effect.succeed({ access: "a", idToken: "i", scopes: [] }) },
    ["kept oauth.sign_in"],
  ],
  [
    "A second use of a code of a site",
    "token",
    signIn,
    { signIn: unusable(true) },
    ["oauth.sign_in refused code_reuse s shop.example"],
  ],
  [
    "An expired code of a site",
    "token",
    signIn,
    { signIn: unusable(false) },
    ["oauth.sign_in refused invalid_grant s shop.example"],
  ],
  ["An unknown code of a site", "token", signIn, { signIn: unknown }, []],
  [
    "A revocation",
    "revoke",
    revoke,
    { revoke: Effect.succeed({ id: "g", org_id: "o", client_name: "App" }) },
    ["oauth.revoke allowed  g App"],
  ],
  ["A revocation of an unknown token", "revoke", revoke, {}, []],
])("%s is recorded only for the account that it concerns", async (_, path, body, set, records) => {
  await call(path, { ...body }, set)
  expect(recorded).toEqual(records)
})

it("A registration returns what was registered, and its time in seconds", async () => {
  const asked = {
    ...registration,
    id_token_signed_response_alg: "ES256",
    token_endpoint_auth_method: "client_secret_basic",
  }
  const { body, status } = await call("register", asked)
  expect([status, body]).toMatchObject([
    201,
    {
      client_id: "oc_2",
      client_id_issued_at: 1_700_000_000,
      client_name: "App",
      redirect_uris: ["https://app.example/"],
      id_token_signed_response_alg: "ES256",
      token_endpoint_auth_method: "none",
    },
  ])
  expect((await call("register", registration)).body).not.toHaveProperty("id_token_signed_response_alg")
})
