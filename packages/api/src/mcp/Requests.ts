/** Builds the REST request of a tool call. */
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { defaultLimit } from "@svc/domain/Paging"
import { equalTo, ordered } from "./Repetition.ts"
import type { BoundTool } from "./Tools.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- tool arguments are any JSON until the endpoint judges them
type Json = Record<string, any>

export interface ToolRequest {
  readonly method: BoundTool["method"]
  /** The path with its query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** The JSON text of the body. */
  readonly body: string | undefined
  /** The key of equal calls, if an equal call must not run twice. */
  readonly equalTo: string | undefined
}

/** The maximum length of values in the URL; HTTP has no room for more. */
const longestInAddress = 8192
/** The maximum of client text that is echoed in an error. */
const toldAtMost = 100

const tooLong = (name: string) =>
  new InvalidRequest({
    detail: `The argument ${name} is too long.`,
    errors: [{ path: `/${name}`, message: `expected a length of at most ${longestInAddress}` }],
  })

const wrong = (name: string, message: string) =>
  new InvalidRequest({
    detail: `The argument ${name} is not valid: ${message}.`,
    errors: [{ path: `/${name}`, message }],
  })

/** Validates the arguments that the endpoint does not have; returns the first error. */
const judgeExtra = (extra: Json, input: Json): InvalidRequest | undefined => {
  for (const [name, schema] of Object.entries<Json>(extra)) {
    const value = input[name]
    if (value === undefined) continue
    const { type, enum: choices, pattern, minimum = -Infinity, maxLength = Infinity } = schema
    if (type === "boolean" && typeof value !== "boolean") return wrong(name, "expected true or false")
    if (type === "integer" && !(Number.isInteger(value) && value >= minimum)) {
      return wrong(name, `expected an integer of ${minimum} or more`)
    }
    if (choices !== undefined && !choices.includes(value)) return wrong(name, `expected one of ${choices.join(", ")}`)
    if (pattern !== undefined) {
      const fits = typeof value === "string" && value.length <= maxLength && new RegExp(pattern, "u").test(value)
      if (!fits) return wrong(name, `expected 1 to ${maxLength} printable ASCII characters without quotes`)
    }
  }
  return undefined
}

/** Path arguments are strings; models also write numbers for an index. */
const named = (value: unknown): unknown => (Number.isSafeInteger(value) ? String(value) : value)

/** Builds the REST request of a tool call; fails if a path argument is not text. */
export const requestOf = (tool: BoundTool, given: Json, authorization: string): ToolRequest | InvalidRequest => {
  if (tool.choices !== undefined) {
    const { argument, endpoints } = tool.choices
    const { [argument]: value, ...others } = given
    const chosen = endpoints.get(value)
    if (chosen === undefined) return wrong(argument, `expected one of ${[...endpoints.keys()].join(", ")}`)
    return requestOf(chosen, others, authorization)
  }
  const input = { ...given }
  for (const name of tool.inPath) if (name !== "handle" && name !== "name") input[name] = named(input[name])
  const missing = tool.inPath.filter((name) => input[name] === undefined)
  if (missing.includes("handle") && missing.length === 1) {
    return new InvalidRequest({
      detail:
        "The argument handle is missing: it names the Identity that the call is about. `svc_identity_list` tells which there are.",
      errors: [{ path: "/handle", message: "expected the Handle of an Identity" }],
    })
  }
  const errors = tool.inPath
    // A dot segment would change the path, and a lone surrogate cannot be encoded.
    .filter((name) => typeof input[name] !== "string" || /^\.{0,2}$/.test(input[name]) || !input[name].isWellFormed())
    .map((name) => ({ path: `/${name}`, message: "expected text that is a name" }))
  if (errors.length > 0) {
    return new InvalidRequest({ detail: `The argument ${errors[0]!.path.slice(1)} is missing or not a name.`, errors })
  }
  const declared: Json = tool.listed.inputSchema["properties"] ?? {}
  const nowhere = Object.keys(input).filter((name) => !Object.hasOwn(declared, name))
  if (nowhere.length > 0) {
    const all = Object.keys(declared)
    const told = nowhere.slice(0, 20).map((name) => name.slice(0, toldAtMost))
    return new InvalidRequest({
      detail: `Unknown argument ${told[0]}. The tool takes ${all.length === 0 ? "none" : all.join(", ")}.`,
      errors: told.map((name) => ({ path: `/${name}`, message: "unknown member" })),
    })
  }
  const extra = judgeExtra(tool.extra, input)
  if (extra !== undefined) return extra
  const long = tool.inPath.find((name) => input[name].length > longestInAddress)
  if (long !== undefined) return tooLong(long)
  const path =
    tool.inPath.length === 0
      ? tool.path
      : tool.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(input[name]))
  let query: URLSearchParams | undefined
  const body: Json = {}
  // Some lists return more entries over REST than a model has room for.
  if (tool.inQuery.has("cursor") && tool.inQuery.has("limit") && input["limit"] === undefined)
    input["limit"] = defaultLimit
  for (const [name, value] of Object.entries(input)) {
    if (tool.inPath.includes(name) || Object.hasOwn(tool.extra, name)) continue
    if (tool.inQuery.has(name)) {
      const text = typeof value === "string" ? value : JSON.stringify(value)
      if (text.length > longestInAddress) return tooLong(name)
      query ??= new URLSearchParams()
      query.append(name, text)
    } else body[name] = value
  }
  const text = tool.hasBody ? JSON.stringify(tool.effect === "read" ? body : ordered(body)) : undefined
  const key: string | undefined = input["idempotency_key"]
  return {
    method: tool.method,
    target: query === undefined ? path : `${path}?${query.toString()}`,
    headers: {
      authorization,
      ...(tool.hasBody ? { "content-type": "application/json" } : {}),
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    body: text,
    equalTo: equalTo(tool.effect, input, text),
  }
}
