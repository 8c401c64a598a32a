/** Every call of the API as a request, from the OpenAPI document and not by the generator of the SDKs. */
import { document } from "@svc/api/openapi/Document"

type Json = Record<string, any>

const schemas = (document as Json)["components"]["schemas"] as Record<string, Json>
const resolved = (schema: Json = {}): Json =>
  schema["$ref"] === undefined ? schema : resolved(schemas[String(schema["$ref"]).split("/").at(-1)!])

/** Returns the members of a body, of all alternatives. */
const membersOf = (schema: Json | undefined): ReadonlyArray<string> => {
  const body = resolved(schema)
  const parts = ["anyOf", "oneOf", "allOf"].flatMap((kind) => (body[kind] ?? []) as ReadonlyArray<Json>)
  return [...new Set([...parts.flatMap(membersOf), ...Object.keys(body["properties"] ?? {})])]
}

/** A value that must be escaped in a path and in a query. */
const valueOf = (name: string): string | number => (["seconds", "wait"].includes(name) ? 7 : `${name} ä/&?`)

const escaped = (text: string | number) => encodeURIComponent(String(text))

export const operations = Object.entries<Json>((document as Json)["paths"]).flatMap(([path, methods]) =>
  Object.entries<Json>(methods).flatMap(([method, operation]) => {
    const [group, name] = String(operation["operationId"]).split(".")
    if (group === undefined || name === undefined) return []
    const parameters = (operation["parameters"] ?? []) as ReadonlyArray<Json>
    const named = (place: string) => parameters.filter((one) => one["in"] === place).map((one) => String(one["name"]))
    const body = membersOf(operation["requestBody"]?.content?.["application/json"]?.schema)
    const input = Object.fromEntries([...named("path"), ...named("query"), ...body].map((one) => [one, valueOf(one)]))
    const [, success] = Object.entries<Json>(operation["responses"]).find(([status]) => status.startsWith("2"))!
    const page = resolved(success["content"]?.["application/json"]?.schema)["properties"] as Json | undefined
    const list = Object.keys(page ?? {}).find((one) => resolved(page![one])["type"] === "array")
    const cursor = ["next_cursor", "cursor"].find((one) => page?.[one] !== undefined)
    return [
      {
        group,
        name,
        method: method.toUpperCase(),
        path: path.replaceAll(/\{(\w+)\}/g, (_, one: string) => escaped(valueOf(one))),
        query: Object.fromEntries(named("query").map((one) => [one, String(valueOf(one))])),
        body: body.length === 0 ? null : Object.fromEntries(body.map((one) => [one, valueOf(one)])),
        hasKey: named("header").some((one) => one.toLowerCase() === "idempotency-key"),
        wait: named("query").some((one) => ["seconds", "wait"].includes(one)) ? 7 : 0,
        /** Which member selects the Identity: `handle` in the path, or `identity`. */
        identity: path.includes("{handle}") ? "handle" : "identity" in input ? "identity" : null,
        pages: list !== undefined && cursor !== undefined && "cursor" in input ? { list, cursor } : null,
        isStream: success["content"]?.["text/event-stream"] !== undefined,
        input,
      },
    ]
  }),
)
