/** Request bodies, pagination and errors of {@link module:Server}. */
import type { IncomingMessage, ServerResponse } from "node:http"

export class ErrorResponse extends Error {
  readonly status: number
  readonly body: object
  constructor(status: number, error: string, more: object = {}) {
    super(error)
    this.status = status
    this.body = { error, ...more }
  }
}

/** Reads the request's body. If `formOnly` is set, the server ignores JSON. */
export const read = async (request: IncomingMessage, formOnly = false): Promise<Record<string, any>> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const type = request.headers["content-type"] ?? ""
  if (bytes.length === 0) return {}
  if (formOnly && type.startsWith("application/json")) return {}
  if (type.startsWith("application/json")) return JSON.parse(bytes.toString()) as Record<string, any>
  const form = await new Response(bytes, { headers: { "content-type": type } }).formData()
  return Object.fromEntries(form) as Record<string, any>
}

const isAfter = (one: string, other: string) => (one.length === other.length ? one > other : one.length > other.length)

/** Returns a page selected by `max_id` and `min_id`, and sets the `Link` header with its neighbors. */
export const page = <A extends { readonly id: string }>(
  response: ServerResponse,
  url: URL,
  all: ReadonlyArray<A>,
  most: number,
  /** Treats `min_id` like `since_id`: returns the newest matching entries instead of the oldest. */
  sinceOnly = false,
): ReadonlyArray<A> => {
  const limit = Math.min(Number(url.searchParams.get("limit") ?? 20), most)
  const maxId = url.searchParams.get("max_id")
  const minId = url.searchParams.get("min_id")
  const newestFirst = all.toSorted((one, other) => (isAfter(one.id, other.id) ? -1 : 1))
  const within = newestFirst.filter(
    ({ id }) => (maxId === null || isAfter(maxId, id)) && (minId === null || isAfter(id, minId)),
  )
  const shown = minId === null || sinceOnly ? within.slice(0, limit) : within.slice(-limit)
  if (shown.length > 0) {
    const next = new URL(url)
    next.searchParams.delete("min_id")
    next.searchParams.set("max_id", shown.at(-1)!.id)
    const former = new URL(url)
    former.searchParams.delete("max_id")
    former.searchParams.set("min_id", shown[0]!.id)
    response.setHeader("link", `<${next.href}>; rel="next", <${former.href}>; rel="prev"`)
  }
  return shown
}
