/**
 * One request and its answer, as the parts of the edge that surround a handler share them: the id of the request, the
 * headers its answer will carry, and what is to be done with the answer once it is there.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { Context, Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { Endpoint } from "./RequestMetrics.ts"

/** Where a request came from and which way: for judging networks, and for what is told of it later. */
export interface Source {
  /** The client's whole address, `unknown` where there is none; worked out when it is asked for. */
  readonly address: string
  /** `console`: with the session of a browser, by a page of ours. `page`: a page that is no part of the API. */
  readonly via: "rest" | "mcp" | "console" | "page"
  /** The tool that was called over MCP. */
  readonly tool: string | null
  readonly userAgent: string | null
}

const nowhere: Source = { address: "unknown", via: "rest", tool: null, userAgent: null }

/** The same client, by a tool. */
export const overMcp = (source: Source, tool: string): Source => ({
  get address() {
    return source.address
  },
  via: "mcp",
  tool,
  userAgent: source.userAgent,
})

/**
 * What a request hands on to one that it makes within this process: the id, where it came from, and the headers of its own
 * answer, which say what the other one used of the limits.
 */
export const HandedOn = Context.Reference<
  Pick<RequestContextState, "requestId" | "source" | "headers" | "equalTo"> | undefined
>("@svc/api/HandedOn", { defaultValue: () => undefined })

export interface RequestContextState {
  readonly requestId: string
  readonly source: Source
  readonly headers: Record<string, string>
  /** The endpoint that took the request, for logs and metrics. */
  endpoint: Endpoint | undefined
  /** The answer is one resource and gets an entity tag of its bytes. */
  tagged: boolean
  /** The answer may be compressed, whatever else its path answers. */
  openly: boolean
  /** Runs with the final answer, before it goes out. */
  settle: ((response: HttpServerResponse.HttpServerResponse) => Effect.Effect<void>) | undefined
  /** The id of what this request makes; the same again when an `Idempotency-Key` repeats the request. */
  commandId: string | undefined
  /** What the audit log says of the call; for handlers that put it on record themselves. */
  act: Act | undefined
  /** It is on record: by the statement of the change itself. */
  recorded: boolean
  /** The first answer to the same request is given again: nothing is done. */
  repeated: boolean
  /** Identifies equal tool calls; one without an `Idempotency-Key` repeats an equal one for a minute. */
  readonly equalTo: string | undefined
}

export const makeRequestContext = (
  requestId = "req_unknown",
  source: Source = nowhere,
  equalTo: string | undefined = undefined,
): RequestContextState => ({
  requestId,
  source,
  headers: {},
  endpoint: undefined,
  tagged: false,
  openly: false,
  settle: undefined,
  commandId: undefined,
  act: undefined,
  recorded: false,
  repeated: false,
  equalTo,
})

/** Outside of a request there is one that nobody looks at. */
export const RequestContext = Context.Reference<RequestContextState>("@svc/api/RequestContext", {
  defaultValue: () => makeRequestContext(),
})

/** The answer at hand carries a secret: no cache keeps it. */
export const keptByNobody = Effect.map(RequestContext, ({ headers }) => void (headers["cache-control"] = "no-store"))

/** The id of the command this request is; what it makes carries it. */
export const commandId: Effect.Effect<string> = Effect.flatMap(RequestContext, (exchange) =>
  exchange.commandId === undefined ? makeUuidV7 : Effect.succeed(exchange.commandId),
)
