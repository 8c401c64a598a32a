/**
 * Generates the types and the table of calls of the TypeScript SDK (`packages/sdk/src/generated.ts`) from the OpenAPI
 * document: `node scripts/sdk.ts`. A test checks that the file is current.
 */
import { writeFileSync } from "node:fs"
import * as path from "node:path"
import { document } from "../packages/api/src/openapi/Document.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON Schema
type Json = Record<string, any>

export const file = path.resolve(import.meta.dirname, "../packages/sdk/src/generated.ts")

const identifier = (name: string) => name.replaceAll(/\W/g, "_")
const camel = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const member = (name: string) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name))

const typeOf = (schema: Json): string => {
  if (schema["$ref"] !== undefined) return identifier(schema["$ref"].split("/").at(-1))
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"])
  if (schema["enum"] !== undefined) return schema["enum"].map((value: unknown) => JSON.stringify(value)).join(" | ")
  const union = schema["anyOf"] ?? schema["oneOf"]
  if (union !== undefined) return [...new Set(union.map((one: Json) => typeOf(one)))].join(" | ")
  if (schema["allOf"] !== undefined) return schema["allOf"].map((one: Json) => `(${typeOf(one)})`).join(" & ")
  switch (schema["type"]) {
    case "string":
      return "string"
    case "integer":
    case "number":
      return "number"
    case "boolean":
      return "boolean"
    case "null":
      return "null"
    case "array":
      return `ReadonlyArray<${schema["items"] === undefined ? "unknown" : typeOf(schema["items"])}>`
    case "object":
      return objectOf(schema)
    default:
      return "unknown"
  }
}

const objectOf = ({ properties, required = [], additionalProperties }: Json): string => {
  if (properties === undefined) {
    return typeof additionalProperties === "object"
      ? `Readonly<Record<string, ${typeOf(additionalProperties)}>>`
      : "Readonly<Record<string, unknown>>"
  }
  const members = Object.entries<Json>(properties).map(
    ([name, one]) => `readonly ${member(name)}${required.includes(name) ? "" : "?"}: ${typeOf(one)}`,
  )
  return members.length === 0 ? "Readonly<Record<string, never>>" : `{ ${members.join("; ")} }`
}

const resolved = (schema: Json): Json =>
  schema["$ref"] === undefined ? schema : resolved(document["components"].schemas[schema["$ref"].split("/").at(-1)])

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

interface Call {
  readonly group: string
  readonly name: string
  readonly summary: string
  readonly input: string
  readonly isOptional: boolean
  readonly output: string
  readonly entry: string
}

const callOf = (url: string, method: string, operation: Json): Call => {
  const [group = "", name = ""] = (operation["operationId"] as string).split(".")
  const parameters = (operation["parameters"] ?? []) as ReadonlyArray<Json>
  const own = parameters.filter((one) => one["in"] !== "header")
  const { properties, required } = bodyOf(operation["requestBody"]?.content?.["application/json"]?.schema ?? {})
  const members: Record<string, { readonly schema: Json; readonly isRequired: boolean }> = {}
  for (const one of own) members[one["name"]] = { schema: one["schema"], isRequired: one["required"] === true }
  for (const [key, schema] of Object.entries<Json>(properties)) {
    if (members[key] !== undefined) throw new Error(`${operation["operationId"]} has two members ${key}`)
    members[key] = { schema, isRequired: required.includes(key) }
  }
  const input = Object.entries(members).map(
    ([key, { schema, isRequired }]) => `readonly ${member(key)}${isRequired ? "" : "?"}: ${typeOf(schema)}`,
  )
  const [, success] = Object.entries<Json>(operation["responses"]).find(([status]) => status.startsWith("2"))!
  const types = Object.keys(success["content"] ?? {})
  const schema: Json | undefined = success["content"]?.["application/json"]?.schema
  const answer = schema === undefined ? {} : resolved(schema)
  const list = Object.entries<Json>(answer["properties"] ?? {}).find(
    ([, one]) => resolved(one)["type"] === "array",
  )?.[0]
  const cursor = ["next_cursor", "cursor"].find((key) => answer["properties"]?.[key] !== undefined)
  const isPaged = list !== undefined && cursor !== undefined && own.some((one) => one["name"] === "cursor")
  const hasBody = operation["requestBody"] !== undefined
  const inQuery = own.filter((one) => one["in"] === "query").map((one) => one["name"])
  const flags = {
    ...(isPaged ? { list, cursor } : {}),
    ...(hasBody && inQuery.length > 0 ? { query: inQuery } : {}),
    ...(parameters.some((one) => one["name"].toLowerCase() === "idempotency-key") ? { key: true } : {}),
    ...(types.length > 0 && schema === undefined ? { raw: true } : {}),
  }
  return {
    group: camel(group),
    name,
    summary: operation["summary"],
    input: input.length === 0 ? "{}" : `{ ${input.join("; ")} }`,
    isOptional: Object.values(members).every(({ isRequired }) => !isRequired),
    output: schema !== undefined ? typeOf(schema) : types.length > 0 ? "Response" : "void",
    entry: JSON.stringify([method.toUpperCase(), url, ...(Object.keys(flags).length === 0 ? [] : [flags])]),
  }
}

/** Returns the text of the generated file. */
export const generate = (): string => {
  const schemas = Object.entries<Json>(document["components"].schemas).map(
    ([name, schema]) => `export type ${identifier(name)} = ${typeOf(schema)}`,
  )
  const calls = Object.entries<Json>(document["paths"]).flatMap(([url, methods]) =>
    Object.entries<Json>(methods)
      .filter(([, operation]) => operation["operationId"] !== undefined)
      .map(([method, operation]) => callOf(url, method, operation)),
  )
  const groups = [...Map.groupBy(calls, ({ group }) => group)]
  return [
    "/** Generated by `node scripts/sdk.ts` from the OpenAPI document: types of the API, and the table of its calls. */",
    "/* oxlint-disable */",
    "",
    ...schemas,
    "",
    "/** The input and the output of each call. */",
    "export interface Calls {",
    ...groups.flatMap(([group, all]) => [
      `  readonly ${group}: {`,
      ...all.flatMap(({ name, summary, input, output }) => [
        `    /** ${summary}. */`,
        `    readonly ${name}: { readonly input: ${input}; readonly output: ${output} }`,
      ]),
      "  }",
    ]),
    "}",
    "",
    "/** What the client needs of each call: method, path, and flags. */",
    "export const calls = {",
    ...groups.flatMap(([group, all]) => [
      `  ${group}: {`,
      ...all.map(({ name, entry }) => `    ${name}: ${entry},`),
      "  },",
    ]),
    "} as const",
    "",
  ].join("\n")
}

if (import.meta.main) writeFileSync(file, generate())
