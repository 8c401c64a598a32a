/** Renames and merges the document's components as a reader expects them. */
import type { Json } from "./Json.ts"

const pascal = (code: string) => code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Bounds that every JSON number has are redundant. */
const tidyBounds = (value: unknown): void => {
  if (Array.isArray(value)) return value.forEach(tidyBounds)
  if (typeof value !== "object" || value === null) return
  const node = value as Json
  if (node["minimum"] === -Number.MAX_SAFE_INTEGER) delete node["minimum"]
  if (node["maximum"] === Number.MAX_SAFE_INTEGER) delete node["maximum"]
  Object.values(node).forEach(tidyBounds)
}

/** The library creates a schema per media type of a body; equal ones are merged. */
const mergeTwins = (spec: Json) => {
  const schemas: Json = spec["components"].schemas
  const twins = Object.keys(schemas).filter((name) => {
    const base = /^(.*)_\d+$/.exec(name)?.[1]
    return base !== undefined && JSON.stringify(schemas[base]) === JSON.stringify(schemas[name])
  })
  for (const twin of twins) delete schemas[twin]
  const rename = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    const node = value as Json
    const base = /^(#\/components\/schemas\/.*)_\d+$/.exec(String(node["$ref"] ?? ""))
    if (base !== null && twins.includes(node["$ref"].split("/").at(-1))) node["$ref"] = base[1]
    Object.values(node).forEach(rename)
  }
  rename(spec)
}

/** Converts problem codes to type names, and removes the library's `Encoded` suffix. */
const rename = (spec: Json): Json => {
  const named = JSON.parse(
    JSON.stringify(spec).replace(
      /#\/components\/schemas\/([\w]+?)(?:Encoded)?"/g,
      (_, name: string) => `#/components/schemas/${pascal(name)}"`,
    ),
  )
  named.components.schemas = Object.fromEntries(
    Object.entries(named.components.schemas).map(([name, schema]) => [pascal(name.replace(/Encoded$/, "")), schema]),
  )
  return named
}

export const tidy = (spec: Json): Json => {
  const named = rename(spec)
  mergeTwins(named)
  tidyBounds(named)
  return named
}
