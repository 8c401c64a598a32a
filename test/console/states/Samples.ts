/**
 * Responses made from the OpenAPI document. Each variant of a response chooses other members of its enumerations, other
 * members that are null or missing, and lists of another length, so that a page shows each of its states.
 */
import { document } from "@svc/api/openapi/Document"

type Json = Readonly<Record<string, any>>

const resolved = (schema: Json): Json =>
  typeof schema["$ref"] === "string"
    ? resolved((document as Json)["components"].schemas[schema["$ref"].split("/").at(-1)!])
    : schema

/** A small number that depends on the place of a member and on the variant. */
const pick = (place: string, variant: number) => {
  let hash = variant * 2_654_435_761
  for (const char of place) hash = Math.imul(hash ^ char.charCodeAt(0), 16_777_619)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** The first variant has everything, the second nothing; the others vary. */
export const variants = { full: 0, bare: 1 }
/** Elements of a list, and of a list within one. */
const [listed, nested] = [4, 2]

/** The text of a member, which is the same in every variant and differs between the elements of a list. */
const text = (schema: Json, example: unknown, name: string, at: number): string => {
  const given = typeof example === "string" ? example : undefined
  if (schema["format"] === "date-time") {
    const away = ((pick(name, at) % 60) - (/expires|until|next|ends|lapses/.test(name) ? 0 : 60)) * 7_300_000
    return new Date(Date.parse("2026-11-20T12:00:00.000Z") + away).toISOString()
  }
  if (schema["format"] === "date") return given ?? "2026-11-20"
  const id = /^\^(\w+_)\[0-9a-hjkmnp-tv-z\]\{26\}\$$/.exec(schema["pattern"] ?? "")?.[1]
  if (id !== undefined) return `${id}01kjr8xr3v7k2t9m4q6w8y${String(at).padStart(4, "0")}`
  if (schema["format"] === "uuid") return `0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e${String(at).padStart(4, "0")}`
  if (given !== undefined)
    return at === 0 || given.length > 200 || /[/:<]/.test(given)
      ? given
      : given.replace(/^[^@.]*/, (first) => `${first}${at}`)
  if (schema["format"] === "uri") return `https://${name.replace(/\W/g, "")}.example/`
  if (schema["format"] === "email") return `${name}@mail.example`
  return `${name} ${at}`
}

const sample = (given: Json, example: any, place: string, variant: number, index: number): any => {
  const schema = resolved(given)
  const name = place.split("/").at(-1)!
  const options: ReadonlyArray<Json> = schema["anyOf"] ?? schema["oneOf"]
  if (options !== undefined) {
    const isNull = (one: Json) => resolved(one)["type"] === "null"
    const values = options.filter((one) => !isNull(one))
    if (values.length < options.length) {
      if (variant === variants.bare || (variant > 1 && pick(place, variant + index) % 2 === 0)) return null
    }
    const isText = values.some((one) => resolved(one)["type"] === "number")
    const chosen = values[variant < 2 || isText ? 0 : pick(`${place}?`, variant + index) % values.length]
    return chosen === undefined ? null : sample(chosen, example ?? undefined, place, variant, index)
  }
  if (Array.isArray(schema["type"])) {
    const types: ReadonlyArray<string> = schema["type"]
    return sample(
      { ...schema, type: undefined, anyOf: types.map((type) => ({ ...schema, type })) },
      example,
      place,
      variant,
      index,
    )
  }
  if (schema["const"] !== undefined) return schema["const"]
  if (schema["enum"] !== undefined) {
    const values: ReadonlyArray<unknown> = schema["enum"]
    if (variant === variants.full && index === 0 && values.includes(example)) return example
    return values[(variant + index + Math.max(0, values.indexOf(example))) % values.length]
  }
  switch (schema["type"]) {
    case "null":
      return null
    case "boolean":
      return variant === variants.full && index === 0
        ? typeof example === "boolean"
          ? example
          : true
        : variant === variants.bare
          ? false
          : pick(place, variant + index) % 2 === 0
    case "integer":
    case "number": {
      if (variant === variants.bare) return schema["minimum"] ?? 0
      const value = typeof example === "number" ? example + index : (pick(place, index) % 90) + 3
      return Math.min(Math.max(value, schema["minimum"] ?? 0), schema["maximum"] ?? Infinity)
    }
    case "array": {
      if (variant === variants.bare) return []
      const length = Math.min(index > 0 || place.includes("[]") ? nested : listed, schema["maxItems"] ?? Infinity)
      const values: ReadonlyArray<any> = Array.isArray(example) ? example : []
      const item = schema["items"] ?? {}
      if (resolved(item)["enum"] !== undefined) {
        const all: ReadonlyArray<unknown> = resolved(item)["enum"]
        return variant === variants.full ? all : all.filter((_, at) => pick(place, variant + at) % 2 === 0)
      }
      return Array.from({ length }, (_, at) =>
        sample(
          item,
          values.length === 0 ? undefined : values[at % values.length],
          `${place}[]`,
          variant,
          index * listed + at,
        ),
      )
    }
    case "object": {
      const required = new Set<string>(schema["required"] ?? [])
      const own = Object.entries<Json>(schema["properties"] ?? {}).flatMap(([key, value]) => {
        const isLeft =
          !required.has(key) &&
          (variant === variants.bare || (variant > 1 && pick(`${place}/${key}`, variant + index) % 3 === 0))
        return isLeft ? [] : [[key, sample(value, example?.[key], `${place}/${key}`, variant, index)]]
      })
      const others = typeof schema["additionalProperties"] === "object" && own.length === 0 && variant !== variants.bare
      return Object.fromEntries(
        others
          ? [
              ...own,
              ...["one", "two"].map((key) => [
                key,
                sample(schema["additionalProperties"], undefined, `${place}/${key}`, variant, index),
              ]),
            ]
          : own,
      )
    }
    case "string":
      return text(schema, example, name, index)
    default:
      return example ?? {}
  }
}

interface Route {
  readonly method: string
  readonly path: string
  readonly pattern: RegExp
  readonly answer: (variant: number) => { readonly status: number; readonly body: unknown }
}

const routes: ReadonlyArray<Route> = Object.entries<Json>((document as Json)["paths"]).flatMap(([path, methods]) =>
  Object.entries<Json>(methods).flatMap(([method, operation]) => {
    const found = Object.entries<Json>(operation["responses"] ?? {}).find(([status]) => status.startsWith("2"))
    if (found === undefined) return []
    const [status, { content }] = found
    const json = content?.["application/json"]
    return [
      {
        method: method.toUpperCase(),
        path,
        pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "([^/]+)")}$`),
        answer: (variant: number) => ({
          status: Number(status),
          body:
            json === undefined
              ? undefined
              : sample(
                  json.schema,
                  json.example ?? Object.values<Json>(json.examples ?? {})[0]?.["value"],
                  path,
                  variant,
                  0,
                ),
        }),
      },
    ]
  }),
)

/** Returns the route of a request; a literal path is preferred to one with parameters. */
export const routeOf = (method: string, path: string): Route | undefined =>
  routes
    .filter((route) => route.method === method && route.pattern.test(path))
    .toSorted((one, other) => (one.path.match(/\{/g)?.length ?? 0) - (other.path.match(/\{/g)?.length ?? 0))[0]
