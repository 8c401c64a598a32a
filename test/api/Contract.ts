/** The OpenAPI document in a short notation: one line per operation, parameter, body, response and schema. */
import { table } from "@svc/domain/problems/Table"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON
type Json = any

const nameOf = (ref: string) => ref.split("/").at(-1)!

/** Returns the type of a schema as TypeScript would write it, with its format and default. */
const typeOf = (schema: Json): string => {
  if (schema === undefined || schema === true) return "unknown"
  if (schema.$ref !== undefined) return nameOf(schema.$ref)
  const alternatives = schema.anyOf ?? schema.oneOf
  const parts = [
    ...(schema.const === undefined ? [] : [JSON.stringify(schema.const)]),
    ...(schema.enum === undefined ? [] : [schema.enum.map((one: Json) => JSON.stringify(one)).join(" | ")]),
    ...(alternatives === undefined ? [] : [alternatives.map(typeOf).join(" | ")]),
    ...(schema.allOf === undefined ? [] : [schema.allOf.map(typeOf).join(" & ")]),
    ...(schema.items === undefined ? [] : [`Array<${typeOf(schema.items)}>`]),
    ...(schema.properties === undefined ? [] : [membersOf(schema)]),
    ...(typeof schema.additionalProperties === "object" ? [`Record<${typeOf(schema.additionalProperties)}>`] : []),
  ].filter((part) => part !== "")
  const type = parts.length > 0 ? parts.join(" & ") : [schema.type ?? "unknown"].flat().join(" | ")
  const format = schema.format === undefined ? "" : `(${schema.format})`
  return `${type}${format}${schema.default === undefined ? "" : ` = ${JSON.stringify(schema.default)}`}`
}

const membersOf = ({ properties, required = [] }: Json): string => {
  const members = Object.entries(properties).map(
    ([name, schema]) => `${name}${required.includes(name) ? "" : "?"}: ${typeOf(schema)}`,
  )
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`
}

/** Returns the media types with their type, which all media types of a body share. */
const contentOf = (content: Json = {}) => {
  const types = Map.groupBy(Object.entries<Json>(content), ([, { schema }]) => typeOf(schema))
  return [...types].map(([type, media]) => `${media.map(([name]) => name).join(" or ")} ${type}`).join(" or ")
}

/** Members that every problem has. */
const ofProblems = new Set(
  "type title detail instance status code agent_hint doc_url request_id related_url errors retry_after_seconds".split(
    " ",
  ),
)

/** Returns a schema; a problem only with its status, what its reader should do, and its own members. */
const schemaOf = (name: string, schema: Json): string => {
  const { code, doc_url, status } = schema.properties ?? {}
  if (doc_url === undefined) return `${name} = ${typeOf(schema)}`
  const row = Object.entries(table).find(([one]) => one === code.const || code.enum?.includes(one))?.[1]
  const own = Object.entries(schema.properties).filter(([member]) => !ofProblems.has(member))
  return `${name} = ${typeOf(status)} ${row?.agent_hint} ${membersOf({ ...schema, properties: Object.fromEntries(own) })}`
}

export const contractOf = (document: Json): string => {
  const operations = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).flatMap(([method, operation]) => {
      const { parameters, requestBody, responses, security } = operation
      const [successes, failures] = [true, false].map((isSuccess) =>
        Object.entries<Json>(responses).filter(([status]) => Number(status) < 400 === isSuccess),
      )
      return [
        `${method.toUpperCase()} ${path}${security?.length === 0 ? " without credential" : ""}`,
        ...parameters.map(
          ({ in: place, name, required, schema }: Json) =>
            `  ${place} ${name}${required === true ? "" : "?"}: ${typeOf(schema)}`,
        ),
        ...(requestBody === undefined
          ? []
          : [`  body${requestBody.required === true ? "" : "?"}: ${contentOf(requestBody.content)}`]),
        ...successes!.map(([status, { content, headers = {} }]) =>
          [" ", status, contentOf(content), ...Object.keys(headers)].filter((part) => part !== "").join(" "),
        ),
        `  ${failures!.map(([status]) => status).join(" ")}`,
        "",
      ]
    }),
  )
  const schemas = Object.entries<Json>(document.components.schemas).map(([name, schema]) => schemaOf(name, schema))
  return [...operations, ...schemas.toSorted(), ""].join("\n")
}
