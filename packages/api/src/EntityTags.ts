/** Entity tags and conditional requests: `304 Not Modified` and `412 Precondition Failed` (RFC 9110 section 13.1). */
import { hash } from "node:crypto"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Effect, Schema } from "effect"
import { type HttpBody, HttpServerResponse } from "effect/http"
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

/** Returns whether `If-None-Match` lists the tag, by weak comparison (section 13.1.2). */
const isKnown = (header: string, tag: string) =>
  header.trim() === "*" || header.split(",").some((one) => one.trim().replace(/^W\//, "") === tag)

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
 * Checks `If-Match` for a resource without a version: it must exist and be unchanged (section 13.1.1). The current state is
 * read only if the request has the header.
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
  if (ifNoneMatch !== undefined && isKnown(ifNoneMatch, made)) {
    return HttpServerResponse.empty({ status: 304, headers: { etag: made } })
  }
  // All headers of the response are set in one operation.
  exchange.headers["etag"] = made
  return response
}
