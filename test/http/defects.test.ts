/** Defects outside the API's endpoints: pages and other protocols. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { everywhere } from "@svc/api/Http"
import * as RequestServices from "@svc/api/http/RequestServices"
import { Paths } from "@svc/api/http/Routing"
import { type RequestEntry, RequestLog } from "@svc/api/RequestLog"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Addresses } from "@svc/domain/Addresses"
import { Unavailable } from "@svc/domain/problems/Problem"
import { expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger } from "effect"
import { HttpRouter } from "effect/http"
import { freePort } from "../harness/Ports.ts"

/** Serves one page, and returns the response to a request and the log entries. */
const served = Effect.fnUntraced(function* (
  page: Effect.Effect<never>,
  request: RequestInit = {},
  credentials: Partial<CredentialLookup["Service"]> = {},
) {
  const port = yield* Effect.promise(freePort)
  const base = `http://127.0.0.1:${port}`
  const lines: Array<RequestEntry> = []
  const listener = NodeHttpServer.layerServer(createServer, { host: "127.0.0.1", port })
  yield* Layer.build(
    RequestServices.serve(
      Layer.provide(HttpRouter.add("*", "/terms", page), everywhere),
      Context.empty(),
      listener,
    ).pipe(
      Layer.provide([
        Layer.succeed(Addresses, { baseUrl: base } as Addresses["Service"]),
        Layer.mock(CredentialLookup)(credentials),
        Paths.layer,
        Layer.succeed(RequestLog, (entry) => void lines.push(entry)),
      ]),
    ),
  )
  const answer = yield* Effect.promise(() => fetch(`${base}/terms`, request))
  return { answer, text: yield* Effect.promise(() => answer.text()), lines }
})

it.live("an interrupted page responds with a retryable problem", () =>
  Effect.gen(function* () {
    const { answer, text } = yield* served(Effect.interrupt)
    expect([answer.status, answer.headers.get("content-type"), answer.headers.get("retry-after")]).toEqual([
      503,
      "application/problem+json",
      "1",
    ])
    expect(JSON.parse(text)).toMatchObject({ code: "unavailable", agent_hint: "wait" })
  }),
)

it.live("a defect of a page is logged and reveals only its request id", () =>
  Effect.gen(function* () {
    const logged: Array<unknown> = []
    const logger = Logger.make(({ cause, message }) => void logged.push([message, String(cause)]))
    const { answer, text, lines } = yield* Effect.provide(
      served(Effect.die(new Error("a secret of the program"))),
      Logger.layer([logger]),
    )
    expect(JSON.stringify(logged)).toContain("a secret of the program")
    expect([answer.status, answer.headers.get("content-type")]).toEqual([500, "application/problem+json"])
    expect(JSON.parse(text)).toMatchObject({ code: "internal", instance: answer.headers.get("request-id") })
    expect(text).not.toContain("secret")
    expect(lines).toMatchObject([{ route: "/terms", status: 500 }])
  }),
)

it.live("a large body is not read while its credential cannot be looked up, and the response asks to wait", () =>
  Effect.gen(function* () {
    const unavailable = new Unavailable({ detail: "The database did not respond in time." })
    const { answer, text } = yield* served(
      Effect.die(new Error("reached")),
      { method: "POST", headers: { authorization: "Bearer svc_id_x" }, body: "x".repeat(70_000) },
      { resolve: () => Effect.fail(unavailable) },
    )
    expect([answer.status, JSON.parse(text)]).toMatchObject([503, { code: "unavailable", agent_hint: "wait" }])
  }),
)
