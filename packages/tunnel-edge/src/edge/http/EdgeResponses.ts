/** Responses that the edge itself generates, as bytes: problem documents for programs and an HTML page for browsers. */
import { type AddressBook, problemUrl } from "@svc/domain/Addresses"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { type Code, table } from "@svc/domain/problems/Table"
import { Effect } from "effect"
import type { Head } from "../../protocol/RequestHead.ts"

interface Wanted {
  /** The `Accept` header of the request. */
  readonly accept: string | undefined
  readonly requestId: string
  /** Value of `Retry-After`, if it is known. */
  readonly retryAfterSeconds?: number
}

const reasons: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  409: "Conflict",
  410: "Gone",
  421: "Misdirected Request",
  426: "Upgrade Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  505: "HTTP Version Not Supported",
}

/** Returns a complete response that closes the connection. */
export const answer = (
  status: number,
  contentType: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Buffer => {
  const bytes = Buffer.from(body)
  const lines = Object.entries({
    "content-type": contentType,
    "content-length": String(bytes.length),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} ${reasons[status] ?? "Error"}\r\n${lines.join("")}\r\n`, "latin1"),
    bytes,
  ])
}

export const isHead = (head: Head | undefined): boolean => head?.method === "HEAD"

/** Returns the response to HEAD: the fields of the response to GET, and no body (RFC 9110, section 9.3.2). */
export const withoutBody = (response: Buffer): Buffer => response.subarray(0, response.indexOf("\r\n\r\n") + 4)

const page = (title: string, text: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${title}</title><style>:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:40rem;margin:18vh auto;padding:0 1.25rem}h1{font-size:1.4rem}</style></head><body><h1>${title}</h1><p>${text}</p></body></html>`

const wantsPage = (accept: string | undefined) => accept !== undefined && /text\/html/i.test(accept)

const problem = (book: AddressBook, code: Code, detail: string, wanted: Wanted): Buffer => {
  const { status, title, meaning, remedy, agent_hint } = table[code]
  const retry = wanted.retryAfterSeconds ?? (agent_hint === "wait" ? 5 : undefined)
  const headers = {
    "svc-tunnel-error": code,
    "request-id": wanted.requestId,
    ...(retry === undefined ? {} : { "retry-after": String(retry) }),
  }
  if (wantsPage(wanted.accept))
    return answer(status, "text/html; charset=utf-8", page(title, `${meaning} ${remedy}`), headers)
  const body = {
    type: `/problems/${code}`,
    title,
    status,
    detail,
    instance: wanted.requestId,
    code,
    doc_url: problemUrl(book, code),
    agent_hint,
    ...(retry === undefined ? {} : { retry_after_seconds: retry }),
  }
  return answer(status, "application/problem+json", JSON.stringify(body), headers)
}

const requestId = () => Effect.runSync(Effect.map(makeUuidV7, (id) => toPublic("req_", id)))

/** Returns a {@link problem} for this request, with a new request id. */
export const problemFor = (
  book: AddressBook,
  head: Head,
  code: Code,
  detail: string,
  retryAfterSeconds?: number,
): Buffer =>
  problem(book, code, detail, {
    accept: head.headers.get("accept"),
    requestId: requestId(),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  })

/** Returns the plain-text response for a request that the edge refuses. */
export const refusal = (status: number, message: string, headers: Readonly<Record<string, string>> = {}): Buffer =>
  answer(status, "text/plain; charset=utf-8", `${message}\n`, { "svc-tunnel-error": "refused", ...headers })
