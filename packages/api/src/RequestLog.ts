/**
 * One line per request: what was asked, how it ended, how long that took. It is a plain function that the process gives,
 * since a line must cost next to nothing beside the request: what it is given goes into a buffer and is written later.
 */
import { claimedKind } from "@svc/domain/account/Token"
import { Context } from "effect"
import type { HttpServerResponse } from "effect/http"
import { problemIn } from "./problems/Render.ts"

export interface RequestEntry {
  readonly method: string
  /** The endpoint's pattern; the path of what is none (pages, what nothing answers to), without its query. */
  readonly route: string
  readonly status: number
  readonly duration_ms: number
  readonly request_id: string
  /** What kind of credential the request came with, good or not; null where it came without. */
  readonly credential: string | null
  /** The code of the problem that the response is; null for other responses. */
  readonly problem: string | null
}

/** Where the lines go; nowhere unless the process says so. */
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
