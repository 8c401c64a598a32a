/** Responses that do not consume an `Idempotency-Key`: the same key may be used again for the request. */
import * as Idempotency from "@svc/api/idempotency/Idempotency"
import { Audit } from "@svc/cluster/audit/Audit"
import { makeRequestContext, RequestContext } from "@svc/api/RequestContext"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { act } from "../audit/Acts.ts"
import { makeOrg, storesLayer } from "../harness/Stores.ts"

// The handler reads only the id of the credential.
const caller = { credentialId: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99" } as CallerInfo

/** Answers a request and its repeat with a status, and returns whether both ran, and what the repeat was answered. */
const repeated = Effect.fnUntraced(function* (
  status: number,
  body: object = {},
  {
    equalTo,
    key,
    secret = false,
    methods = ["POST", "POST"],
    paths = ["keys", "keys"],
  }: {
    readonly equalTo?: string
    readonly key?: string
    readonly secret?: boolean
    readonly methods?: readonly [first: string, second: string]
    readonly paths?: readonly [first: string, second: string]
  } = {},
) {
  const withKey = yield* Idempotency.make
  let runs = 0
  const handler = Effect.sync(() => {
    runs++
    return HttpServerResponse.jsonUnsafe(body, { status })
  })
  let last: number | string = 0
  for (let request = 0; request < 2; request++) {
    const exchange = makeRequestContext("req_1", undefined, equalTo)
    const web = new Request(`http://localhost/api/${paths[request]}`, {
      method: methods[request]!,
      headers:
        equalTo !== undefined && key === undefined
          ? {}
          : { "idempotency-key": key ?? JSON.stringify([status, body]).replaceAll('"', "") },
      body: "{}",
    })
    const response = yield* Effect.result(
      withKey(handler, caller, secret).pipe(
        Effect.provideService(HttpServerRequest.HttpServerRequest, HttpServerRequest.fromWeb(web)),
        Effect.provideService(RequestContext, exchange),
      ),
    )
    if (response._tag === "Success") yield* exchange.settle?.(response.success) ?? Effect.void
    last = response._tag === "Success" ? response.success.status : response.failure.code
  }
  return { again: runs === 2, last }
})
const runsAgain = (status: number, body: object = {}) => Effect.map(repeated(status, body), ({ again }) => again)

layer(Audit.layer({ addresses: "none" }).pipe(Layer.provideMerge(storesLayer)))("An Idempotency-Key", (it) => {
  it.effect("is not consumed by malformed requests, invalid credentials, limits and refusals that say to wait", () =>
    Effect.gen(function* () {
      for (const status of [400, 401, 429]) expect([status, yield* runsAgain(status)]).toEqual([status, true])
      expect(yield* runsAgain(409, { agent_hint: "wait" })).toBe(true)
      for (const status of [201, 204, 403, 404, 409])
        expect([status, yield* runsAgain(status)]).toEqual([status, false])
      expect(yield* runsAgain(409, { agent_hint: "stop" })).toBe(false)
      for (const status of [500, 503]) expect([status, yield* runsAgain(status)]).toEqual([status, true])
    }),
  )

  it.effect("is not consumed by a body that cannot be read", () =>
    Effect.gen(function* () {
      const withKey = yield* Idempotency.make
      const asked = (body: ReadableStream | string) => {
        const init = { method: "POST", headers: { "idempotency-key": "unread" }, body, duplex: "half" }
        const exchange = makeRequestContext("req_1", undefined, undefined)
        const answer = Effect.sync(() => HttpServerResponse.jsonUnsafe({}, { status: 413 }))
        return withKey(answer, caller, false).pipe(
          Effect.tap((response) => exchange.settle?.(response) ?? Effect.void),
          Effect.provideService(
            HttpServerRequest.HttpServerRequest,
            HttpServerRequest.fromWeb(new Request("http://localhost/api/keys", init)),
          ),
          Effect.provideService(RequestContext, exchange),
        )
      }
      expect((yield* asked(new ReadableStream({ start: (body) => body.error(new Error("cut")) }))).status).toBe(413)
      expect((yield* asked("{}")).status).toBe(413)
    }),
  )

  it.effect("of an interrupted request repeats it on its condition, unless the change is on record", () =>
    Effect.gen(function* () {
      const withKey = yield* Idempotency.make
      const audit = yield* Audit
      const change = act(yield* makeOrg, { action: "test.interrupted" })
      const ask = (status: number) => {
        const exchange = makeRequestContext("req_1")
        exchange.act = () => change
        const init = { method: "POST", headers: { "idempotency-key": "cut", "if-match": '"v1"' }, body: "{}" }
        const handler = Effect.gen(function* () {
          const { headers, json } = yield* HttpServerRequest.HttpServerRequest
          expect(yield* json).toEqual({})
          const { resumed } = yield* RequestContext
          return HttpServerResponse.jsonUnsafe({ resumed, condition: headers["if-match"] }, { status })
        })
        return withKey(handler, caller, false).pipe(
          Effect.tap((response) => exchange.settle?.(response) ?? Effect.void),
          Effect.map((response) => [HttpServerResponse.toWeb(response), exchange.commandId] as const),
          Effect.flatMap(([web, command]) => Effect.promise(async () => [await web.json(), command] as const)),
          Effect.provideService(
            HttpServerRequest.HttpServerRequest,
            HttpServerRequest.fromWeb(new Request("http://localhost/api/keys", init)),
          ),
          Effect.provideService(RequestContext, exchange),
        )
      }
      const onCondition = { resumed: false, condition: '"v1"' }
      const [first, command] = yield* ask(503)
      expect(first).toEqual(onCondition)
      expect(yield* ask(503)).toEqual([onCondition, command])
      yield* audit.record({ ...change, command, outcome: "refused", code: "conflict" })
      expect(yield* ask(503)).toEqual([onCondition, command])
      yield* audit.record({ ...change, command })
      expect(yield* ask(200)).toEqual([{ resumed: true }, command])
    }),
  )

  it.effect("belongs to one method of a path", () =>
    Effect.gen(function* () {
      expect(yield* repeated(200, {}, { key: "m1", methods: ["PUT", "PUT"] })).toMatchObject({ again: false })
      expect(yield* repeated(200, {}, { key: "m2", methods: ["PUT", "PATCH"] })).toMatchObject({ again: true })
      expect(yield* repeated(200, {}, { key: "m3", paths: ["keys", "webhooks"] })).toMatchObject({ again: true })
    }),
  )

  it.effect("has at most 255 characters", () =>
    Effect.gen(function* () {
      expect(yield* repeated(200, {}, { key: "k".repeat(255) })).toEqual({ again: false, last: 200 })
      expect(yield* repeated(200, {}, { key: "k".repeat(256) })).toEqual({ again: false, last: "invalid_request" })
    }),
  )

  it.effect("of a response with a secret repeats a refusal, but never the secret", () =>
    Effect.gen(function* () {
      const secret = true
      expect(yield* repeated(404, {}, { secret, key: "s1" })).toEqual({ again: false, last: 404 })
      expect(yield* repeated(201, {}, { secret, key: "s2" })).toEqual({ again: false, last: "conflict" })
    }),
  )

  it.effect("that a tool call lacks is made from its arguments, and a refusal does not use it up", () =>
    Effect.gen(function* () {
      expect(yield* repeated(201, {}, { equalTo: "equal 1" })).toEqual({ again: false, last: 201 })
      expect(yield* repeated(404, {}, { equalTo: "equal 2" })).toEqual({ again: true, last: 404 })
      expect(yield* repeated(404, {}, { equalTo: "equal 3", key: "own" })).toEqual({ again: false, last: 404 })
    }),
  )
})
