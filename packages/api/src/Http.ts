/**
 * The HTTP edge as a whole: the API's endpoints, the plain pages, and what holds for every answer (request id, no
 * sniffing, no caching of credentialed answers, problems for paths and methods that do not exist).
 */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { MethodNotAllowed, NotFound } from "@svc/domain/problems/Problem"
import { ByteSize, Context, Effect, Layer, type Option, References } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as Account from "./account/Account.ts"
import * as ApiKeys from "./account/ApiKeys.ts"
import * as Authorization from "./account/Authorization.ts"
import * as Devices from "./account/Devices.ts"
import * as Session from "./account/Session.ts"
import * as SignIn from "./account/SignIn.ts"
import * as Cards from "./card/Cards.ts"
import * as Profiles from "./card/Profiles.ts"
import { applyTag } from "./EntityTags.ts"
import * as Events from "./events/Events.ts"
import { Exchange, makeExchange } from "./Exchange.ts"
import * as Health from "./health/Health.ts"
import * as Handles from "./identity/Handles.ts"
import * as Identities from "./identity/Identities.ts"
import { type Networks, TrustedProxies } from "./limits/ClientAddress.ts"
import * as MailSettings from "./mail/MailSettings.ts"
import * as Messages from "./mail/Messages.ts"
import * as Mcp from "./mcp/Mcp.ts"
import * as OpenApi from "./openapi/OpenApi.ts"
import * as DevicePage from "./pages/DevicePage.ts"
import * as MagicLinkPage from "./pages/MagicLinkPage.ts"
import * as ProblemPages from "./pages/ProblemPages.ts"
import * as ProfilePage from "./pages/ProfilePage.ts"
import * as Public from "./public/Public.ts"
import * as ProblemRendering from "./problems/ProblemRendering.ts"
import { render } from "./problems/Render.ts"
import { makeRequestId, RequestId } from "./RequestId.ts"
import { entryOf, RequestLog } from "./RequestLog.ts"
import * as Tunnels from "./tunnel/Tunnels.ts"
import * as Vault from "./vault/Vault.ts"
import * as Webhooks from "./webhooks/Webhooks.ts"

/** Bodies over this are refused (decisions.md "General conventions"). */
const maxBody = ByteSize.mebibytes(1)

const endpoints = (settings: HttpSettings) =>
  HttpApiBuilder.layer(Api).pipe(
    Layer.provide([
      Health.layer,
      SignIn.layer,
      Session.layer,
      Account.account,
      Account.exportsGroup,
      Devices.login,
      Devices.confirmation,
      ApiKeys.layer,
      Handles.layer,
      Identities.layer,
      Cards.layer,
      Profiles.layer,
    ]),
    Layer.provide([
      Messages.layer,
      MailSettings.layer,
      Webhooks.layer,
      Events.layer,
      Tunnels.layer,
      Vault.layer,
      Public.layer({ to: settings.contactTo }),
    ]),
    Layer.provide([Authorization.layer, ProblemRendering.layer]),
  )

export interface HttpSettings {
  /** Who reads what the contact form sends. */
  readonly contactTo: Option.Option<string>
  /** Proxies whose word on the client's address is taken. */
  readonly trustedProxies: Networks
}

/** Every answer carries its request id, and nothing that took a credential is kept by a cache. */
const everywhere = (settings: HttpSettings) =>
  HttpRouter.middleware(
    (answer) =>
      Effect.gen(function* () {
        const startedAt = performance.now()
        const request = yield* HttpServerRequest.HttpServerRequest
        const log = yield* RequestLog
        const requestId = yield* makeRequestId
        const exchange = makeExchange(requestId)
        // One context for all: each call of `provideService` would cost a layer of it on every request.
        const answered = yield* Effect.provideContext(
          answer,
          Context.make(Exchange, exchange).pipe(
            Context.add(References.CurrentLogAnnotations, { request_id: requestId }),
            Context.add(TrustedProxies, settings.trustedProxies),
            Context.add(HttpIncomingMessage.MaxBodySize, maxBody),
          ),
        )
        if (exchange.settle !== undefined) yield* exchange.settle(answered)
        const response = applyTag(exchange, request.method, request.headers["if-none-match"], answered)
        const headers: Record<string, string> = {
          ...exchange.headers,
          "request-id": requestId,
          "x-content-type-options": "nosniff",
        }
        if (request.headers["authorization"] !== undefined) headers["cache-control"] = "no-store"
        if (log !== undefined) {
          log(entryOf(request, exchange.route, response.status, startedAt, requestId))
        }
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
      Effect.map(RequestId, (requestId) => {
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

export const layer = (settings: HttpSettings) =>
  HttpRouter.serve(
    Layer.mergeAll(
      endpoints(settings),
      OpenApi.layer,
      Mcp.layer,
      ProblemPages.layer,
      ProfilePage.layer,
      DevicePage.layer,
      ...MagicLinkPage.layers,
      Elsewhere,
    ).pipe(Layer.provide(everywhere(settings))),
    { disableLogger: true, disableListenLog: true },
  )
