/**
 * Finds the invalid parts of a request. Validation stops at the first error, so that a large invalid body costs little; for
 * a small body all errors are collected, and the first ones returned.
 */
import { InvalidRequest, type Violation } from "@svc/domain/problems/Problem"
import { Effect, Option, Schema, SchemaAST, SchemaIssue } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint, HttpApiError } from "effect/http-api"

const kinds: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  boolean: "true or false",
  null: "null",
  array: "a list",
  object: "an object",
}

const kind = (word: string) => kinds[word] ?? word

/** The text for an unknown member of a body or query. */
const unknownMember = "unknown member"

const leaf: SchemaIssue.LeafHook = (issue) => {
  switch (issue._tag) {
    case "MissingKey":
      return issue.annotations?.messageMissingKey ?? "missing"
    case "UnexpectedKey":
      return unknownMember
    default:
      return SchemaIssue.defaultLeafHook(issue)
  }
}

/** Rewords `Expected a value with a length of at least 1` in the words of this API. */
const reworded = (message: string): string => {
  const expected = /^Expected (.*)$/s.exec(message)?.[1]
  if (expected === undefined) return message
  return `expected ${expected
    // Applies to lists and texts; the issue does not say which.
    .replace(/^a value with a length of at /, "a length of at ")
    // In a query, every number is text.
    .replace("a string representing a finite number", "a number")
    .split(" | ")
    .map((one) => one.replace(/^(?:an? )?(string|number|boolean|null|array|object)$/, (_, word: string) => kind(word)))
    .join(" or ")}`
}

const formatter = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook: leaf })

/** Returns the violations of a request with their paths. */
const format = (issue: SchemaIssue.Issue) => ({
  issues: formatter(issue).issues.map(({ path, message }) => ({ path, message: reworded(message) })),
})

/** Longer bodies only report their first error. */
const small = 16 * 1024
const violationsAtMost = 20
const messageAtMost = 300

/** RFC 6901 section 3. */
const pointer = (path: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined) =>
  (path ?? [])
    .map((segment) => String(typeof segment === "object" ? segment.key : segment))
    .map((segment) => `/${segment.replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("")
    .slice(0, messageAtMost)

const fromIssue = (issue: SchemaIssue.Issue): ReadonlyArray<Violation> =>
  format(issue)
    .issues.slice(0, violationsAtMost)
    .map(({ path, message }) => ({ path: pointer(path), message: message.slice(0, messageAtMost) }))

type Decoder = (input: unknown) => Effect.Effect<unknown, Schema.SchemaError>
const decoders = new WeakMap<HttpApiEndpoint.Top, Decoder>()
const decoderOf = (endpoint: HttpApiEndpoint.Top): Decoder => {
  const present = decoders.get(endpoint)
  if (present !== undefined) return present
  // Bodies of this API need no services for decoding.
  const schemas = endpoint.payload.get("application/json")?.schemas ?? []
  const schema = Schema.Union(schemas) as unknown as Schema.Codec<unknown>
  const made = Schema.decodeUnknownEffect(schemas.length === 1 ? (schemas[0] as unknown as typeof schema) : schema, {
    onExcessProperty: "error",
    errors: "all",
  })
  decoders.set(endpoint, made)
  return made
}

/** Returns all violations of a small body; undefined for a large one or invalid JSON. */
const all = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const text = yield* Effect.option(request.text)
  if (Option.isNone(text) || text.value.length > small) return undefined
  const parsed = yield* Effect.option(Effect.try(() => JSON.parse(text.value) as unknown))
  if (Option.isNone(parsed)) return undefined
  const decoded = yield* Effect.result(decoderOf(endpoint)(parsed.value))
  return decoded._tag === "Failure" ? fromIssue(decoded.failure.issue) : undefined
})

/** Returns the top-level member names of a schema. */
const membersOf = (schema: Schema.Constraint): ReadonlyArray<string> => {
  const ast = SchemaAST.toEncoded(schema.ast)
  return SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
}

/** Formats a list as `a`, `b` and `c`. */
const listed = (names: ReadonlyArray<string>): string =>
  names
    .map((name) => `\`${name}\``)
    .join(", ")
    .replace(/, (?=[^,]*$)/, " and ")

/** Adds the allowed members to a violation that only reports an unknown member. */
const withExpected =
  (slot: "body" | "query", endpoint: HttpApiEndpoint.Top) =>
  (violation: Violation): Violation => {
    if (violation.message !== unknownMember || !/^\/[^/]*$/.test(violation.path)) return violation
    const schemas =
      slot === "query"
        ? endpoint.query === undefined
          ? []
          : [endpoint.query]
        : (endpoint.payload.get("application/json")?.schemas ?? [])
    const known = [...new Set(schemas.flatMap(membersOf))]
    const message = `${unknownMember}; the ${slot} takes ${known.length === 0 ? "none" : listed(known)}`
    return { ...violation, message: message.slice(0, messageAtMost) }
  }

/** Returns the first violations. */
export const violationsOf = (
  error: HttpApiError.HttpApiSchemaError,
  endpoint: HttpApiEndpoint.Top,
): Effect.Effect<ReadonlyArray<Violation>, never, HttpServerRequest.HttpServerRequest> =>
  error.kind === "Payload"
    ? Effect.map(all(endpoint), (found) => (found ?? fromIssue(error.cause.issue)).map(withExpected("body", endpoint)))
    : Effect.succeed(fromIssue(error.cause.issue).map(withExpected("query", endpoint)))

/** Rejects query parameters at an endpoint that takes none; the library ignores them. */
export const needlessQuery = (
  endpoint: HttpApiEndpoint.Top,
  query: Readonly<Record<string, unknown>>,
): InvalidRequest | undefined => {
  const names = endpoint.query === undefined ? Object.keys(query) : []
  return names.length === 0 ? undefined : unknownMembers("query", endpoint, names)
}

const unknownMembers = (slot: "body" | "query", endpoint: HttpApiEndpoint.Top, names: ReadonlyArray<string>) => {
  const errors = names
    .slice(0, violationsAtMost)
    .map((name) => withExpected(slot, endpoint)({ path: pointer([name]), message: unknownMember }))
  return new InvalidRequest({ detail: `The ${slot} is not valid at ${errors[0]!.path}: ${errors[0]!.message}`, errors })
}

/** Returns the member names of a JSON object, none for null and an empty text, and undefined for other content. */
const namesIn = (text: string): ReadonlyArray<string> | undefined => {
  if (text.trim() === "") return []
  try {
    const value: unknown = JSON.parse(text)
    return value === null ? [] : typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : undefined
  } catch {
    return undefined
  }
}

/**
 * Rejects a body, for endpoints that take none; the library ignores it. A caller that sends members expects an effect,
 * such as other recipients of a draft that is sent. Many clients send `{}` with every request, so it is accepted.
 */
export const rejectBody = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const names = yield* Effect.match(request.text, { onFailure: () => undefined, onSuccess: namesIn })
  if (names === undefined) {
    const message = "expected no body"
    return yield* new InvalidRequest({ detail: "The operation takes no body.", errors: [{ path: "", message }] })
  }
  if (names.length > 0) return yield* unknownMembers("body", endpoint, names)
})
