/**
 * Entity tags and preconditions (RFC 9110 section 13). The tag of a resource is `"v<version>"`. A change can name the
 * versions to which it applies.
 */
import { Schema } from "effect"

/** Versions that `If-Match` names; null if the request has no such header or accepts any version (`*`). */
export const IfVersion = Schema.NullOr(Schema.Array(Schema.Int))
export type IfVersion = typeof IfVersion.Type

export const tagOf = (version: number): string => `"v${version}"`

/** Parses an `If-Match` header. Weak tags never match (section 13.1.1). */
export const ifMatch = (header: string | undefined): IfVersion =>
  header === undefined || header.trim() === "*"
    ? null
    : header.split(",").flatMap((tag) => {
        const version = /^\s*"v(\d{1,9})"\s*$/.exec(tag)?.[1]
        return version === undefined ? [] : [Number(version)]
      })

/** Returns whether the condition permits a change of this version. */
export const matches = (condition: IfVersion, version: number): boolean =>
  condition === null || condition.includes(version)

/** Response headers of an operation that creates a resource or starts to. */
export const located = { location: Schema.String.annotate({ format: "uri-reference" }) }

/** Request headers of an operation that changes a versioned resource. */
export const conditional = {
  "if-match": Schema.optionalKey(
    Schema.String.annotate({ description: "Change only this version (an entity tag, or `*`)." }),
  ),
}
