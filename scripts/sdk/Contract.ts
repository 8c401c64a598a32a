/** The calls of the API as the generators of the SDKs need them, from the OpenAPI document. */
import { document } from "../../packages/api/src/openapi/Document.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON Schema
export type Json = Record<string, any>

/** A member of a call's input. */
export interface Member {
  readonly name: string
  readonly place: "path" | "query" | "body"
  readonly schema: Json
  readonly isRequired: boolean
  readonly description: string | undefined
}

export interface Call {
  readonly group: string
  readonly name: string
  readonly summary: string
  readonly method: string
  readonly url: string
  readonly members: ReadonlyArray<Member>
  /** The schema of the response; `raw` if it is not JSON, `stream` for a stream of Events, undefined without a body. */
  readonly output: Json | "raw" | "stream" | undefined
  /** The member of the response with the entries, and the one with the cursor of the next page. */
  readonly pages: { readonly list: string; readonly cursor: string } | undefined
  /** Members that are in the query although the call has a body. */
  readonly inQuery: ReadonlyArray<string>
  readonly takesKey: boolean
  /** The codes of the problems that the call can fail with. */
  readonly problems: ReadonlyArray<string>
}

/** The schemas by name. */
export const schemas: Readonly<Record<string, Json>> = document["components"].schemas

export const identifier = (name: string) => name.replaceAll(/\W/g, "_")

/** Returns the name of the schema that a reference points to. */
export const nameOf = (reference: string): string => identifier(reference.split("/").at(-1)!)

export const resolved = (schema: Json): Json =>
  schema["$ref"] === undefined ? schema : resolved(schemas[schema["$ref"].split("/").at(-1)]!)

/** Returns the members of a body as of one object: those of alternatives are optional. */
const bodyOf = (schema: Json): { readonly properties: Json; readonly required: ReadonlyArray<string> } => {
  const body = resolved(schema)
  const parts: ReadonlyArray<Json> = body["anyOf"] ?? body["oneOf"] ?? body["allOf"] ?? []
  const inner = parts.map(bodyOf)
  return {
    properties: Object.assign({}, ...inner.map(({ properties }) => properties), body["properties"]),
    required: [
      ...(body["required"] ?? []),
      ...(body["allOf"] === undefined ? [] : inner.flatMap((one) => one.required)),
    ],
  }
}

const problemsOf = (operation: Json): ReadonlyArray<string> =>
  Object.values<Json>(operation["responses"])
    .flatMap(({ content }) => Object.keys(content?.["application/problem+json"]?.examples ?? {}))
    .toSorted()

const callOf = (url: string, method: string, operation: Json): Call => {
  const [group = "", name = ""] = (operation["operationId"] as string).split(".")
  const parameters = (operation["parameters"] ?? []) as ReadonlyArray<Json>
  const own = parameters.filter((one) => one["in"] !== "header")
  const { properties, required } = bodyOf(operation["requestBody"]?.content?.["application/json"]?.schema ?? {})
  const members = [
    ...own.map((one): Member => ({
      name: one["name"],
      place: one["in"],
      schema: one["schema"],
      isRequired: one["required"] === true,
      description: one["description"],
    })),
    ...Object.entries<Json>(properties).map(([key, schema]): Member => ({
      name: key,
      place: "body",
      schema,
      isRequired: required.includes(key),
      description: schema["description"],
    })),
  ]
  if (new Set(members.map((one) => one.name)).size < members.length) {
    throw new Error(`${operation["operationId"]} has two members of the same name`)
  }
  const [, success] = Object.entries<Json>(operation["responses"]).find(([status]) => status.startsWith("2"))!
  const types = Object.keys(success["content"] ?? {})
  const schema: Json | undefined = success["content"]?.["application/json"]?.schema
  const body = schema === undefined ? {} : resolved(schema)
  const list = Object.entries<Json>(body["properties"] ?? {}).find(([, one]) => resolved(one)["type"] === "array")?.[0]
  const cursor = ["next_cursor", "cursor"].find((key) => body["properties"]?.[key] !== undefined)
  const isPaged = list !== undefined && cursor !== undefined && own.some((one) => one["name"] === "cursor")
  return {
    group,
    name,
    summary: operation["summary"],
    method: method.toUpperCase(),
    url,
    members,
    output: schema ?? (types.includes("text/event-stream") ? "stream" : types.length > 0 ? "raw" : undefined),
    pages: isPaged ? { list, cursor } : undefined,
    inQuery:
      operation["requestBody"] === undefined
        ? []
        : own.filter((one) => one["in"] === "query").map((one) => one["name"] as string),
    takesKey: parameters.some((one) => one["name"].toLowerCase() === "idempotency-key"),
    problems: problemsOf(operation),
  }
}

const all = Object.entries<Json>(document["paths"]).flatMap(([url, methods]) =>
  Object.entries<Json>(methods)
    .filter(([, operation]) => operation["operationId"] !== undefined)
    .map(([method, operation]) => callOf(url, method, operation)),
)

/** The calls by group, in the order of the document. */
export const groups: ReadonlyArray<readonly [group: string, calls: ReadonlyArray<Call>]> = [
  ...Map.groupBy(all, ({ group }) => group),
]
