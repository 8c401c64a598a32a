/** Responses of platforms and errors of their libraries, translated to failures. There is no server. */
import { XRPCError } from "@atproto/api"
import {
  DidError,
  HandleResolverError,
  OAuthCallbackError,
  OAuthResolverError,
  OAuthResponseError,
  TokenInvalidError,
  TokenRefreshError,
  TokenRevokedError,
} from "@atproto/oauth-client-node"
import * as LibraryFetch from "@svc/cluster/connectors/platforms/bluesky/LibraryFetch"
import { CredentialRefused, Halted } from "@svc/cluster/connectors/platforms/Failure"
import * as PlatformHttp from "@svc/cluster/connectors/platforms/PlatformHttp"
import { type RequestFailed } from "@svc/cluster/net/GuardedClient"
import { unrestricted } from "@svc/cluster/net/SendPermission"
import { Unavailable } from "@svc/domain/problems/Problem"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"

interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string
}
const clientOf = (answer: () => Answer | { readonly error: RequestFailed["error"] }) => {
  const sent: Array<Record<string, unknown>> = []
  const http = PlatformHttp.make(
    {
      ask: (url: URL, asked: object) =>
        Effect.suspend(() => {
          sent.push({ url: url.href, ...asked })
          const found = answer()
          if ("error" in found) return Effect.fail({ _tag: "RequestFailed", error: found.error })
          const { status = 200, headers = {}, body = "" } = found
          return Effect.succeed({ status, headers: new Headers(headers), body: Buffer.from(body) })
        }),
      listen: (url: URL, listening: object) =>
        Effect.suspend(() => {
          sent.push({ url: url.href, ...listening })
          const found = answer()
          return Effect.fail(
            "error" in found
              ? { _tag: "RequestFailed", error: found.error }
              : { _tag: "NotOpened", status: found.status },
          )
        }),
    } as never,
    unrestricted,
  )
  return { http, sent }
}
const now = Date.parse("2026-11-25T12:00:00.000Z")
const url = "https://platform.example/x"

describe("a request to a platform", () => {
  it.effect("sends the given method, headers and body, and limits the response", () =>
    Effect.gen(function* () {
      const { http, sent } = clientOf(() => ({}))
      yield* http.request(url)
      yield* http.request(url, { method: "PUT", headers: { accept: "text/x", a: "b" }, body: "text", atMost: 7 })
      expect(sent).toEqual([
        {
          url,
          method: "GET",
          headers: { accept: "application/json", "user-agent": "agent-identity-service" },
          body: undefined,
          atMost: 1024 * 1024,
        },
        {
          url,
          method: "PUT",
          headers: { accept: "text/x", "user-agent": "agent-identity-service", a: "b" },
          body: "text",
          atMost: 7,
        },
      ])
      for (const call of [http.request("http://["), http.listen("http://[", {} as never)])
        expect(yield* Effect.flip(call)).toMatchObject({
          _tag: "PlatformUnreachable",
          message: "The address is not valid.",
        })
      expect(sent).toHaveLength(2)
    }),
  )

  it.effect.each([
    ["timeout", "platform.example did not respond in time."],
    ["dns", "platform.example has no address."],
    ["refused_address", "platform.example is not a public https address."],
    ["tls", "platform.example has no valid certificate."],
    ["connection", "platform.example cannot be reached."],
    ["too_large", "platform.example sent a response that is too large."],
  ] as const)("without a response says why: %s", ([error, message]) =>
    Effect.gen(function* () {
      const { http } = clientOf(() => ({ error }))
      for (const call of [http.request(url), http.listen(url, {} as never)])
        expect(yield* Effect.flip(call)).toMatchObject({ _tag: "PlatformUnreachable", message })
    }),
  )

  it.effect("fails if the server opens no stream", () =>
    Effect.gen(function* () {
      const { http, sent } = clientOf(() => ({ status: 404 }))
      expect(yield* Effect.flip(http.listen(url, { headers: { a: "b" } } as never))).toMatchObject({
        _tag: "Unsupported",
        message: "platform.example opens no stream: it responded with 404.",
      })
      expect(sent).toEqual([{ url, headers: { "user-agent": "agent-identity-service", a: "b" } }])
    }),
  )

  /** The response, whether it is a refusal, and the seconds until the next request. */
  it.effect.each<[number, Record<string, string>, boolean, number | undefined]>([
    [200, {}, false, undefined],
    [200, { "retry-after": "10" }, false, undefined],
    [200, { "x-ratelimit-remaining": "1", "x-ratelimit-reset": "2026-11-25T12:00:30.000Z" }, false, undefined],
    [200, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "2026-11-25T12:00:30.000Z" }, false, 30],
    [200, { "ratelimit-remaining": " 0 ", "ratelimit-reset": String(now / 1000 + 40) }, false, 40],
    [200, { "ratelimit-remaining": "0", "ratelimit-reset": "50" }, false, 50],
    [200, { "ratelimit-remaining": "0" }, false, undefined],
    [200, { "ratelimit-remaining": "none", "ratelimit-reset": "50" }, false, undefined],
    [429, {}, true, 60],
    [429, { "retry-after": "soon" }, true, 60],
    [429, { "retry-after": "5" }, true, 5],
    [
      429,
      { "retry-after": "Wed, 25 Nov 2026 12:00:20 GMT", "x-ratelimit-reset": "2026-11-25T12:00:30.000Z" },
      true,
      20,
    ],
    [429, { "x-ratelimit-reset": "2026-11-25T12:00:30.000Z" }, true, 30],
    // A time in the past is no reason to wait; the longest wait is an hour.
    [429, { "retry-after": "0" }, true, undefined],
    [429, { "retry-after": "Wed, 25 Nov 2026 11:00:00 GMT" }, true, undefined],
    [429, { "retry-after": "3600" }, true, 3_600],
    [429, { "retry-after": "3601" }, true, 3_600],
    [503, { "retry-after": "5" }, true, 5],
    [503, { "retry-after": "0" }, false, undefined],
    [503, {}, false, undefined],
    [500, { "retry-after": "5" }, false, undefined],
  ])("with %s and %j is limited as it says", ([status, headers, refused, seconds]) =>
    Effect.gen(function* () {
      yield* TestClock.setTime(now)
      const { http } = clientOf(() => ({ status, headers }))
      const until = seconds === undefined ? undefined : new Date(now + seconds * 1000)
      const result = yield* Effect.result(http.request(url))
      if (refused) expect(result).toMatchObject({ failure: { _tag: "PlatformRateLimited", until: until ?? null } })
      else expect(result).toMatchObject({ success: { status } })
      expect(http.quietUntil()).toEqual(until)
    }),
  )

  it("by a library returns every response unchanged, except those that `Response` cannot represent", async () => {
    for (const [status, shown, body] of [
      [200, 200, "text"],
      [204, 204, ""],
      [205, 205, ""],
      [302, 302, "text"],
      [304, 304, ""],
      [429, 429, "text"],
      [101, 502, "text"],
    ] as const) {
      const { http, sent } = clientOf(() => ({ status, headers: { a: "b", location: "/y" }, body: "text" }))
      const response = await http.fetch(url, { method: "POST", body: "sent", headers: { c: "d" } })
      expect([response.status, response.url, response.headers.get("a"), await response.text()]).toEqual([
        shown,
        url,
        "b",
        body,
      ])
      expect([sent.length, sent[0]!["method"], Buffer.from(sent[0]!["body"] as Uint8Array).toString()]).toEqual([
        1,
        "POST",
        "sent",
      ])
      expect(sent[0]!["headers"]).toMatchObject({ c: "d" })
    }
    const { http, sent } = clientOf(() => ({}))
    await http.fetch(url)
    expect(sent[0]!["body"]).toBeUndefined()
    await expect(clientOf(() => ({ error: "dns" })).http.fetch(url)).rejects.toMatchObject({
      _tag: "PlatformUnreachable",
    })
  })
})

it("A request of a library ends with the signal of the library", { timeout: 10_000 }, async () => {
  const interrupted = Promise.withResolvers<void>()
  const silent = { ask: () => Effect.onInterrupt(Effect.never, () => Effect.sync(interrupted.resolve)) }
  const library = new AbortController()
  const response = PlatformHttp.make(silent as never, unrestricted).fetch(url, { signal: library.signal })
  library.abort()
  await expect(response).rejects.toThrow()
  await interrupted.promise
})

describe("an error of the library for Bluesky", () => {
  const library = (answer: () => Answer = () => ({})) => LibraryFetch.make(clientOf(answer).http)
  const failing = (thrown: unknown) =>
    Effect.flatMap(library(), ({ call }) => Effect.flip(call(() => Promise.reject(thrown))))
  const oauth = (status: number, error: string | undefined, description?: string) =>
    new OAuthResponseError(new Response("", { status }), {
      ...(error === undefined ? {} : { error }),
      ...(description === undefined ? {} : { error_description: description }),
    } as never)
  const callback = (query: string) => new OAuthCallbackError(new URLSearchParams(query))
  const xrpc = (status: number, error: string, message = "the message") => new XRPCError(status, error, message)
  const circular = new Error("circular")
  circular.cause = circular

  it.effect.each<[string, unknown, Record<string, unknown>]>([
    ["a refused refresh", new TokenRefreshError("did", "no"), { _tag: "CredentialRefused", message: "no" }],
    ["a revoked token", new TokenRevokedError("did", "revoked"), { _tag: "CredentialRefused", message: "revoked" }],
    ["an invalid token", new TokenInvalidError("did", "invalid"), { _tag: "CredentialRefused", message: "invalid" }],
    [
      "a denied authorization",
      callback("error=access_denied"),
      { _tag: "CredentialRefused", message: "access_denied" },
    ],
    [
      "a described denial",
      callback("error=login_required&error_description=Sign in"),
      { _tag: "CredentialRefused", message: "Sign in" },
    ],
    [
      "another error of the redirect",
      callback("error=server_error"),
      { _tag: "PlatformRefused", message: "server_error" },
    ],
    ["a redirect without an error", callback("state=x"), { _tag: "PlatformUnreachable" }],
    [
      "an OAuth server that is down",
      oauth(500, "invalid_grant", "down"),
      { _tag: "PlatformUnreachable", message: "down" },
    ],
    ["an invalid grant", oauth(400, "invalid_grant", "used"), { _tag: "CredentialRefused", message: "used" }],
    ["another OAuth error", oauth(499, "invalid_client"), { _tag: "PlatformRefused" }],
    ["an OAuth error without a name", oauth(400, undefined), { _tag: "PlatformRefused" }],
    ["an unknown did", new DidError("did:x:y", "unknown", "code"), { _tag: "InputRefused", path: "/account" }],
    [
      "an unknown handle",
      new HandleResolverError("unknown"),
      { _tag: "InputRefused", message: "unknown", path: "/account" },
    ],
    ["a server without OAuth", new OAuthResolverError("none"), { _tag: "InputRefused", message: "none" }],
    ["an expired token", xrpc(400, "ExpiredToken"), { _tag: "CredentialRefused", message: "the message" }],
    ["a taken down account", xrpc(403, "AccountTakedown"), { _tag: "CredentialRefused" }],
    ["a token without the scope", xrpc(401, "InvalidToken", "Bad token scope"), { _tag: "Unsupported" }],
    ["a missing scope", xrpc(403, "InsufficientScope"), { _tag: "Unsupported" }],
    ["a missing record", xrpc(400, "RecordNotFound"), { _tag: "PlatformRefused", missing: true }],
    [
      "a record that could not be located",
      xrpc(400, "InvalidRequest", "Could not locate record"),
      { _tag: "PlatformRefused", missing: true },
    ],
    ["another refusal", xrpc(400, "InvalidRequest"), { _tag: "PlatformRefused", message: "the message" }],
    [
      "the refusal of a service behind the server",
      xrpc(401, "AuthMissing"),
      { _tag: "PlatformUnreachable", message: "the message" },
    ],
    ["a failure of the server", xrpc(500, "InternalServerError"), { _tag: "PlatformUnreachable" }],
    ["a response that the lexicon rejects", xrpc(2, "InvalidResponse"), { _tag: "PlatformUnreachable" }],
    [
      "a cause below it",
      new Error("outer", { cause: new Error("middle", { cause: xrpc(400, "ExpiredToken") }) }),
      { _tag: "CredentialRefused" },
    ],
    [
      "one of several causes",
      new AggregateError([new Error("one"), xrpc(400, "RecordNotFound")]),
      { _tag: "PlatformRefused", missing: true },
    ],
    [
      "our own failure below it",
      new Error("outer", { cause: new Halted({ reason: "moved" }) }),
      { _tag: "Halted", reason: "moved" },
    ],
    ["a circular cause", circular, { _tag: "PlatformUnreachable", message: "circular" }],
    ["anything else", "a text", { _tag: "PlatformUnreachable", message: "a text" }],
  ])("means: %s", ([, thrown, expected]) =>
    Effect.map(failing(thrown), (failure) => expect(failure).toMatchObject(expected)),
  )

  it.effect("of our own store is not reported as a failure of the platform", () =>
    Effect.gen(function* () {
      const problem = new Unavailable({ detail: "down" })
      const { call } = yield* library()
      const exit = yield* Effect.exit(call(() => Promise.reject(new Error("outer", { cause: problem }))))
      expect(exit).toMatchObject({ _tag: "Failure", cause: { reasons: [{ _tag: "Die", defect: problem }] } })
    }),
  )

  it.effect("during a refused request says when to call again, for this call only", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(now)
      let answer: Answer = { status: 429, headers: { "retry-after": "0" } }
      const { call, fetch, quietUntil, unauthorized } = yield* library(() => answer)
      const refused = () => Effect.flip(call(() => fetch(url).then(() => Promise.reject(xrpc(400, "InvalidRequest")))))
      expect(yield* refused()).toMatchObject({ _tag: "PlatformRateLimited", message: "the message", until: null })
      answer = { status: 503, headers: { "retry-after": new Date(Date.now() + 60_000).toUTCString() } }
      const until = (yield* refused()) as unknown as { readonly _tag: string; readonly until: Date }
      expect([until._tag, until.until]).toEqual(["PlatformRateLimited", quietUntil()])
      answer = { status: 401 }
      expect(unauthorized()).toBe(false)
      expect((yield* refused())._tag).toBe("PlatformRefused")
      expect([unauthorized(), quietUntil()]).toEqual([true, until.until])
    }),
  )

  it.effect("is replaced by the cause that the session names", () =>
    Effect.gen(function* () {
      const { call, fail, fetch } = yield* library(() => ({ status: 429 }))
      fail(new CredentialRefused({ message: "the session has ended" }))
      const refused = call(() => fetch(url).then(() => Promise.reject(xrpc(400, "InvalidRequest"))))
      expect(yield* Effect.flip(refused)).toMatchObject({ _tag: "CredentialRefused", message: "the session has ended" })
    }),
  )

  it.effect("names the server whose response has more than 8,000 values", () =>
    Effect.gen(function* () {
      let values = 8_000
      // Quoted characters and the escaped quote are no values.
      const { call, fetch } = yield* library(() => ({ body: `["\\"[,{\\\\",${"1,".repeat(values - 2)}2]` }))
      expect(yield* call(async () => (await fetch(url)).status)).toBe(200)
      values++
      expect(yield* Effect.flip(call(() => fetch(url)))).toMatchObject({
        _tag: "PlatformUnreachable",
        message: "The response of platform.example contains too many values.",
      })
    }),
  )
})
