/**
 * Entity tags and preconditions (RFC 9110 section 13). A resource that can be changed has a version, and its tag is
 * `"v<version>"`; a change may name the versions it is meant for.
 */
import { Schema } from "effect"

/** The versions of `If-Match`; null when the call has no such condition or takes any version (`*`). */
export const IfVersion = Schema.NullOr(Schema.Array(Schema.Int))
export type IfVersion = typeof IfVersion.Type

export const tagOf = (version: number): string => `"v${version}"`

/** Parses an `If-Match` header; weak tags never match (section 13.1.1). */
export const ifMatch = (header: string | undefined): IfVersion =>
  header === undefined || header.trim() === "*"
    ? null
    : header.split(",").flatMap((tag) => {
        const version = /^\s*"v(\d{1,9})"\s*$/.exec(tag)?.[1]
        return version === undefined ? [] : [Number(version)]
      })

/** Whether a change meant for `condition` may happen to the present version. */
export const matches = (condition: IfVersion, version: number): boolean =>
  condition === null || condition.includes(version)

/** Response headers of what made something, or began to. */
export const located = { location: Schema.String.annotate({ format: "uri-reference" }) }

/** Request headers of an endpoint that changes a versioned resource. */
export const conditional = {
  "if-match": Schema.optionalKey(
    Schema.String.annotate({ description: "Change only this version (an entity tag, or `*`)." }),
  ),
}
