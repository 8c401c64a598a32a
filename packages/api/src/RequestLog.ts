/**
 * The access log: one entry per request with its endpoint, status and duration. The process provides a plain function that
 * buffers entries, because logging must cost almost nothing compared with the request.
 */
import { claimedKind } from "@svc/domain/account/Token"
import { Context } from "effect"
import type { HttpServerResponse } from "effect/http"
import { problemIn } from "./problems/Render.ts"

export interface RequestEntry {
  readonly method: string
  /** The path pattern of the endpoint; for other routes the path without its query. */
  readonly route: string
  readonly status: number
  readonly duration_ms: number
  readonly request_id: string
  /** The kind of the presented credential, valid or not; null without a credential. */
  readonly credential: string | null
  /** The code of the problem in the response; null for other responses. */
  readonly problem: string | null
}

/** The destination of log entries; without one they are discarded. */
export const RequestLog = Context.Reference<((entry: RequestEntry) => void) | undefined>("@svc/api/RequestLog", {
  defaultValue: () => undefined,
})

export const entryOf = (
  request: {
    readonly method: string
    readonly url: string
    readonly headers: Readonly<Record<string, string | undefined>>
  },
  route: string | undefined,
  { status, body }: Pick<HttpServerResponse.HttpServerResponse, "status" | "body">,
  startedAt: number,
  requestId: string,
): RequestEntry => {
  return {
    method: request.method,
    route: route ?? request.url.slice(0, 200).split("?")[0]!,
    status,
    duration_ms: Math.round((performance.now() - startedAt) * 100) / 100,
    request_id: requestId,
    credential: claimedKind(request.headers["authorization"]) ?? null,
    problem: status < 400 ? null : (problemIn(body) ?? null),
  }
}
