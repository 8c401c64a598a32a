/** What no endpoint renders: a page, or a protocol beside the API, that ends in a defect. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { everywhere } from "@svc/api/Http"
import * as Serving from "@svc/api/http/Serving"
import { type RequestEntry, RequestLog } from "@svc/api/RequestLog"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Addresses } from "@svc/domain/Addresses"
import { expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { freePort } from "../harness/Ports.ts"

it.live("a defect of a page is a problem with its request id, in the log, and tells nothing", () =>
  Effect.gen(function* () {
    const port = yield* Effect.promise(freePort)
    const base = `http://127.0.0.1:${port}`
    const lines: Array<RequestEntry> = []
    const page = HttpRouter.add("GET", "/terms", Effect.die(new Error("a secret of the program")))
    const listener = NodeHttpServer.layerServer(createServer, { host: "127.0.0.1", port })
    yield* Layer.build(
      Serving.serve(Layer.provide(page, everywhere), Context.empty(), listener).pipe(
        Layer.provide([
          Layer.succeed(Addresses, { baseUrl: base } as Addresses["Service"]),
          Layer.mock(CredentialLookup)({}),
          Layer.succeed(RequestLog, (entry) => void lines.push(entry)),
        ]),
      ),
    )
    const answer = yield* Effect.promise(() => fetch(`${base}/terms`))
    const text = yield* Effect.promise(() => answer.text())
    expect([answer.status, answer.headers.get("content-type")]).toEqual([500, "application/problem+json"])
    expect(JSON.parse(text)).toMatchObject({ code: "internal", instance: answer.headers.get("request-id") })
    expect(text).not.toContain("secret")
    expect(lines).toMatchObject([{ route: "/terms", status: 500 }])
  }),
)
