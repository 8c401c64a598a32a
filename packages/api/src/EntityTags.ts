/** Entity tags and conditional requests: `304 Not Modified` and `412 Precondition Failed` (RFC 9110 section 13.1). */
import { hash } from "node:crypto"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import { Headers, type HttpBody, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { RequestContextState } from "./RequestContext.ts"

/** Members that change although nobody edits the resource (decisions.md "Smaller decisions"). */
const incidental = /"connected":(?:true|false)|"(?:last_used_at|polled_at)":(?:null|"[^"]*")/g

const incidentals = ['"connected":', '"last_used_at":', '"polled_at":']

const decoder = new TextDecoder()
/** Searching for one word first is ten times faster on large bodies, which rarely contain these members. */
const lasting = (text: string) =>
  incidentals.some((member) => text.includes(member)) ? text.replace(incidental, "") : text
const tagOf = (text: string) => `"${hash("sha256", lasting(text), "base64url").slice(0, 27)}"`
/** Hashes the encoded text if the body still has it. */
const tagOfBody = (body: HttpBody.Uint8Array) => tagOf(body.text ?? decoder.decode(body.body))

/** Encoded representations have tags of their own (section 8.8.3.3): that of the resource, and the coding. */
const codings = /;(?:br|gzip)"/g
export const tagOfCoding = (tag: string, coding: string) => tag.replace(/"$/, `;${coding}"`)
const withoutCoding = (tags: string) => tags.replace(codings, '"')

/** Returns the tag of `If-None-Match` that is this one, by weak comparison (section 13.1.2) and in any coding. */
const knownOf = (header: string, tag: string): string | undefined =>
  header.trim() === "*"
    ? tag
    : header
        .split(",")
        .map((one) => one.trim().replace(/^W\//, ""))
        .find((one) => withoutCoding(one) === withoutCoding(tag))

/** Returns the request with the tags of resources in `If-Match`: a change replaces the resource, not one of its codings. */
export const withResourceTags = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const condition = request.headers["if-match"]
  return condition === undefined || withoutCoding(condition) === condition
    ? request
    : request.modify({ headers: Headers.set(request.headers, "if-match", withoutCoding(condition)) })
}

/** Returns the entity tag of a value that has no version, computed from its encoding. */
export const tagOfValue = <S extends Schema.Constraint>(schema: S) => {
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(schema as unknown as Schema.Codec<unknown>))
  return (value: S["Type"]) => tagOf(JSON.stringify(encode(value)))
}

/** Returns whether `If-Match` lists the tag; weak tags never match (section 13.1.1). */
const isMatched = (header: string, tag: string) => header.split(",").some((one) => one.trim() === tag)

export const notAsSeen = () =>
  new PreconditionFailed({ detail: "The resource has changed: its entity tag differs from `If-Match`." })

const isMissing = (failure: unknown) => failure instanceof NotFound

/**
 * Checks `If-Match` for a resource without a version: it must exist and be unchanged (section 13.1.1). Returns the current
 * state, which is read only if the request has the header, so that the change can be conditional on it.
 */
export const unchanged = <S extends Schema.Constraint>(schema: S) => {
  const tag = tagOfValue(schema)
  return <E, R>(ifMatch: string | undefined, read: Effect.Effect<S["Type"], E, R>) =>
    ifMatch === undefined || ifMatch.trim() === "*"
      ? Effect.undefined
      : read.pipe(
          Effect.catchIf(isMissing, () => Effect.fail(notAsSeen())),
          Effect.flatMap((value) =>
            isMatched(ifMatch, tag(value)) ? Effect.succeed(value) : Effect.fail(notAsSeen()),
          ),
        )
}

/** Checks `If-Match` for a resource without an entity tag: only `*` matches. */
export const untagged = (ifMatch: string | undefined): Effect.Effect<void, PreconditionFailed> =>
  ifMatch === undefined || ifMatch.trim() === "*"
    ? Effect.void
    : Effect.fail(
        new PreconditionFailed({
          detail: "The resource has no entity tag, so only `If-Match: *` can match. Omit the header.",
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
  const known = ifNoneMatch === undefined ? undefined : knownOf(ifNoneMatch, made)
  if (known !== undefined) return HttpServerResponse.empty({ status: 304, headers: { etag: known } })
  // All headers of the response are set in one operation.
  exchange.headers["etag"] = made
  return response
}
