/**
 * The strictness of the document's objects. Request objects are closed, because unknown members are rejected; response
 * objects are open, because a new member must not break a client.
 */

/** The document during its construction: JSON that the library's types describe only partly. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
export type Json = Record<string, any>

const isObject = (node: unknown): node is Json => typeof node === "object" && node !== null && !Array.isArray(node)

const each = (node: unknown, visit: (node: Json) => void): void => {
  if (Array.isArray(node)) return node.forEach((one) => each(one, visit))
  if (!isObject(node)) return
  visit(node)
  for (const [key, value] of Object.entries(node)) if (key !== "example" && key !== "examples") each(value, visit)
}

const prefix = "#/components/schemas/"

/** Returns the names of the schemas that are reachable from a node. */
const reached = (from: unknown, schemas: Json, found = new Set<string>()): Set<string> => {
  each(from, (node) => {
    const name = typeof node["$ref"] === "string" ? node["$ref"].slice(prefix.length) : undefined
    if (name === undefined || found.has(name) || schemas[name] === undefined) return
    found.add(name)
    reached(schemas[name], schemas, found)
  })
  return found
}

const open = (node: unknown) =>
  each(node, (one) => {
    if (one["additionalProperties"] === false) delete one["additionalProperties"]
  })

/** Opens the objects of responses. Throws if a schema is used by requests too, because it would have to be both. */
export const openAnswers = (document: Json): void => {
  const schemas: Json = document["components"].schemas
  const operations = Object.values<Json>(document["paths"]).flatMap((path) => Object.values<Json>(path))
  const requestSchemas = reached(
    operations.map((operation) => operation["requestBody"] ?? {}),
    schemas,
  )
  const responseSchemas = reached(
    operations.map((operation) => operation["responses"]),
    schemas,
  )
  for (const name of requestSchemas) {
    if (responseSchemas.has(name)) throw new Error(`${name} is part of requests and of answers`)
  }
  for (const operation of operations) open(operation["responses"])
  for (const [name, schema] of Object.entries(schemas)) if (!requestSchemas.has(name)) open(schema)
}

/** Moves keywords beside a reference out of `allOf` (JSON Schema 2020-12), and removes duplicates of lists. */
export const plain = (document: Json): void =>
  each(document, (node) => {
    const parts: ReadonlyArray<Json> | undefined = Array.isArray(node["allOf"]) ? node["allOf"] : undefined
    if (parts !== undefined) {
      const merged: Json = {}
      const keys = [
        ...Object.keys(node).filter((key) => key !== "allOf"),
        ...parts.flatMap((part) => Object.keys(part)),
      ]
      // Only if no keyword would occur twice.
      if (new Set(keys).size === keys.length) {
        for (const part of parts) Object.assign(merged, part)
        delete node["allOf"]
        Object.assign(node, merged)
      }
    }
    const first =
      Array.isArray(node["prefixItems"]) && node["prefixItems"].length === 1 ? node["prefixItems"][0] : undefined
    if (first !== undefined && JSON.stringify(first) === JSON.stringify(node["items"])) delete node["prefixItems"]
  })

/** The members that every problem has. */
const always = ["type", "title", "status", "detail", "code", "agent_hint", "instance", "doc_url"]

export const completeProblems = (document: Json): void => {
  for (const schema of Object.values<Json>(document["components"].schemas)) {
    if (!isObject(schema["properties"]) || schema["properties"]["agent_hint"] === undefined) continue
    schema["required"] = [...new Set([...always, ...(schema["required"] ?? [])])]
    for (const member of ["doc_url", "type"]) {
      schema["properties"][member]["format"] = member === "type" ? "uri-reference" : "uri"
    }
    schema["properties"]["status"]["type"] = "integer"
  }
}
