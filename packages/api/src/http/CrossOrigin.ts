/**
 * Which responses pages of other origins may read (CORS). No response depends on a cookie of another origin's request, so a page gets
 * nothing that its credential would not give to any program. Public documents and the endpoints of OAuth are open to every origin; the MCP
 * server only to origins that the operator lists, because MCP requires servers to check `Origin`.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import type { HttpServerRequest } from "effect/http"

interface Rule {
  readonly path: RegExp
  readonly method: "GET" | "POST"
  readonly origins: "any" | "listed"
}

const rules: ReadonlyArray<Rule> = [
  { path: /^\/@[^/]+\/agent-card\.json$|^\/api\/openapi\.json$/, method: "GET", origins: "any" },
  {
    path: /^\/\.well-known\/(oauth-protected-resource(\/api\/mcp)?|oauth-authorization-server|openid-configuration)$/,
    method: "GET",
    origins: "any",
  },
  { path: /^\/api\/oauth\/(token|register|revoke)$/, method: "POST", origins: "any" },
  { path: /^\/api\/mcp$/, method: "POST", origins: "listed" },
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

/** Returns the headers of a response to OPTIONS. A wildcard for headers would not include `authorization`. */
export const preflight = (book: AddressBook, request: HttpServerRequest.HttpServerRequest, path: string) => {
  const found = allowed(book, request, path)
  if (found === undefined) return {}
  return {
    ...found.headers,
    ...(found.rule.method === "GET"
      ? { "access-control-allow-methods": "GET, HEAD", "access-control-allow-headers": "*" }
      : {
          "access-control-allow-methods": "POST",
          "access-control-allow-headers":
            "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id",
        }),
    "access-control-max-age": "86400",
  }
}

/** Returns the headers that let a page of another origin read the response; undefined for requests of programs and for other paths. */
export const readable = (book: AddressBook, request: HttpServerRequest.HttpServerRequest, path: string) => {
  if (request.headers["origin"] === undefined) return undefined
  const found = allowed(book, request, path)
  return found && { ...found.headers, "access-control-expose-headers": "www-authenticate, retry-after, ratelimit" }
}
