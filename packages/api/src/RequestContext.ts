/**
 * The state of one request that is shared by the middleware around a handler: its id, the headers of the response, and the
 * callbacks that run with the response.
 */
import { makeUuidV7, makePublic } from "@svc/domain/Ids"
import type { Translation } from "@svc/domain/Versions"
import type { Act, AuditWrite } from "@svc/cluster/audit/AuditWrite"
import { Context, Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { Endpoint } from "./RequestMetrics.ts"

/** The origin and the channel of a request, for network checks and for records. */
export interface Source {
  /** The client's full address, or `unknown`; computed on first use. */
  readonly address: string
  /** `console`: an API call of the console with its session cookie. `page`: a page outside the API. */
  readonly via: "rest" | "mcp" | "console" | "page"
  /** The tool that was called over MCP. */
  readonly tool: string | null
  readonly userAgent: string | null
}

const unknownSource: Source = { address: "unknown", via: "rest", tool: null, userAgent: null }

/** The same client, through a tool. */
export const overMcp = (source: Source, tool: string): Source => ({
  get address() {
    return source.address
  },
  via: "mcp",
  tool,
  userAgent: source.userAgent,
})

/**
 * State that a request passes to a request made within this process: the request id, the source, and the response headers
 * into which the inner request writes its rate limits.
 */
export const HandedOn = Context.Reference<
  Pick<RequestContextState, "requestId" | "source" | "headers" | "equalTo"> | undefined
>("@svc/api/HandedOn", { defaultValue: () => undefined })

export interface RequestContextState {
  readonly requestId: string
  readonly source: Source
  readonly headers: Record<string, string>
  /** The endpoint of the request, for logs and metrics. */
  endpoint: Endpoint | undefined
  /** The response is a single resource; its entity tag is computed from its bytes. */
  tagged: boolean
  /** The version of the API that the request names, else that of its account; undefined for the newest. */
  version: string | undefined
  /** Translates the response of a request of an older version. */
  older: Translation["response"]
  /** The response may be compressed even on a path that excludes compression. */
  openly: boolean
  /** Runs with the final response before it is sent. */
  settle: ((response: HttpServerResponse.HttpServerResponse) => Effect.Effect<void>) | undefined
  /** The id of the resource that this request creates; a repeat with the same `Idempotency-Key` has the same id. */
  commandId: string | undefined
  /** Returns the audit record of the call, which creates the resource `made`; undefined if the record is stored before the call. */
  act: ((made?: string) => Act) | undefined
  /** The Identity and the target of the audit record, if the path of the call does not name them. */
  about: (Pick<Act, "identity"> & Partial<Pick<Act, "target">>) | undefined
  /** The audit record that the statement of the change has stored. */
  recorded: AuditWrite | undefined
  /** The stored response to the same request is returned, so nothing is executed. */
  repeated: boolean
  /** An interrupted attempt of the same request has committed its change, so only the response is left. */
  resumed: boolean
  /** Identifies equal tool calls. A call without an `Idempotency-Key` repeats an equal call of the last minute. */
  readonly equalTo: string | undefined
}

export const makeRequestContext = (
  requestId = "req_unknown",
  source: Source = unknownSource,
  equalTo: string | undefined = undefined,
): RequestContextState => ({
  requestId,
  source,
  headers: {},
  endpoint: undefined,
  tagged: false,
  version: undefined,
  older: undefined,
  openly: false,
  settle: undefined,
  commandId: undefined,
  act: undefined,
  about: undefined,
  recorded: undefined,
  repeated: false,
  resumed: false,
  equalTo,
})

/** Outside of a request, a fresh context that nothing reads. */
export const RequestContext = Context.Reference<RequestContextState>("@svc/api/RequestContext", {
  defaultValue: () => makeRequestContext(),
})

/**
 * Runs a change unless an interrupted attempt of the same request has made it. A repeat could fail because the resource is gone, or
 * revert what another request has changed since.
 */
export const unlessMade = <A, E, R>(change: Effect.Effect<A, E, R>): Effect.Effect<void, E, R> =>
  Effect.flatMap(RequestContext, ({ resumed }) => (resumed ? Effect.void : Effect.asVoid(change)))

/** Marks the response as containing a secret, so that it is not cached. */
export const keptByNobody = Effect.map(RequestContext, ({ headers }) => void (headers["cache-control"] = "no-store"))

/** Returns the command id of the request, which is also the id of what it creates. */
export const commandId: Effect.Effect<string> = Effect.flatMap(RequestContext, (exchange) =>
  exchange.commandId === undefined ? makeUuidV7 : Effect.succeed(exchange.commandId),
)

/**
 * The id of the current request. The service always generates it, returns it as `request-id`, and adds it to every log
 * entry and problem.
 */
export const RequestId: Effect.Effect<string> = Effect.map(RequestContext, ({ requestId }) => requestId)

export const makeRequestId = makePublic("req_")
