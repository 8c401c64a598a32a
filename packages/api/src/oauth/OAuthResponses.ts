/** Parsing and responses of the OAuth endpoints, in the format of the standard instead of problems. */
import type { Unavailable } from "@svc/domain/problems/Problem"
import { isStorable } from "@svc/domain/Text"
import { Effect, Result } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"

const uncached = { "cache-control": "no-store", pragma: "no-cache" }

export const answer = (body: unknown, status = 200) =>
  HttpServerResponse.jsonUnsafe(body, { status, headers: uncached })

/** RFC 6749 section 5.2, RFC 7591 section 3.2.2. */
export const refusal = (error: string, error_description: string, status = 400) =>
  answer({ error, error_description }, status)

const later = (seconds: number | undefined, status: 429 | 503) =>
  HttpServerResponse.setHeader(
    refusal("temporarily_unavailable", "Try the same again in a moment.", status),
    "retry-after",
    String(seconds ?? 1),
  )

/** Rate limits and an unavailable store. */
export const patience = {
  rate_limited: ({ retry_after_seconds }: { readonly retry_after_seconds?: number }) =>
    Effect.succeed(later(retry_after_seconds, 429)),
  unavailable: ({ retry_after_seconds }: Unavailable) => Effect.succeed(later(retry_after_seconds, 503)),
}

export type Form = ReadonlyMap<string, string>

/** Parses a form, whose members must not repeat (RFC 6749 section 3.2). */
export const form: Effect.Effect<
  Result.Result<Form, HttpServerResponse.HttpServerResponse>,
  never,
  HttpServerRequest.HttpServerRequest
> = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? "")) {
    return Result.fail(refusal("invalid_request", "The body is application/x-www-form-urlencoded."))
  }
  const text = yield* Effect.option(request.text)
  if (text._tag === "None") return Result.fail(refusal("invalid_request", "The body could not be read."))
  const members = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text.value)) {
    if (members.has(name)) {
      return Result.fail(refusal("invalid_request", "A member of the body is there more than once."))
    }
    if (!isStorable(value)) return Result.fail(refusal("invalid_request", "A member of the body holds a NUL."))
    members.set(name, value)
  }
  return Result.succeed(members)
})
