/**
 * `Idempotency-Key`: a repeat of a write returns the first response, and an interrupted request resumes as the same
 * command. A tool call without a key repeats an equal call of the last minute, because clients retry tool calls without
 * telling the model (`RequestContext.equalTo`).
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { Conflict, IdempotencyKeyInProgress, InvalidRequest } from "@svc/domain/problems/Problem"
import { Audit } from "@svc/cluster/audit/Audit"
import { IdempotencyRecords, type Scope, type StoredAnswer } from "@svc/cluster/idempotency/IdempotencyRecords"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Option, Schema } from "effect"
import { Headers, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RequestContext } from "../RequestContext.ts"

/** Headers that belong to the result, not to a single response. */
const kept = ["content-type", "location", "etag"]

/** Printable ASCII, as the content of an sf-string or bare. */
const keyOf = (header: string): string | undefined => /^"?([\x21\x23-\x7e ]{1,255}?)"?$/.exec(header)?.[1]

const again = ({ status, headers, body }: StoredAnswer) =>
  body === null || body === ""
    ? HttpServerResponse.empty({ status, headers })
    : HttpServerResponse.text(body, { status, headers, contentType: headers["content-type"] ?? "application/json" })

/**
 * Refusals that changed nothing and may not recur: malformed requests, invalid credentials, temporary failures. They do not
 * consume the key.
 */
const isPassing = (response: HttpServerResponse.HttpServerResponse): boolean => {
  if (response.status < 400) return false
  if (response.status === 400 || response.status === 401 || response.status === 429) return true
  const problem = Schema.decodeUnknownOption(Hinted)(textOf(response))
  return Option.isSome(problem) && problem.value.agent_hint === "wait"
}

const Hinted = Schema.fromJsonString(Schema.Struct({ agent_hint: Schema.String }))

const textOf = (response: HttpServerResponse.HttpServerResponse): string =>
  response.body._tag === "Uint8Array" ? new TextDecoder().decode(response.body.body) : ""

/**
 * Returns the request without `If-Match`: the condition held when the change was made, and the change itself may have altered the
 * resource. The body is passed on, because it can be read from the client only once.
 */
const withoutPrecondition = (request: HttpServerRequest.HttpServerRequest) =>
  Object.defineProperty(request.modify({ headers: Headers.remove(request.headers, "if-match") }), "text", {
    value: request.text,
  })

export const make = Effect.gen(function* () {
  const records = yield* IdempotencyRecords
  const audit = yield* Audit

  /**
   * Runs the `handler` of a write, or returns the stored response. With `secret` the response carries a secret, so only the
   * fact is stored.
   */
  return Effect.fnUntraced(function* <E, R>(
    handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
    caller: CallerInfo,
    secret: boolean,
  ) {
    const request = yield* HttpServerRequest.HttpServerRequest
    const header = request.headers["idempotency-key"]
    const exchange = yield* RequestContext
    const equalTo = header === undefined ? exchange.equalTo : undefined
    if (header === undefined && equalTo === undefined) return yield* handler
    const key = equalTo ?? keyOf(header ?? "")
    if (key === undefined) {
      return yield* new InvalidRequest({
        detail: "The Idempotency-Key must have 1 to 255 printable ASCII characters.",
        errors: [{ path: "/idempotency-key", message: "1 to 255 printable ASCII characters" }],
      })
    }
    const scope: Scope = { credentialId: caller.credentialId, operation: `${request.method} ${request.url}`, key }
    const body = yield* Effect.option(request.text)
    // The handler reports a body that cannot be read, and the key stays free.
    if (Option.isNone(body)) return yield* handler
    const claim = yield* equalTo === undefined
      ? records.claim(scope, body.value)
      : Effect.catchTag(records.claim(scope, body.value, Timing.equalCallMillis), "idempotency_key_in_progress", () =>
          Effect.fail(
            new IdempotencyKeyInProgress({
              detail:
                "An equal call has not ended yet. Repeat the call in a second to get its result, or set `allow_duplicate` to make it twice.",
              retry_after_seconds: 1,
            }),
          ),
        )
    if (claim._tag === "Answered") {
      exchange.repeated = true
      exchange.headers["idempotent-replayed"] = "true"
      if (!secret || claim.answer.status >= 400) return again(claim.answer)
      const { location } = claim.answer.headers
      if (location !== undefined) exchange.headers["location"] = location
      const made = location === undefined ? "" : ` It made ${location}.`
      return yield* new Conflict({
        detail:
          equalTo === undefined
            ? `The request with this Idempotency-Key was done; its answer carried a secret and was not kept.${made}`
            : `An equal call was made less than a minute ago; its answer carried a secret and was not kept.${made} Set \`allow_duplicate\` to make the call again.`,
      })
    }
    exchange.commandId = claim.commandId
    exchange.settle = (response) =>
      Effect.ignore(
        response.status >= 500
          ? records.release(scope)
          : isPassing(response) || (equalTo !== undefined && response.status >= 400)
            ? records.forget(scope)
            : records.settle(scope, {
                status: response.status,
                headers: Object.fromEntries(
                  kept.flatMap((name) => {
                    const value = name === "content-type" ? contentType(response) : response.headers[name]
                    return value === undefined ? [] : [[name, value]]
                  }),
                ),
                body: secret && response.status < 400 ? null : textOf(response),
              }),
      )
    const { act } = exchange
    if (!claim.interrupted || act === undefined) return yield* handler
    exchange.resumed = yield* audit.isRecorded({ ...act(), command: claim.commandId })
    return exchange.resumed
      ? yield* Effect.provideService(handler, HttpServerRequest.HttpServerRequest, withoutPrecondition(request))
      : yield* handler
  })
})

const contentType = (response: HttpServerResponse.HttpServerResponse) =>
  response.headers["content-type"] ?? (response.body._tag === "Uint8Array" ? response.body.contentType : undefined)
