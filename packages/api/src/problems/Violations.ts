/**
 * What is wrong with a request, place by place. The library stops at the first place, so that a large body of mistakes
 * costs no more than one; of a small one all places are looked for, and the first ones told.
 */
import { InvalidRequest, type Violation } from "@svc/domain/problems/Problem"
import { Effect, Option, Schema, SchemaAST, type SchemaIssue } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint, HttpApiError } from "effect/http-api"
import { format, unknownMember } from "./Wording.ts"

/** Bodies of more characters are told their first mistake only. */
const small = 16 * 1024
const toldAtMost = 20
const messageAtMost = 300

/** RFC 6901 section 3. */
const pointer = (path: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined) =>
  (path ?? [])
    .map((segment) => String(typeof segment === "object" ? segment.key : segment))
    .map((segment) => `/${segment.replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("")
    .slice(0, messageAtMost)

const told = (issue: SchemaIssue.Issue): ReadonlyArray<Violation> =>
  format(issue)
    .issues.slice(0, toldAtMost)
    .map(({ path, message }) => ({ path: pointer(path), message: message.slice(0, messageAtMost) }))

type Decoder = (input: unknown) => Effect.Effect<unknown, Schema.SchemaError>
const decoders = new WeakMap<HttpApiEndpoint.Top, Decoder>()
const decoderOf = (endpoint: HttpApiEndpoint.Top): Decoder => {
  const present = decoders.get(endpoint)
  if (present !== undefined) return present
  // A body of this API is decoded without services.
  const schemas = endpoint.payload.get("application/json")?.schemas ?? []
  const schema = Schema.Union(schemas) as unknown as Schema.Codec<unknown>
  const made = Schema.decodeUnknownEffect(schemas.length === 1 ? (schemas[0] as unknown as typeof schema) : schema, {
    onExcessProperty: "error",
    errors: "all",
  })
  decoders.set(endpoint, made)
  return made
}

/** Everything that is wrong with a small body; undefined for a large one, or one that is no JSON. */
const all = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const text = yield* Effect.option(request.text)
  if (Option.isNone(text) || text.value.length > small) return undefined
  const parsed = yield* Effect.option(Effect.try(() => JSON.parse(text.value) as unknown))
  if (Option.isNone(parsed)) return undefined
  const decoded = yield* Effect.result(decoderOf(endpoint)(parsed.value))
  return decoded._tag === "Failure" ? told(decoded.failure.issue) : undefined
})

/** Names of the members that a schema takes at its top. */
const membersOf = (schema: Schema.Constraint): ReadonlyArray<string> => {
  const ast = SchemaAST.toEncoded(schema.ast)
  return SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
}

/** `a`, `b` and `c`. */
const listed = (names: ReadonlyArray<string>): string =>
  names
    .map((name) => `\`${name}\``)
    .join(", ")
    .replace(/, (?=[^,]*$)/, " and ")

/** Adds what the body or the query takes to a violation that says no more than that a member is unknown. */
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

/** The places, the first one first. */
export const violationsOf = (
  error: HttpApiError.HttpApiSchemaError,
  endpoint: HttpApiEndpoint.Top,
): Effect.Effect<ReadonlyArray<Violation>, never, HttpServerRequest.HttpServerRequest> =>
  error.kind === "Payload"
    ? Effect.map(all(endpoint), (found) => (found ?? told(error.cause.issue)).map(withExpected("body", endpoint)))
    : Effect.succeed(told(error.cause.issue).map(withExpected("query", endpoint)))

/** Returns the refusal of query parameters at an endpoint that has none, where the library looks at no query. */
export const needlessQuery = (
  endpoint: HttpApiEndpoint.Top,
  query: Readonly<Record<string, unknown>>,
): InvalidRequest | undefined => {
  const names = endpoint.query === undefined ? Object.keys(query) : []
  if (names.length === 0) return undefined
  const errors = names
    .slice(0, toldAtMost)
    .map((name) => withExpected("query", endpoint)({ path: pointer([name]), message: unknownMember }))
  return new InvalidRequest({ detail: `The query is not valid at ${errors[0]!.path}: ${errors[0]!.message}`, errors })
}
