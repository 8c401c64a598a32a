/**
 * Entity tags of secrets. A secret that is created again after its deletion starts at version 1, so the tag also has the
 * time of creation: a tag of the deleted secret must not match the new one.
 */

/** Tags that `If-Match` names, without their quotes; null if the request has no such header or accepts any version (`*`). */
export type IfTag = ReadonlyArray<string> | null

/** Returns the tag of a secret without its quotes, as the store computes it. */
export const bareTag = (version: number, createdAt: Date): string => `v${version}.${createdAt.getTime()}`

/** Returns the entity tag of a version of a secret. */
export const secretTag = (version: number, createdAt: Date): string => `"${bareTag(version, createdAt)}"`

/** Parses an `If-Match` header. Weak tags never match (RFC 9110 section 13.1.1). */
export const ifTag = (header: string | undefined): IfTag =>
  header === undefined || header.trim() === "*"
    ? null
    : header.split(",").flatMap((tag) => /^\s*"(v\d{1,9}\.\d{1,15})"\s*$/.exec(tag)?.[1] ?? [])
