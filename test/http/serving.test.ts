import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Addresses } from "@svc/domain/Addresses"
import * as RequestServices from "@svc/api/http/RequestServices"
import { expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { freePort } from "../harness/Ports.ts"

it.live("no connection is accepted before the routes exist", () =>
  Effect.gen(function* () {
    const port = yield* Effect.promise(freePort)
    const [began, ready] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const routes = Layer.unwrap(
      Effect.gen(function* () {
        yield* Deferred.succeed(began, undefined)
        yield* Deferred.await(ready)
        return HttpRouter.add("GET", "/", Effect.succeed(HttpServerResponse.text("here")))
      }),
    )
    const listener = NodeHttpServer.layerServer(createServer, { host: "127.0.0.1", port })
    const serving = yield* Effect.forkScoped(
      Layer.build(
        RequestServices.serve(routes, Context.empty(), listener).pipe(
          Layer.provide([Layer.succeed(Addresses, {} as Addresses["Service"]), Layer.mock(CredentialLookup)({})]),
        ),
      ),
    )
    const ask = Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/`).then((response) => response.text()))
    yield* Deferred.await(began)
    expect((yield* Effect.flip(ask)).cause).toMatchObject({ cause: { code: "ECONNREFUSED" } })
    yield* Deferred.succeed(ready, undefined)
    yield* Fiber.join(serving)
    expect(yield* ask).toBe("here")
  }),
)
