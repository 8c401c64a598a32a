/**
 * `POST /api/mcp`: a tool call becomes the REST request that it names, sent through the same router with the caller's
 * credential, so authorization and errors are identical. Other messages (initialization, lists) are authorized here and
 * count as calls.
 */
import { Addresses } from "@svc/domain/Addresses"
import { limitOf } from "@svc/domain/problems/Limit"
import {
  InvalidRequest,
  OriginRefused,
  type Problem,
  Unauthenticated,
  UnsupportedMediaType,
} from "@svc/domain/problems/Problem"
import { type CallerInfo, soleOf } from "@svc/domain/account/Authorization"
import { judgeNetwork } from "@svc/domain/account/PolicyEvaluation"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import * as Metrics from "@svc/cluster/observe/Metrics"
import { Context, Effect, Redacted, type Scope } from "effect"
import {
  HttpBody,
  HttpClientRequest,
  HttpRouter,
  type HttpServerError,
  HttpServerRequest,
  HttpServerResponse,
} from "effect/http"
import { sourceOf, pageOperation } from "../audit/AuditedOperations.ts"
import { RequestContext, type RequestContextState, HandedOn, overMcp, RequestId } from "../RequestContext.ts"
import { isLarge } from "../http/Bodies.ts"
import { mayCallMcp } from "../http/CrossOrigin.ts"
import { mayCompress } from "../http/Compression.ts"
import { note } from "../limits/RateLimitHeaders.ts"
import { challenge } from "../oauth/Metadata.ts"
import { meaning } from "../problems/ProblemRendering.ts"
import { render } from "../problems/Render.ts"
import { bounded, isBounded } from "./BoundedResult.ts"
import { marked } from "./Output.ts"
import { type Answer, instructionsFor, interpret, type Served } from "./Protocol.ts"
import { requestOf, type ToolRequest } from "./Requests.ts"
import * as Resources from "./Resources.ts"
import * as Subscriptions from "./Subscriptions.ts"
import { contains, type ListOptions, listFor, selectionOf } from "./ToolList.ts"
import { type BoundTool, byName } from "./Tools.ts"

const path = "/api/mcp"

// oxlint-disable-next-line typescript/no-explicit-any -- tool arguments are any JSON until the endpoint judges them
type Json = Record<string, any>

const bearer = (header: string | undefined) => /^Bearer\s+(\S+)\s*$/i.exec(header ?? "")?.[1]

const clientRequest = (origin: string, { method, target, headers, body }: ToolRequest) =>
  HttpClientRequest.make(method)(origin + target, {
    headers,
    ...(body === undefined ? {} : { body: HttpBody.text(body, "application/json") }),
  })

const textOf = ({ body }: HttpServerResponse.HttpServerResponse): string =>
  body._tag === "Uint8Array" ? (body.text ?? new TextDecoder().decode(body.body)) : "{}"

/** The audit record of messages that reach no endpoint: initialization, lists, invalid tool calls. */
const exchanged = { class: "auth", action: "mcp.exchange", type: "mcp" } as const

const cameIn = ({ source, requestId }: RequestContextState) => ({
  requestId,
  source: { ...source, via: "mcp" } as const,
})

type ToolCall = Served & { readonly _tag: "Call" }

const calls = Metrics.counter("svc_mcp_calls_total", "Calls of tools over MCP", ["tool", "outcome"])

/** Returns the text of a tool's result: the REST response, cut if the tool is bounded, with its marks first. */
const resultOf = (
  tool: BoundTool,
  input: Json,
  response: HttpServerResponse.HttpServerResponse,
  isRepeated: boolean,
): string => {
  const isError = response.status >= 400
  const answer = textOf(response)
  const isObject = answer.startsWith("{")
  const text =
    isObject && (isError || !isBounded(tool.listed.name))
      ? answer
      : JSON.stringify(isObject ? bounded(tool.listed.name, input, JSON.parse(answer)) : {})
  return marked(text, isError ? [] : tool.untrusted, isRepeated)
}

/**
 * Returns the reply with the text of a result, which is also the structured content. The result is the last member of the
 * reply, so the text can be inserted before the closing braces.
 */
const replyOf = (message: ToolCall, text: string, isError: boolean): HttpServerResponse.HttpServerResponse => {
  const { status, body } = message.answer({ content: [{ type: "text", text }], ...(isError ? { isError } : {}) })
  const reply = JSON.stringify(body)
  return HttpServerResponse.text(`${reply.slice(0, -2)},"structuredContent":${text}}}`, {
    status,
    contentType: "application/json",
  })
}

const jsonOf = (answer: Answer) =>
  answer.body === undefined
    ? HttpServerResponse.empty({ status: answer.status })
    : HttpServerResponse.jsonUnsafe(answer.body, { status: answer.status })

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const credentials = yield* CredentialLookup
    const strangers = yield* RefusedCredentials
    const audit = yield* Audit
    const limits = yield* OrgLimits
    const subscriptions = yield* Subscriptions.make
    const rest = router.asHttpEffect()
    const { origin } = new URL(book.baseUrl)

    const problem = (one: Problem) => Effect.map(RequestId, (id) => render(book, id, one))

    /** Tells a client without a valid credential where to authorize. */
    const challenged = (response: HttpServerResponse.HttpServerResponse) =>
      response.status === 401
        ? Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
            HttpServerResponse.setHeader(
              response,
              "www-authenticate",
              challenge(book, headers["authorization"] !== undefined),
            ),
          )
        : Effect.succeed(response)

    const answered = (
      message: ToolCall,
      tool: BoundTool,
      response: HttpServerResponse.HttpServerResponse,
      isRepeated = false,
    ) => {
      const isError = response.status >= 400
      calls.of(message.name, isError ? "refused" : "done").n++
      const text = resultOf(tool, message.input, response, isRepeated)
      return message.read === undefined ? replyOf(message, text, isError) : jsonOf(message.read(text, isError))
    }

    /** Sends the REST request of a tool through the router. */
    const sent = Effect.fnUntraced(function* (name: string, request: ToolRequest) {
      const outer = yield* RequestContext
      // The inner request runs in the scope of the caller's request, which closes its resources.
      return yield* Effect.updateContext(rest, (context: Context.Context<Scope.Scope>) =>
        context.pipe(
          Context.add(
            HttpServerRequest.HttpServerRequest,
            HttpServerRequest.fromClientRequest(clientRequest(origin, request)),
          ),
          // Passes on the state of the outer request that no header can carry.
          Context.add(HandedOn, {
            requestId: outer.requestId,
            headers: outer.headers,
            source: overMcp(outer.source, name),
            equalTo: request.equalTo,
          }),
        ),
      )
    })

    const callTool = Effect.fnUntraced(function* (message: ToolCall, tool: BoundTool, request: ToolRequest) {
      const outer = yield* RequestContext
      const response = yield* sent(message.name, request)
      // The credential is invalid, which is the response of the whole exchange, as on any other path.
      if (response.status === 401) return response
      return answered(message, tool, response, outer.headers["idempotent-replayed"] !== undefined)
    })

    /**
     * Returns the request of a tool call, or the error in its arguments. A credential of one Identity may omit the handle.
     */
    const requested = <E, R>(
      tool: BoundTool,
      { input }: ToolCall,
      token: string,
      callerOf: Effect.Effect<CallerInfo, E, R>,
    ) => {
      const own =
        tool.inPath.includes("handle") && input["handle"] === undefined
          ? Effect.map(callerOf, (caller) => soleOf(caller)?.handle)
          : Effect.succeed(undefined)
      return Effect.map(own, (handle) =>
        requestOf(tool, handle === undefined ? input : { ...input, handle }, `Bearer ${token}`),
      )
    }

    /** Lists the resources of the Identities that a credential may act on. */
    const resourcesOf = Effect.fnUntraced(function* (
      message: Served & { readonly _tag: "Resources" },
      caller: CallerInfo,
      token: string,
    ) {
      if (caller.identities !== null) {
        return jsonOf(message.answer({ resources: Resources.listOf(caller.identities.map(({ handle }) => handle)) }))
      }
      const name = "svc_identity_list"
      const request = requestOf(byName.get(name)!, message.input, `Bearer ${token}`)
      const response = request instanceof InvalidRequest ? yield* problem(request) : yield* sent(name, request)
      if (response.status !== 200) return response
      const { identities, next_cursor } = JSON.parse(textOf(response))
      return jsonOf(
        message.answer({
          resources: Resources.listOf(identities.map(({ handle }: Json) => handle)),
          ...(next_cursor === null ? {} : { nextCursor: next_cursor }),
        }),
      )
    })

    /** Returns whether a credential may read a resource, by reading it. */
    const mayRead = Effect.fnUntraced(function* ({ name, input }: Resources.Reader, token: string) {
      const request = requestOf(byName.get(name)!, input, `Bearer ${token}`)
      return !(request instanceof InvalidRequest) && (yield* sent(name, request)).status === 200
    })

    /** The list contains no secrets, so it may be compressed. */
    const listed = (message: Served & { readonly _tag: "List" }, caller: CallerInfo, selection: ListOptions) =>
      Effect.map(RequestContext, (state) => {
        mayCompress(state)
        return message.answer(listFor(caller, selection))
      })

    /** Audits the refusal of a credential on a message that names no tool. */
    const turnedAway = (token: string, code: string) =>
      code === "unavailable"
        ? Effect.void
        : Effect.flatMap(RequestContext, ({ source, requestId }) =>
            strangers.turnedAway(Redacted.make(token), {
              action: exchanged.action,
              code,
              source: { ...sourceOf(source), via: "mcp" },
              requestId,
            }),
          )

    /** Authorizes messages that reach no endpoint: the network of the credential, and the Org's call limit. */
    const admitted = Effect.fnUntraced(function* (caller: CallerInfo, { source, headers }: RequestContextState) {
      const elsewhere = judgeNetwork(caller, source)
      if (elsewhere !== undefined) return yield* elsewhere
      const { quota, remaining, resetSeconds } = yield* limits.take(caller.org.id, "calls")
      note({ headers }, { name: "calls", quota, windowSeconds: 60, remaining, resetSeconds })
    })

    /** Records the refusal like that of any call. */
    const refused = Effect.fnUntraced(function* (caller: CallerInfo, state: RequestContextState, why: Problem) {
      yield* audit.record({ ...pageOperation(caller, cameIn(state), exchanged), outcome: "refused", code: why.code })
      const limit = limitOf(why)
      if (limit !== undefined) note(state, limit)
      return yield* problem(why)
    })

    const exchange = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { headers } = request
      if (headers["origin"] !== undefined && !mayCallMcp(book, headers["origin"])) {
        return yield* problem(
          new OriginRefused({
            detail: "Pages of this origin cannot call the MCP server. The operator lists origins in SVC_MCP_ORIGINS.",
          }),
        )
      }
      const token = bearer(headers["authorization"])
      if (token === undefined) {
        return yield* problem(new Unauthenticated({ detail: "The request has no credential." }))
      }
      if (!/^application\/json\b/i.test(headers["content-type"] ?? "")) {
        return yield* problem(new UnsupportedMediaType({ detail: "The endpoint requires application/json." }))
      }
      const selection = selectionOf(request.url)
      if (selection instanceof InvalidRequest) return yield* problem(selection)
      const state = yield* RequestContext
      const callerOf = Effect.tapError(
        credentials.resolve(Redacted.make(token), { address: state.source.address, via: "mcp" }),
        ({ code }) => turnedAway(token, code),
      )
      // Large bodies of anonymous callers are not read; the response is 401.
      if (isLarge(request)) yield* callerOf
      const message = interpret(yield* request.text, headers)
      const named = message._tag === "Call" ? byName.get(message.name) : undefined
      const tool = named !== undefined && contains(selection.toolsets, named) ? named : undefined
      const made =
        message._tag === "Call" && tool !== undefined ? yield* requested(tool, message, token, callerOf) : undefined
      // A tool call is authorized by its endpoint; a message that makes no request is authorized here.
      if (message._tag === "Call" && tool !== undefined && made !== undefined && !(made instanceof InvalidRequest)) {
        return yield* callTool(message, tool, made)
      }
      const caller = yield* callerOf
      const why = yield* Effect.match(admitted(caller, state), { onFailure: (one) => one, onSuccess: () => undefined })
      if (why !== undefined) return yield* refused(caller, state, why)
      audit.used({
        org: caller.org.id,
        kind: caller.kind,
        id: caller.credentialId,
        action: exchanged.action,
        tool: message._tag === "Call" && made !== undefined ? message.name : "",
        handle: "",
      })
      switch (message._tag) {
        case "Answer":
          return jsonOf(message)
        case "Opening":
          return jsonOf(message.answer(instructionsFor(caller)))
        case "Resources":
          return yield* resourcesOf(message, caller, token)
        case "Listen":
          return yield* subscriptions.open(caller, message.uris, message.replies, (reader) => mayRead(reader, token))
        case "List":
          return jsonOf(yield* listed(message, caller, selection))
        case "Call":
          return tool !== undefined && made instanceof InvalidRequest
            ? answered(message, tool, yield* problem(made))
            : jsonOf(message.unknown)
      }
    })

    yield* router.add(
      "POST",
      path,
      exchange.pipe(
        Effect.catchTags({
          unauthenticated: problem,
          key_expired: problem,
          grant_revoked: problem,
          account_deleting: problem,
          unavailable: problem,
          rate_limited: problem,
          invalid_cursor: problem,
          HttpServerError: (error: HttpServerError.HttpServerError) =>
            problem(meaning(error) ?? new InvalidRequest({ detail: "The request body could not be read." })),
        }),
        Effect.flatMap(challenged),
      ),
    )
  }),
)
