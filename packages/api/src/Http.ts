/**
 * The HTTP edge: the API's endpoints, the pages, and the rules for every response: request id, `nosniff`, no caching of
 * authenticated responses, and problems for unknown paths and methods.
 */
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Versions } from "@svc/domain/Versions"
import { Cause, Context, Effect, Layer, type Option, Redacted, References } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse, HttpServerError } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as Account from "./account/Account.ts"
import * as ApiKeys from "./account/ApiKeys.ts"
import * as Authorization from "./account/Authorization.ts"
import { withSession } from "./account/ConsoleSession.ts"
import * as Devices from "./account/Devices.ts"
import * as Session from "./account/Session.ts"
import * as SignIn from "./account/SignIn.ts"
import * as Audit from "./audit/Audit.ts"
import * as Cards from "./card/Cards.ts"
import * as Connectors from "./connectors/Connectors.ts"
import * as Console from "./console/Console.ts"
import * as Leave from "./console/Leave.ts"
import * as MailBody from "./console/MailBody.ts"
import * as MailImages from "./console/MailImages.ts"
import * as Documents from "./documents/Documents.ts"
import { applyTag, withResourceTags } from "./EntityTags.ts"
import * as Events from "./events/Events.ts"
import {
  RequestContext,
  type RequestContextState,
  HandedOn,
  makeRequestContext,
  makeRequestId,
} from "./RequestContext.ts"
import * as Bodies from "./http/Bodies.ts"
import * as RequestServices from "./http/RequestServices.ts"
import * as Health from "./health/Health.ts"
import { compressed } from "./http/Compression.ts"
import * as Routing from "./http/Routing.ts"
import { inOlderForm } from "./http/Translations.ts"
import * as Identities from "./identity/Identities.ts"
import { type Proxies, sourceOf, TrustedProxies } from "./limits/ClientAddress.ts"
import { noteOf } from "./limits/RateLimitHeaders.ts"
import * as Limits from "./usage/Limits.ts"
import * as Overview from "./usage/Overview.ts"
import * as Usage from "./usage/Usage.ts"
import * as MailSettings from "./mail/MailSettings.ts"
import * as Messages from "./mail/Messages.ts"
import * as OrgMail from "./mail/OrgMail.ts"
import * as Sending from "./mail/Sending.ts"
import * as Mcp from "./mcp/Mcp.ts"
import * as Authorize from "./oauth/Authorize.ts"
import * as GrantHandlers from "./oauth/Grants.ts"
import * as OAuthMetadata from "./oauth/Metadata.ts"
import * as OAuthRegistration from "./oauth/Registration.ts"
import * as TokenEndpoint from "./oauth/TokenEndpoint.ts"
import * as ConnectorPage from "./pages/ConnectorPage.ts"
import * as DevicePage from "./pages/DevicePage.ts"
import * as Icons from "./pages/Icons.ts"
import * as Landing from "./pages/Landing.ts"
import * as Docs from "./openapi/Docs.ts"
import * as MagicLinkPage from "./pages/MagicLinkPage.ts"
import * as MailPolicyPage from "./pages/MailPolicyPage.ts"
import * as MailProgramPage from "./pages/MailProgramPage.ts"
import * as ProblemPages from "./pages/ProblemPages.ts"
import * as ProfilePage from "./pages/ProfilePage.ts"
import * as SignInPage from "./pages/SignInPage.ts"
import * as TermsPage from "./pages/TermsPage.ts"
import * as Discovery from "./proof/Discovery.ts"
import * as AgentSignIns from "./proof/AgentSignIns.ts"
import * as Proof from "./proof/Proof.ts"
import * as PublishedKeys from "./proof/PublishedKeys.ts"
import * as Public from "./public/Public.ts"
import * as ProblemRendering from "./problems/ProblemRendering.ts"
import { render } from "./problems/Render.ts"
import { entryOf, RequestLog } from "./RequestLog.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import * as Tunnels from "./tunnel/Tunnels.ts"
import * as Vault from "./vault/Vault.ts"
import * as Webhooks from "./webhooks/Webhooks.ts"

const endpoints = (settings: HttpSettings) =>
  HttpApiBuilder.layer(Api).pipe(
    Layer.provide([
      Health.layer,
      SignIn.layer,
      Session.layer,
      Account.account,
      Account.exportsGroup,
      Audit.layer,
      Devices.login,
      Devices.confirmation,
      ApiKeys.layer,
      Identities.handles,
      Identities.layer,
      Cards.layer,
      Cards.profiles,
    ]),
    Layer.provide([
      Messages.layer,
      Messages.threads,
      MailSettings.layer,
      OrgMail.layer,
      Sending.layer,
      Webhooks.layer,
      Events.layer,
      Tunnels.layer,
      Connectors.layer,
      Vault.layer,
      Limits.layer,
      Usage.layer,
      Overview.layer,
      GrantHandlers.layer,
      Proof.layer,
      AgentSignIns.layer,
      Public.layer({ to: settings.contactTo }),
    ]),
    Layer.provide([Authorization.layer, ProblemRendering.layer]),
  )

interface HttpSettings {
  /** The Terms that sign-up accepts. */
  readonly terms: TermsPage.Terms
  /** The mailbox for submissions of the contact form. */
  readonly contactTo: Option.Option<string>
  /** Proxies that are trusted to report the client's address. */
  readonly trustedProxies: Proxies
  readonly mailPolicy: MailPolicyPage.MailPolicySettings
}

/**
 * Returns whether a request has a valid credential, or the problem if the store does not respond. This is checked before
 * a large body is read: bodies are held in memory before an endpoint judges the caller, and a hundred anonymous clients
 * would fill a gigabyte.
 */
const isKnown = (
  credentials: CredentialLookup["Service"],
  { headers }: HttpServerRequest.HttpServerRequest,
  { source }: RequestContextState,
): Effect.Effect<boolean | Unavailable> => {
  const token = /^Bearer\s+(\S+)\s*$/i.exec(headers["authorization"] ?? "")?.[1]
  return token === undefined
    ? Effect.succeed(false)
    : Effect.match(credentials.resolve(Redacted.make(token), { address: source.address, via: "mcp" }), {
        onSuccess: () => true,
        onFailure: (refused) => (refused.code === "unavailable" ? refused : false),
      })
}

const isKept = ({ headers }: HttpServerResponse.HttpServerResponse) =>
  headers["cache-control"]?.startsWith("private, max-age") === true

const isClientGone = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some(({ annotations }) => annotations.has(HttpServerError.ClientAbort.key))

/** Every response carries the request id, and no authenticated response is cacheable. */
export const everywhere = HttpRouter.middleware(
  Effect.map(
    Effect.all([Addresses, Routing.make(ProblemPages.notFound), RequestLog, CredentialLookup, Versions]),
    ([book, guarded, log, credentials, versions]) =>
      (answer) =>
        Effect.gen(function* () {
          const startedAt = performance.now()
          const given = yield* HttpServerRequest.HttpServerRequest
          const named = withResourceTags(Routing.spelled(given))
          const handed = yield* HandedOn
          // A tool call creates this request in memory; its body was already counted with the MCP message.
          const request = handed === undefined ? Bodies.inUtf8(withSession(book, named)) : named
          const requestId = handed?.requestId ?? (yield* makeRequestId)
          const exchange = makeRequestContext(
            requestId,
            handed?.source ?? sourceOf(yield* TrustedProxies, request, request !== named),
            handed?.equalTo,
          )
          // Tools are of the newest version, which the list of tools describes.
          if (!given.url.startsWith("/api/mcp")) exchange.version = request.headers["svc-version"]
          const known =
            handed !== undefined || !Bodies.isLarge(request) || (yield* isKnown(credentials, request, exchange))
          const isStranger = known === false
          // A body that is too long by its Content-Length is rejected without waiting for it.
          const counted =
            known instanceof Unavailable
              ? Effect.succeed(render(book, requestId, known))
              : handed !== undefined || (isStranger && Bodies.hasLength(request))
                ? answer
                : // Handlers are not interruptible, and a body may never arrive: a process that stops would wait for it.
                  Effect.flatMap(Effect.interruptible(Bodies.counted(request)), (refused) =>
                    refused === undefined ? answer : Effect.succeed(render(book, requestId, refused)),
                  )
          // Endpoints render their own problems. Failures of other routes (pages, OAuth, MCP) and failures before an
          // endpoint are rendered here. A client that disconnected needs no response.
          const rendered = Effect.catchCause(guarded(request, counted), (cause) =>
            !Cause.hasInterruptsOnly(cause)
              ? Effect.map(ProblemRendering.problemOf(cause), (problem) => render(book, requestId, problem))
              : isClientGone(cause)
                ? Effect.failCause(cause)
                : Effect.succeed(render(book, requestId, ProblemRendering.cutOff)),
          )
          const answered = yield* Effect.updateContext(rendered, (context: Context.Context<never>) => {
            const own = context.pipe(
              Context.add(RequestContext, exchange),
              Context.add(References.CurrentLogAnnotations, { request_id: requestId }),
            )
            // Only what differs is added: a context with more than eight additions is copied for the next one.
            const asked = request === given ? own : Context.add(own, HttpServerRequest.HttpServerRequest, request)
            return Bodies.isWithoutBody(request)
              ? asked
              : Context.add(
                  asked,
                  HttpIncomingMessage.MaxBodySize,
                  isStranger ? Bodies.largestPublic : Bodies.largestOf(request),
                )
          })
          if (exchange.settle !== undefined) yield* exchange.settle(answered)
          if (handed !== undefined) {
            // This response is embedded in the response of an MCP call.
            noteOf(exchange.headers, handed.headers)
            if (exchange.repeated) handed.headers["idempotent-replayed"] = "true"
            RequestMetrics.recordResponse(request.method, exchange.endpoint, answered.status, startedAt)
            if (log !== undefined) log(entryOf(request, exchange.endpoint?.route, answered, startedAt, requestId))
            return answered
          }
          const tagged = applyTag(exchange, request.method, request.headers["if-none-match"], answered)
          const dated = exchange.older === undefined ? tagged : inOlderForm(tagged, exchange.older)
          const packed = compressed(exchange, request, dated)
          const response = packed === undefined ? dated : yield* packed
          const headers: Record<string, string> = {
            ...exchange.headers,
            "request-id": requestId,
            "x-content-type-options": "nosniff",
          }
          if (request.url.startsWith("/api/")) headers["svc-version"] = exchange.version ?? versions.at(-1)!.version
          // The remote images of mail are the only responses of a session that its browser may keep.
          if (request.headers["authorization"] !== undefined && !isKept(response)) headers["cache-control"] = "no-store"
          RequestMetrics.recordResponse(request.method, exchange.endpoint, response.status, startedAt)
          if (log !== undefined)
            log(
              entryOf(
                request,
                exchange.endpoint?.route,
                { status: response.status, body: answered.body },
                startedAt,
                requestId,
              ),
            )
          return HttpServerResponse.setHeaders(response, headers)
        }),
  ),
  { global: true },
)

const routes = (settings: HttpSettings) =>
  Layer.mergeAll(
    endpoints(settings),
    Docs.documentLayer,
    Docs.layer,
    Documents.layer(Documents.built),
    Landing.layer,
    Icons.layer,
    TermsPage.layer(settings.terms),
    Mcp.layer,
    Console.layer(Console.built),
    MailBody.layer,
    MailImages.layer,
    Leave.layer,
    ProblemPages.layer,
    ProfilePage.layer,
    ConnectorPage.layer,
    DevicePage.layer,
    MailPolicyPage.layer(settings.mailPolicy),
    MailProgramPage.layer,
    SignInPage.layer,
    Authorize.layer,
    OAuthMetadata.layer,
    Discovery.layer,
    PublishedKeys.layer,
    OAuthRegistration.layer,
    TokenEndpoint.layer,
    ...MagicLinkPage.layers,
    Routing.elsewhere(ProblemPages.notFound),
  ).pipe(Layer.provide(everywhere), Layer.provide(Routing.notingRouter), Layer.provide(Routing.Paths.layer))

/** The type of the routes lists the services that a request may need; the compiler cannot check it elsewhere. */
export const layer = (settings: HttpSettings, listener: RequestServices.Listener) =>
  RequestServices.serve(routes(settings), Context.make(TrustedProxies, settings.trustedProxies), listener)
