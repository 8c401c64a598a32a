/** Sets `RateLimit-Policy` and `RateLimit` of the current response (draft-ietf-httpapi-ratelimit-headers). */
import type { LimitState } from "@svc/domain/problems/Limit"
import type { RequestContextState } from "../RequestContext.ts"

const append = (headers: Record<string, string>, name: string, item: string) => {
  headers[name] = headers[name] === undefined ? item : `${headers[name]}, ${item}`
}

export const note = ({ headers }: Pick<RequestContextState, "headers">, limit: LimitState): void => {
  append(
    headers,
    "ratelimit-policy",
    `"${limit.name}";q=${limit.quota}${limit.windowSeconds === undefined ? "" : `;w=${limit.windowSeconds}`}`,
  )
  append(headers, "ratelimit", `"${limit.name}";r=${limit.remaining};t=${limit.resetSeconds}`)
}

/** Copies the rate limit headers of an inner response to the outer one. */
export const noteOf = (other: Readonly<Record<string, string>>, headers: Record<string, string>): void => {
  for (const name of ["ratelimit-policy", "ratelimit"]) {
    if (other[name] !== undefined) append(headers, name, other[name])
  }
}
