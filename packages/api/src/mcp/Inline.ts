/** Inlines references of the OpenAPI document, because MCP clients receive schemas without its components. */
import { document } from "../openapi/Document.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON Schema
type Json = Record<string, any>

export const inline = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(inline)
  if (typeof schema !== "object" || schema === null) return schema
  const node = schema as Json
  if (typeof node["$ref"] === "string") return inline(document["components"].schemas[node["$ref"].split("/").at(-1)!])
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, inline(value)]))
}
