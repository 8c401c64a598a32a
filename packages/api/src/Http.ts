/**
 * The HTTP edge as a whole: the API's endpoints, the plain pages, and what holds for every answer (request id, no
 * sniffing, no caching of credentialed answers, problems for paths and methods that do not exist).
 */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { MethodNotAllowed, NotFound } from "@svc/domain/problems/Problem"
import { ByteSize, Effect, Layer } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as ApiKeys from "./account/ApiKeys.ts"
import * as Authorization from "./account/Authorization.ts"
import * as Session from "./account/Session.ts"
import * as SignIn from "./account/SignIn.ts"
import * as Events from "./events/Events.ts"
import * as Health from "./health/Health.ts"
import * as Handles from "./identity/Handles.ts"
import * as Identities from "./identity/Identities.ts"
import * as Messages from "./mail/Messages.ts"
import * as MagicLinkPage from "./pages/MagicLinkPage.ts"
import * as ProblemPages from "./pages/ProblemPages.ts"
import * as ProblemRendering from "./problems/ProblemRendering.ts"
import { render } from "./problems/Render.ts"
import { makeRequestId, RequestId } from "./RequestId.ts"
import * as Webhooks from "./webhooks/Webhooks.ts"

/** Bodies over this are refused (decisions.md "General conventions"). */
const maxBody = ByteSize.mebibytes(1)

const Endpoints = HttpApiBuilder.layer(Api).pipe(
  Layer.provide([
    Health.layer,
    SignIn.layer,
    Session.layer,
    ApiKeys.layer,
    Handles.layer,
    Identities.layer,
    Messages.layer,
    Webhooks.layer,
    Events.layer,
  ]),
  Layer.provide([Authorization.layer, ProblemRendering.layer]),
)

/** Every answer carries its request id, and nothing that took a credential is kept by a cache. */
const Everywhere = HttpRouter.middleware(
  (answer) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const requestId = yield* makeRequestId
      const response = yield* answer.pipe(
        Effect.provideService(RequestId, requestId),
        Effect.provideService(HttpIncomingMessage.MaxBodySize, maxBody),
        Effect.annotateLogs("request_id", requestId),
      )
      const headers: Record<string, string> = { "request-id": requestId, "x-content-type-options": "nosniff" }
      if (request.headers["authorization"] !== undefined) headers["cache-control"] = "no-store"
      return HttpServerResponse.setHeaders(response, headers)
    }),
  { global: true },
)

/** The methods of every path the API has, as matchers of concrete paths. */
const knownPaths = Object.values(Api.groups).flatMap((group) =>
  Object.values(group.endpoints).map((endpoint) => ({
    method: endpoint.method as string,
    matches: new RegExp(`^${endpoint.path.replace(/:[A-Za-z]+/g, "[^/]+")}$`),
  })),
)

/** What no route took: a path that does not exist, or one that does not have this method. */
const Elsewhere = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    yield* router.add("*", "/*", (request) =>
      Effect.map(Effect.service(RequestId), (requestId) => {
        const path = request.url.split("?")[0]!
        const allowed = knownPaths.filter(({ matches }) => matches.test(path)).map(({ method }) => method)
        return allowed.length === 0
          ? render(book, requestId, new NotFound({ detail: "There is no such path." }))
          : HttpServerResponse.setHeader(
              render(book, requestId, new MethodNotAllowed({ detail: `The path has ${allowed.join(", ")}.` })),
              "allow",
              allowed.join(", "),
            )
      }),
    )
  }),
)

export const layer = HttpRouter.serve(
  Layer.mergeAll(Endpoints, ProblemPages.layer, ...MagicLinkPage.layers, Elsewhere).pipe(Layer.provide(Everywhere)),
  { disableLogger: true, disableListenLog: true },
)
