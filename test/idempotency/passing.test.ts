/** Responses that do not consume an `Idempotency-Key`: the same key may be used again for the request. */
import * as Idempotency from "@svc/api/idempotency/Idempotency"
import { makeRequestContext, RequestContext } from "@svc/api/RequestContext"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { storesLayer } from "../harness/Stores.ts"

// The handler reads only the id of the credential.
const caller = { credentialId: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99" } as CallerInfo

/** Answers a request with a status, and returns whether a repeat with the same key runs again. */
const runsAgain = Effect.fnUntraced(function* (status: number, body: object = {}) {
  const withKey = yield* Idempotency.make
  let runs = 0
  const handler = Effect.sync(() => {
    runs++
    return HttpServerResponse.jsonUnsafe(body, { status })
  })
  for (let request = 0; request < 2; request++) {
    const exchange = makeRequestContext()
    const web = new Request("http://localhost/api/keys", {
      method: "POST",
      headers: { "idempotency-key": JSON.stringify([status, body]).replaceAll('"', "") },
      body: "{}",
    })
    const response = yield* withKey(handler, caller, false).pipe(
      Effect.provideService(HttpServerRequest.HttpServerRequest, HttpServerRequest.fromWeb(web)),
      Effect.provideService(RequestContext, exchange),
    )
    yield* exchange.settle?.(response) ?? Effect.void
  }
  return runs === 2
})

layer(storesLayer)("An Idempotency-Key", (it) => {
  it.effect("is not consumed by malformed requests, invalid credentials, limits and refusals that say to wait", () =>
    Effect.gen(function* () {
      for (const status of [400, 401, 429]) expect([status, yield* runsAgain(status)]).toEqual([status, true])
      expect(yield* runsAgain(409, { agent_hint: "wait" })).toBe(true)
      for (const status of [201, 204, 403, 404, 409])
        expect([status, yield* runsAgain(status)]).toEqual([status, false])
      expect(yield* runsAgain(409, { agent_hint: "stop" })).toBe(false)
    }),
  )
})
