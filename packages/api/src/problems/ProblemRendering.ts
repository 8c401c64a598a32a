/**
 * Turns every failure of an endpoint into a problem: declared problems, schema violations, bare errors of the library, and
 * defects. For a defect, the caller only receives the request id.
 */
import { limitOf } from "@svc/domain/problems/Limit"
import { Addresses } from "@svc/domain/Addresses"
import {
  Internal,
  InvalidRequest,
  isProblem,
  NotFound,
  PayloadTooLarge,
  type Problem,
  Unavailable,
  UnsupportedMediaType,
} from "@svc/domain/problems/Problem"
import { ProblemRendering } from "@svc/domain/problems/ProblemRendering"
import { Cause, Effect, Layer } from "effect"
import { HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiError } from "effect/http-api"
import { notAsSeen } from "../EntityTags.ts"
import { RequestContext, RequestId } from "../RequestContext.ts"
import { note } from "../limits/RateLimitHeaders.ts"
import * as RequestMetrics from "../RequestMetrics.ts"
import { render } from "./Render.ts"
import { violationsOf } from "./Violations.ts"

/** The service interrupted the request, not the client: an actor was cut off, or the process shuts down. */
export const cutOff = new Unavailable({
  detail: "The service did not respond in time. The change may have been made.",
  retry_after_seconds: 1,
})

const slots: Record<string, string> = { Params: "path", Headers: "headers", Query: "query", Payload: "body" }

const invalid = (error: HttpApiError.HttpApiSchemaError, endpoint: HttpApiEndpoint.Top) =>
  Effect.map(violationsOf(error, endpoint), (errors) => {
    const where = errors[0]?.path
    return new InvalidRequest({
      detail: `The ${slots[error.kind] ?? "request"} is not valid${where === undefined || where === "" ? "" : ` at ${where}`}: ${errors[0]?.message ?? "unreadable"}`,
      errors,
    })
  })

/** The request is at fault, not the response. */
export const isOfRequest = (failure: unknown): failure is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(failure) && failure.kind !== "Body" && failure.kind !== "ResponseHeaders"

/** Returns the problem of a failure, or undefined for a defect. */
export const meaning = (failure: unknown): Problem | undefined => {
  if (isProblem(failure)) return failure
  // The body could not be read: it was too long or incomplete.
  if (HttpServerError.isHttpServerError(failure) && failure.reason._tag === "RequestParseError") {
    return /too large|maxBytes|exceed/i.test(Cause.pretty(Cause.die(failure)))
      ? new PayloadTooLarge({ detail: "The request body exceeds the limit." })
      : new InvalidRequest({ detail: failure.reason.description ?? "The request body could not be read." })
  }
  return undefined
}

const endOf = (cause: Cause.Cause<unknown>) => ({
  failure: cause.reasons.find((reason) => Cause.isFailReason(reason))?.error,
  defect: cause.reasons.find((reason) => Cause.isDieReason(reason))?.defect,
})

/** Returns the response to a failed request; defects are logged. */
export const problemOf = (cause: Cause.Cause<unknown>): Effect.Effect<Problem> => {
  const { failure, defect } = endOf(cause)
  const known = meaning(failure) ?? meaning(defect)
  return known !== undefined
    ? Effect.succeed(known)
    : Effect.as(
        Effect.logError("A request ended in a defect", cause),
        new Internal({ detail: "The service failed to process this request." }),
      )
}

/** A condition of a change requires that the resource exists, also as `*` (RFC 9110 section 13.1.1). */
const requiresExisting = ({ method }: HttpApiEndpoint.Top) =>
  Effect.map(
    HttpServerRequest.HttpServerRequest,
    ({ headers }) => method !== "GET" && method !== "POST" && headers["if-match"] !== undefined,
  )

export const layer = Layer.effect(
  ProblemRendering,
  Effect.gen(function* () {
    const book = yield* Addresses

    const explain = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, endpoint: HttpApiEndpoint.Top) {
      const requestId = yield* RequestId
      const { failure, defect } = endOf(cause)
      const ofRequest = [failure, defect].find(isOfRequest)
      const found = yield* ofRequest === undefined ? problemOf(cause) : invalid(ofRequest, endpoint)
      const problem = found instanceof NotFound && (yield* requiresExisting(endpoint)) ? notAsSeen() : found
      const limit = limitOf(problem)
      if (limit !== undefined) note(yield* RequestContext, limit)
      return render(book, requestId, problem)
    })

    return (handler, { endpoint, group }) => {
      const counted = RequestMetrics.endpointOf(endpoint.path, group.identifier)
      return Effect.flatMap(RequestContext, (exchange) => {
        exchange.endpoint = counted
        return handler
      }).pipe(
        Effect.flatMap((response) => translate(response)),
        // An interruption that arrives here does not come from the client, which would not wait for a response: an actor
        // was cut off because its process lost its place in the cluster or shuts down.
        Effect.catchCause(
          (cause): Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest> =>
            explain(Cause.hasInterruptsOnly(cause) ? Cause.fail(cutOff) : cause, endpoint),
        ),
      )
    }

    /** The library responds to an unsupported media type in plain text. */
    function translate(response: HttpServerResponse.HttpServerResponse) {
      return response.status === 415
        ? Effect.map(RequestId, (requestId) =>
            render(book, requestId, new UnsupportedMediaType({ detail: "The endpoint requires application/json." })),
          )
        : Effect.succeed(response)
    }
  }),
)
