/**
 * `Idempotency-Key` of a request that changes something: a repeat gets the first answer, and a request that was cut short is
 * resumed as the same command. A tool call without a key repeats an equal call of the last minute, since clients retry tool
 * calls without telling the model (`Exchange.equalTo`).
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { Conflict, IdempotencyKeyInProgress, InvalidRequest } from "@svc/domain/problems/Problem"
import { IdempotencyRecords, type Scope, type StoredAnswer } from "@svc/cluster/idempotency/IdempotencyRecords"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Option, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { RequestContext } from "../RequestContext.ts"

/** Headers of an answer that belong to what was made, not to the one exchange. */
const kept = ["content-type", "location", "etag"]

/** Printable ASCII, as an sf-string's content or bare. */
const keyOf = (header: string): string | undefined => /^"?([\x21\x23-\x7e ]{1,255}?)"?$/.exec(header)?.[1]

const again = ({ status, headers, body }: StoredAnswer) =>
  body === null || body === ""
    ? HttpServerResponse.empty({ status, headers })
    : HttpServerResponse.text(body, { status, headers, contentType: headers["content-type"] ?? "application/json" })

/**
 * A refusal that changed nothing and may be another one next time: the request was not well formed, the credential not
 * good, or it is to be made again later. The key stays free for the request as it should have been.
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

export const make = Effect.gen(function* () {
  const records = yield* IdempotencyRecords

  /** Runs the `handler` of a write, or answers for it. `secret`: the answer carries one, so only the fact is kept. */
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
        detail: "The Idempotency-Key is not 1 to 255 printable characters.",
        errors: [{ path: "/idempotency-key", message: "1 to 255 printable ASCII characters" }],
      })
    }
    const scope: Scope = { credentialId: caller.credentialId, operation: `${request.method} ${request.url}`, key }
    const body = yield* Effect.catch(request.text, () => Effect.succeed(""))
    const claim = yield* equalTo === undefined
      ? records.claim(scope, body)
      : Effect.catchTag(records.claim(scope, body, Timing.equalCallMillis), "idempotency_key_in_progress", () =>
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
    return yield* handler
  })
})

const contentType = (response: HttpServerResponse.HttpServerResponse) =>
  response.headers["content-type"] ?? (response.body._tag === "Uint8Array" ? response.body.contentType : undefined)
