/** Unusual responses of a Mastodon server, and how the platform handles them. The test answers the requests in memory. */
import { CredentialRefused, PlatformUnreachable } from "@svc/cluster/connectors/platforms/Failure"
import type { Session } from "@svc/cluster/connectors/platforms/Platform"
import * as Authorization from "@svc/cluster/connectors/platforms/mastodon/Authorization"
import { calling, document } from "@svc/cluster/connectors/platforms/mastodon/Client"
import * as Credentials from "@svc/cluster/connectors/platforms/mastodon/Credentials"
import * as Discovery from "@svc/cluster/connectors/platforms/mastodon/Discovery"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { type Respond, service, visiting } from "./mastodon/RecordedCalls.ts"

const unreachable = new PlatformUnreachable({ message: "down" })

describe("a call of a Mastodon server", () => {
  const failing = (status: number, body: unknown) =>
    Effect.flip(
      calling(visiting(() => ({ status, body })).http, service, undefined, ({ api }) =>
        api.v1.accounts.verifyCredentials(),
      ),
    )

  it.effect.each([
    [401, { error: "no" }, "CredentialRefused", "no"],
    [403, { error: "Your login is currently disabled" }, "CredentialRefused", "Your login is currently disabled"],
    [403, { error: "This action is not allowed" }, "PlatformRefused", "This action is not allowed"],
    [404, { error: "Record not found" }, "missing", "Record not found"],
    [410, {}, "missing", "social.example responded with 410."],
    [422, { error: "e", error_description: "the description" }, "PlatformRefused", "the description"],
    [400, { error: 7, error_description: "" }, "PlatformRefused", "social.example responded with 400."],
    [400, "<html>", "PlatformRefused", "social.example responded with 400."],
    [400, "null", "PlatformRefused", "social.example responded with 400."],
    [500, { error: "broken" }, "PlatformUnreachable", "broken"],
    [302, "", "PlatformUnreachable", "social.example responded with 302."],
    [200, "<html>", "PlatformUnreachable", "The response of social.example is not JSON."],
    [200, `[${"1,".repeat(60_000)}1]`, "PlatformUnreachable", "The response of social.example is too large."],
  ] as const)("fails with %s %s as %s", ([status, body, tag, message]) =>
    Effect.map(failing(status, body), (failure) => {
      expect([failure._tag, failure.message]).toEqual([tag === "missing" ? "PlatformRefused" : tag, message])
      expect("missing" in failure && failure.missing === true).toBe(tag === "missing")
    }),
  )

  it.effect("accepts 59,999 values in a response, and an empty one", () =>
    Effect.gen(function* () {
      // The bracket counts as well.
      const list = visiting(() => ({ body: `[${"1,".repeat(59_999)}1]` }))
      const call = calling(
        list.http,
        service,
        undefined,
        ({ api }) => api.v1.accounts.verifyCredentials() as Promise<unknown>,
      )
      expect(yield* call).toHaveLength(60_000)
      const empty = visiting(() => ({ body: "" }))
      expect(
        yield* calling(empty.http, service, undefined, ({ api }) => api.v1.accounts.verifyCredentials()),
      ).toBeUndefined()
    }),
  )

  it.effect("sends the token of the account, and hides no error of the library", () =>
    Effect.gen(function* () {
      const { http, sent } = visiting(() => ({}))
      yield* calling(http, service, Redacted.make("secret"), ({ api }) => api.v1.accounts.verifyCredentials())
      expect(sent[0]).toMatchObject({
        url: `${service}/api/v1/accounts/verify_credentials`,
        headers: { authorization: "Bearer secret" },
      })
      const thrown = yield* Effect.flip(calling(http, service, undefined, () => Promise.reject(new Error("odd"))))
      expect(thrown.message).toBe("The server's response is invalid: Error: odd")
    }),
  )

  it.effect("reads a document, which a server need not have", () =>
    Effect.gen(function* () {
      const read = (status: number, body: unknown) => document(visiting(() => ({ status, body })).http, service, "/x")
      expect(yield* read(200, { a: 1 })).toEqual({ a: 1 })
      for (const status of [204, 301, 404, 499]) expect(yield* read(status, {})).toBeUndefined()
      expect(yield* Effect.flip(read(500, { error: "broken" }))).toMatchObject({
        _tag: "PlatformUnreachable",
        message: "broken",
      })
      expect((yield* Effect.flip(read(200, "<"))).message).toBe("The response of social.example is not JSON.")
    }),
  )
})

describe("the server of an account", () => {
  const self = (href?: string, type: string | null = "application/activity+json") => ({
    body: {
      links: [
        { rel: "profile", href: "https://no.example/", type },
        { rel: "self", type, ...(href === undefined ? {} : { href }) },
      ],
    },
  })
  const found = (account: string | undefined, respond: Respond = () => unreachable) => {
    const { http, sent } = visiting(respond)
    return Effect.map(Effect.exit(Discovery.serviceOf(http, account)), (exit) => ({
      service: exit._tag === "Success" ? exit.value : "refused",
      asked: sent.map(({ url }) => url),
    }))
  }
  const finger = "https://example.org/.well-known/webfinger?resource=acct%3Aada%40example.org"

  it.effect("is named by a host or an address", () =>
    Effect.gen(function* () {
      for (const [account, service] of [
        ["Example.org", "https://example.org"],
        ["https://example.org/@ada", "https://example.org"],
        ["http://example.org:3000/", "http://example.org:3000"],
        [" acct:example.org ", "https://example.org"],
        [undefined, "refused"],
        ["", "refused"],
        ["ada smith", "refused"],
        ["a@b@c", "refused"],
        ["ada@[::1", "refused"],
        [`${"a".repeat(101)}@example.org`, "refused"],
      ] as const)
        expect([account, yield* found(account)]).toEqual([account, { service, asked: [] }])
    }),
  )

  it.effect("is found by WebFinger, over at most three redirects", () =>
    Effect.gen(function* () {
      const ask = (respond: Respond) => found("@Ada@example.org".toLowerCase(), respond)
      expect(yield* ask(() => self("https://social.example/users/ada"))).toEqual({ service, asked: [finger] })
      const hops =
        (most: number): Respond =>
        ({ url }) => {
          const at = Number(/hop=(\d)/.exec(url)?.[1] ?? 0)
          return at < most
            ? { status: 301 + at, headers: { location: `/w?hop=${at + 1}` } }
            : self("https://social.example/users/ada")
        }
      expect(yield* ask(hops(3))).toEqual({
        service,
        asked: [finger, ...[1, 2, 3].map((n) => `https://example.org/w?hop=${n}`)],
      })
      const own = "https://example.org"
      const far = yield* ask(hops(4))
      expect([far.service, far.asked.length]).toEqual([own, 4])
      // A host without a usable document may be the server itself.
      for (const answer of [
        { status: 404 },
        { status: 302 },
        { status: 302, headers: { location: "http://[" } },
        { body: "<html>" },
        { body: { links: "none" } },
        self(undefined),
        self("no address"),
        self("https://social.example/users/ada", null),
        self("https://social.example/users/ada", "text/html"),
        unreachable,
      ])
        expect(yield* ask(() => answer)).toEqual({ service: own, asked: [finger] })
    }),
  )
})

describe("the return from an authorization", () => {
  const application = { id: "app", secret: "app secret" }
  const pending = { service, application, verifier: "verifier", issuer: service }
  const account = { id: "1", username: "ada", acct: "ada", url: `${service}/@ada` }
  const usual: Respond = ({ url }) =>
    url.endsWith("/oauth/token")
      ? {
          body: {
            access_token: "token",
            token_type: "Bearer",
            scope: "read write",
            expires_in: 100,
            refresh_token: "next",
          },
        }
      : { body: account }
  const finish = (query: string, respond: Respond = usual, kept: object = pending) => {
    const { visit, sent, forgotten } = visiting(respond)
    const instances = { limits: () => Effect.succeed({ domain: "social.example" }) } as any
    const run = Authorization.finish(instances)(visit, {
      kept: Redacted.make(JSON.stringify(kept)),
      query: new URLSearchParams(query),
      redirectUri: "https://api.example/back",
    } as never)
    return Effect.map(Effect.result(run), (result) => ({ result, sent, forgotten }))
  }
  const refusal = (query: string, respond?: Respond) =>
    Effect.map(finish(query, respond), ({ result, sent, forgotten }) => [
      result._tag === "Failure" && [result.failure._tag, result.failure.message],
      sent.length,
      forgotten,
    ])

  it.effect("exchanges the code with the verifier, and keeps a token that can be refreshed", () =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const { result, sent, forgotten } = yield* finish(`code=abc&iss=${encodeURIComponent(service)}`)
      expect(Object.fromEntries(new URLSearchParams(sent[0]!.body))).toEqual({
        grant_type: "authorization_code",
        code: "abc",
        client_id: "app",
        client_secret: "app secret",
        redirect_uri: "https://api.example/back",
        scope: "read write",
        code_verifier: "verifier",
      })
      expect(sent[1]!.headers["authorization"]).toBe("Bearer token")
      const kept = result._tag === "Success" ? Redacted.value(result.success.credential) : ""
      expect(JSON.parse(kept)).toEqual({ token: "token", application, refresh: "next", ends: now + 100_000 })
      expect(forgotten).toEqual([])
      // A server without PKCE and without metadata.
      const plain = yield* finish("code=abc&iss=https://other.example", usual, { service, application })
      expect([plain.result._tag, plain.sent[0]!.body.includes("verifier")]).toEqual(["Success", false])
    }),
  )

  it.effect("without a code says why, and sends nothing", () =>
    Effect.gen(function* () {
      for (const [query, message] of [
        ["error=access_denied&error_description=Not today", "Not today"],
        ["error=access_denied", "The account holder denied access."],
        ["error=server_error&code=abc", "server_error"],
        ["state=x", "The redirect contains no authorization code."],
      ] as const)
        expect(yield* refusal(query)).toEqual([["CredentialRefused", message], 0, []])
    }),
  )

  it.effect("from another server is refused before the code is sent anywhere", () =>
    Effect.gen(function* () {
      const message = "The redirect comes from another server than the authorization."
      expect(yield* refusal("code=abc&iss=https://evil.example")).toEqual([["CredentialRefused", message], 0, []])
    }),
  )

  it.effect("with a used code is refused; an application that the server removed is registered anew next time", () =>
    Effect.gen(function* () {
      const token =
        (status: number): Respond =>
        () => ({ status, body: { error: "no" } })
      expect(yield* refusal("code=abc", token(400))).toEqual([["CredentialRefused", "no"], 1, []])
      expect(yield* refusal("code=abc", token(401))).toEqual([["CredentialRefused", "no"], 1, [service]])
      expect(yield* refusal("code=abc", token(500))).toEqual([["PlatformUnreachable", "no"], 1, []])
    }),
  )
})

describe("a token that expires", () => {
  const application = { id: "app", secret: "app secret" }
  const using = (ends: number | undefined, refresh: string | undefined, later?: object) => {
    const { visit, sent } = visiting(({ url }) =>
      url.endsWith("/oauth/token") ? { body: { access_token: "second", expires_in: 60 } } : { body: {} },
    )
    const kept = {
      token: "first",
      application,
      ...(refresh === undefined ? {} : { refresh }),
      ...(ends === undefined ? {} : { ends }),
    }
    let current: object = kept
    const stored: Array<object> = []
    const session = {
      ...visit,
      account: { service },
      credential: Effect.sync(() => Redacted.make(JSON.stringify(current))),
      // Another call may have refreshed the token while this one waited for the lock.
      exclusively: <A, E>(run: Effect.Effect<A, E>) => Effect.suspend(() => ((current = later ?? current), run)),
      storeCredential: (next: Redacted.Redacted<string>) =>
        Effect.sync(() => void stored.push(JSON.parse(Redacted.value(next)))),
    } as unknown as Session
    const run = Credentials.asAccount(session, ({ api }) => api.v1.accounts.verifyCredentials())
    return Effect.map(Effect.exit(run), (exit) => ({
      exit,
      tokens: sent.map(({ url, headers }) => headers["authorization"] ?? url.slice(service.length)),
      stored,
      body: sent[0]?.body,
    }))
  }

  it.effect("is used until a minute before its end, and refreshed once then", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_000_000)
      expect(yield* using(undefined, undefined)).toMatchObject({ tokens: ["Bearer first"], stored: [] })
      expect(yield* using(1_060_001, "next")).toMatchObject({ tokens: ["Bearer first"], stored: [] })
      const refreshed = yield* using(1_060_000, "next")
      expect(refreshed).toMatchObject({ exit: { _tag: "Success" }, tokens: ["/oauth/token", "Bearer second"] })
      expect(Object.fromEntries(new URLSearchParams(refreshed.body))).toEqual({
        grant_type: "refresh_token",
        client_id: "app",
        client_secret: "app secret",
        refresh_token: "next",
      })
      // The server named no new refresh token, so the former one stays.
      expect(refreshed.stored).toEqual([{ token: "second", application, refresh: "next", ends: 1_060_000 }])
      const other = { token: "third", application, refresh: "next", ends: 9_000_000 }
      expect(yield* using(1_000_000, "next", other)).toMatchObject({ tokens: ["Bearer third"], stored: [] })
    }),
  )

  it.effect("without a refresh token ends the connection", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_000_000)
      const { exit, tokens } = yield* using(1_000_000, undefined)
      expect([
        exit._tag === "Failure" && exit.cause.reasons.map((reason) => "error" in reason && reason.error),
        tokens,
      ]).toEqual([[new CredentialRefused({ message: "The access token has expired." })], []])
    }),
  )
})
