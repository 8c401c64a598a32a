/** The REST request that a tool call is. */
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { judgeExtra } from "./Bounded.ts"
import type { BoundTool } from "./Tools.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- tool arguments are any JSON until the endpoint judges them
type Json = Record<string, any>

export interface ToolRequest {
  readonly method: BoundTool["method"]
  /** Path and query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string | undefined
}

/** Characters of what goes into an address: over HTTP one has no room for more. */
const longestInAddress = 8192
/** Characters of a stranger's text that are told back. */
const toldAtMost = 100

const tooLong = (name: string) =>
  new InvalidRequest({
    detail: `The argument ${name} is too long.`,
    errors: [{ path: `/${name}`, message: `expected a length of at most ${longestInAddress}` }],
  })

/** The REST request of a tool call; a path argument that is no text cannot make one. */
export const requestOf = (tool: BoundTool, input: Json, authorization: string): ToolRequest | InvalidRequest => {
  const errors = tool.inPath
    // A segment of dots would be another path, and half a surrogate pair is in none.
    .filter((name) => typeof input[name] !== "string" || /^\.{0,2}$/.test(input[name]) || !input[name].isWellFormed())
    .map((name) => ({ path: `/${name}`, message: "expected text that is a name" }))
  if (errors.length > 0) {
    return new InvalidRequest({ detail: `The argument ${errors[0]!.path.slice(1)} is missing or no name.`, errors })
  }
  const declared: Json = tool.listed.inputSchema["properties"] ?? {}
  const nowhere = Object.keys(input).filter((name) => !Object.hasOwn(declared, name))
  if (nowhere.length > 0) {
    const all = Object.keys(declared)
    const told = nowhere.slice(0, 20).map((name) => name.slice(0, toldAtMost))
    return new InvalidRequest({
      detail: `The tool has no argument ${told[0]}; it has ${all.length === 0 ? "none" : all.join(", ")}.`,
      errors: told.map((name) => ({ path: `/${name}`, message: "unknown member" })),
    })
  }
  const extra = judgeExtra(tool.listed.name, input)
  if (extra !== undefined) return extra
  const long = tool.inPath.find((name) => input[name].length > longestInAddress)
  if (long !== undefined) return tooLong(long)
  const path =
    tool.inPath.length === 0
      ? tool.path
      : tool.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(input[name]))
  let query: URLSearchParams | undefined
  const body: Json = {}
  for (const [name, value] of Object.entries(input)) {
    if (tool.inPath.includes(name) || tool.extra.has(name)) continue
    if (tool.inQuery.has(name)) {
      const text = typeof value === "string" ? value : JSON.stringify(value)
      if (text.length > longestInAddress) return tooLong(name)
      query ??= new URLSearchParams()
      query.append(name, text)
    } else body[name] = value
  }
  return {
    method: tool.method,
    target: query === undefined ? path : `${path}?${query.toString()}`,
    headers: { authorization, ...(tool.hasBody ? { "content-type": "application/json" } : {}) },
    body: tool.hasBody ? JSON.stringify(body) : undefined,
  }
}
