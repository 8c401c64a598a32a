/**
 * Which responses pages of other origins may read (CORS). No response depends on a cookie of another origin's request, so a page gets
 * nothing that its credential would not give to any program. Public documents, the endpoints of OAuth and calls of the API with a key are
 * open to every origin; the MCP server only to origins that the operator lists, because MCP requires servers to check `Origin`. Calls of
 * the API without a key are closed, so that no site makes its visitors send sign-in links or messages to the operator.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import type { HttpServerRequest } from "effect/http"

interface Rule {
  readonly path: RegExp
  readonly methods: "GET, HEAD" | "POST" | "GET, HEAD, POST" | "GET, HEAD, POST, PUT, PATCH, DELETE"
  readonly origins: "any" | "listed"
}

const rules: ReadonlyArray<Rule> = [
  { path: /^\/@[^/]+\/agent-card\.json$|^\/api\/openapi\.json$/, methods: "GET, HEAD", origins: "any" },
  {
    path: /^\/\.well-known\/(oauth-protected-resource(\/api\/mcp)?|oauth-authorization-server|openid-configuration)$/,
    methods: "GET, HEAD",
    origins: "any",
  },
  { path: /^\/api\/oauth\/(token|register|revoke)$/, methods: "POST", origins: "any" },
  { path: /^\/api\/oauth\/userinfo$/, methods: "GET, HEAD, POST", origins: "any" },
  { path: /^\/api\/mcp$/, methods: "POST", origins: "listed" },
  {
    path: /^\/api\/(?!oauth\/|contact$|hits$|auth\/(?!whoami$|device$|device\/token$))/,
    methods: "GET, HEAD, POST, PUT, PATCH, DELETE",
    origins: "any",
  },
]

/** Returns whether pages of an origin may call the MCP server: those of the service, those listed, and local ones in Development. */
export const mayCallMcp = (book: AddressBook, origin: string): boolean =>
  [book.baseUrl, book.profileBase].some((base) => new URL(base).origin === origin) ||
  book.mcpOrigins.some((listed) => listed === "*" || listed === origin) ||
  (book.environment === "development" &&
    ["localhost", "127.0.0.1", "[::1]"].includes(URL.parse(origin)?.hostname ?? ""))

/** The first segment of all paths of `rules`, so that other requests are not compared with them. */
const isCandidate = (path: string) =>
  path.startsWith("/api/") || path.startsWith("/.well-known/") || path.startsWith("/@")

const allowed = (book: AddressBook, request: HttpServerRequest.HttpServerRequest, path: string) => {
  if (!isCandidate(path)) return undefined
  const rule = rules.find((one) => one.path.test(path))
  if (rule === undefined) return undefined
  const origin = request.headers["origin"]
  if (rule.origins === "any") return { rule, headers: { "access-control-allow-origin": "*" } }
  if (origin === undefined || !mayCallMcp(book, origin)) return undefined
  return { rule, headers: { "access-control-allow-origin": origin, vary: "origin" } }
}

/** Returns the headers of a response to OPTIONS. The wildcard for headers does not include `authorization`. */
export const preflight = (book: AddressBook, request: HttpServerRequest.HttpServerRequest, path: string) => {
  const found = allowed(book, request, path)
  if (found === undefined) return {}
  return {
    ...found.headers,
    "access-control-allow-methods": found.rule.methods,
    "access-control-allow-headers": found.rule.methods === "GET, HEAD" ? "*" : "*, authorization",
    "access-control-max-age": "86400",
  }
}

const exposed =
  "www-authenticate, retry-after, ratelimit, ratelimit-policy, etag, location, request-id, svc-version, content-disposition"

/** Returns the headers that let a page of another origin read the response; undefined for requests of programs and for other paths. */
export const readable = (book: AddressBook, request: HttpServerRequest.HttpServerRequest, path: string) => {
  if (request.headers["origin"] === undefined) return undefined
  const found = allowed(book, request, path)
  return found && { ...found.headers, "access-control-expose-headers": exposed }
}
