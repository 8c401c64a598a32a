/** Entity tags of answers, and the answer 304 where the caller has the representation already (RFC 9110 section 13.1.2). */
import { hash } from "node:crypto"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import { type HttpBody, HttpServerResponse } from "effect/http"
import type { RequestContextState } from "./RequestContext.ts"

/** What changes without anyone changing the resource (decisions.md "Smaller decisions"). */
const incidental = /"connected":(?:true|false)|"(?:last_used_at|polled_at)":(?:null|"[^"]*")/g

const incidentals = ['"connected":', '"last_used_at":', '"polled_at":']

const decoder = new TextDecoder()
/** An answer of megabytes seldom has any of them, and looking for one word is ten times faster than for a pattern. */
const lasting = (text: string) =>
  incidentals.some((member) => text.includes(member)) ? text.replace(incidental, "") : text
const tagOf = (text: string) => `"${hash("sha256", lasting(text), "base64url").slice(0, 27)}"`
/** Of the text that was encoded, where the body still has it. */
const tagOfBody = (body: HttpBody.Uint8Array) => tagOf(body.text ?? decoder.decode(body.body))

/** Whether `If-None-Match` lists the tag; comparison is weak (section 13.1.2). */
const isKnown = (header: string, tag: string) =>
  header.trim() === "*" || header.split(",").some((one) => one.trim().replace(/^W\//, "") === tag)

/** The entity tag of a value without a version: of how it is answered. */
export const tagOfValue = <S extends Schema.Constraint>(schema: S) => {
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(schema as unknown as Schema.Codec<unknown>))
  return (value: S["Type"]) => tagOf(JSON.stringify(encode(value)))
}

/** Whether `If-Match` lists the tag; weak tags never match (section 13.1.1). */
const isMatched = (header: string, tag: string) => header.split(",").some((one) => one.trim() === tag)

export const notAsSeen = () => new PreconditionFailed({ detail: "The resource is not as `If-Match` has it." })

const isMissing = (failure: unknown) => failure instanceof NotFound

/**
 * `If-Match` on what has no version: whether it is still as the caller saw it (section 13.1.1), which something missing
 * is not. It is looked at only where the caller asks for that.
 */
export const unchanged = <S extends Schema.Constraint>(schema: S) => {
  const tag = tagOfValue(schema)
  return <E, R>(ifMatch: string | undefined, read: Effect.Effect<S["Type"], E, R>) =>
    ifMatch === undefined || ifMatch.trim() === "*"
      ? Effect.void
      : read.pipe(
          Effect.catchIf(isMissing, () => Effect.fail(notAsSeen())),
          Effect.flatMap((value) => (isMatched(ifMatch, tag(value)) ? Effect.void : Effect.fail(notAsSeen()))),
        )
}

/** `If-Match` on what has no entity tag: only `*` holds, since no tag can be the one that is named. */
export const untagged = (ifMatch: string | undefined): Effect.Effect<void, PreconditionFailed> =>
  ifMatch === undefined || ifMatch.trim() === "*"
    ? Effect.void
    : Effect.fail(
        new PreconditionFailed({
          detail: "The resource has no entity tag, so no `If-Match` but `*` can hold. Leave the header out.",
        }),
      )

export const applyTag = (
  exchange: RequestContextState,
  method: string,
  ifNoneMatch: string | undefined,
  response: HttpServerResponse.HttpServerResponse,
): HttpServerResponse.HttpServerResponse => {
  if ((method !== "GET" && method !== "HEAD") || response.status !== 200) return response
  const made =
    exchange.tagged && response.body._tag === "Uint8Array" ? tagOfBody(response.body) : response.headers["etag"]
  if (made === undefined) return response
  if (ifNoneMatch !== undefined && isKnown(ifNoneMatch, made)) {
    return HttpServerResponse.empty({ status: 304, headers: { etag: made } })
  }
  // With the other headers of the answer, which are set in one go.
  exchange.headers["etag"] = made
  return response
}
