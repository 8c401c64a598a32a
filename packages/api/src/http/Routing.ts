/**
 * Rules before and after the routes: unknown paths and methods, HEAD, OPTIONS, and bodies that no route accepts. Known
 * paths are those of the API and the {@link pages}.
 */
import type { IncomingMessage } from "node:http"
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import {
  InvalidRequest,
  MethodNotAllowed,
  NotFound,
  type Problem,
  UnsupportedMediaType,
} from "@svc/domain/problems/Problem"
import { Versions } from "@svc/domain/Versions"
import { Effect } from "effect"
import { HttpBody, HttpRouter, HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { render } from "../problems/Render.ts"
import { RequestId } from "../RequestContext.ts"
import * as Bodies from "./Bodies.ts"
import * as CrossOrigin from "./CrossOrigin.ts"
import { refusalOf } from "./Translations.ts"

/** Paths outside the API with their methods. */
const pages: ReadonlyArray<readonly [path: string, methods: ReadonlyArray<string>]> = [
  ["/", ["GET"]],
  ["/icon.svg", ["GET"]],
  ["/favicon.ico", ["GET"]],
  ["/terms", ["GET"]],
  ["/auth/authorize", ["GET", "POST"]],
  ["/auth/device", ["GET", "POST"]],
  ["/auth/magic-link", ["GET", "POST"]],
  ["/auth/sign-in", ["GET", "POST"]],
  ["/problems/:code", ["GET"]],
  ["/@:handle", ["GET"]],
  ["/@:handle/agent-card.json", ["GET"]],
  ["/api/openapi.json", ["GET"]],
  ["/docs", ["GET"]],
  ["/docs/*", ["GET"]],
  ["/llms.txt", ["GET"]],
  ["/llms-full.txt", ["GET"]],
  ["/skill.md", ["GET"]],
  ["/api/docs", ["GET"]],
  ["/api/docs/assets/:file", ["GET"]],
  ["/api/mcp", ["POST"]],
  ["/api/oauth/token", ["POST"]],
  ["/api/oauth/register", ["POST"]],
  ["/api/oauth/revoke", ["POST"]],
  ["/.well-known/oauth-protected-resource", ["GET"]],
  ["/.well-known/oauth-protected-resource/api/mcp", ["GET"]],
  ["/.well-known/oauth-authorization-server", ["GET"]],
  ["/console", ["GET"]],
  ["/console/*", ["GET"]],
]

interface Known {
  readonly segments: ReadonlyArray<RegExp | string>
  readonly methods: ReadonlyArray<string>
}

/** A segment with a parameter matches any text. */
const segmentOf = (segment: string) =>
  segment.includes(":") ? new RegExp(`^${segment.replaceAll(".", "\\.").replace(/:\w+/g, "[^/]+")}$`) : segment

/** Grouped by the number of segments, so that few patterns are compared. */
const known = Map.groupBy(
  [
    ...Object.values(Api.groups).flatMap((group) =>
      Object.values(group.endpoints).map(({ method, path }): readonly [string, ReadonlyArray<string>] => [
        path,
        [method],
      ]),
    ),
    ...pages,
  ].map(([path, methods]): Known => ({ segments: path.split("/").map(segmentOf), methods })),
  ({ segments }) => segments.length,
)

/** Every path below a folder. */
const folders = pages.flatMap(([path, methods]) => (path.endsWith("/*") ? [{ above: path.slice(0, -1), methods }] : []))

const isOne = (segment: RegExp | string, text: string) =>
  typeof segment === "string" ? segment === text : segment.test(text)

/** Returns the methods of a path: those of its endpoints, HEAD after GET, OPTIONS last; empty for an unknown path. */
const methodsOf = (path: string): ReadonlyArray<string> => {
  const texts = path.split("/", longest + 1)
  const ofOne = known.get(texts.length)?.filter(({ segments }) => segments.every((one, at) => isOne(one, texts[at]!)))
  const ofFolder = folders.filter(({ above }) => path.startsWith(above))
  const own = new Set([...(ofOne ?? []), ...ofFolder].flatMap(({ methods }) => methods))
  if (own.size === 0) return []
  return [...[...own].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])), "OPTIONS"]
}

const longest = Math.max(...known.keys())

/**
 * Normalizes the path so that the router and the rules here agree. The router treats `;` and `#` as the start of the
 * query, so `/api/identities/ada;x` was `ada` to it and not to the rules. A path without a leading slash (`GET *`) was
 * the landing page.
 */
export const spelled = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const { url } = request
  const path = pathOf(url)
  if (path.startsWith("/") && !path.includes(";") && !path.includes("#")) return request
  const whole = path.replaceAll(";", "%3B").replaceAll("#", "%23")
  return request.modify({ url: `${path.startsWith("/") ? "" : "/"}${whole}${url.slice(path.length)}` })
}

const pathOf = (url: string) => url.split("?", 1)[0]!

const isReadable = (path: string) => {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

type Handled<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/** Returns the 404 response: a page for browsers, a problem for other clients. */
type Nowhere = (request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse | undefined

const refuse = (book: Addresses["Service"], problem: Problem, headers: Record<string, string> = {}) =>
  Effect.map(RequestId, (id) => HttpServerResponse.setHeaders(render(book, id, problem), headers))

const noSuchPath = new NotFound({ detail: "The path does not exist." })

const noOneHost = new InvalidRequest({ detail: "The request must have exactly one Host header." })

const allowedAt = (request: HttpServerRequest.HttpServerRequest) => {
  const path = pathOf(request.url)
  return isReadable(path) ? methodsOf(path) : []
}

/** The response if no route matches. */
const answerElsewhere =
  (book: Addresses["Service"], nowhere: Nowhere) =>
  (request: HttpServerRequest.HttpServerRequest): Handled<never, never> => {
    const allowed = allowedAt(request)
    if (allowed.length === 0) {
      const page = nowhere(request)
      return page === undefined ? refuse(book, noSuchPath) : Effect.succeed(page)
    }
    // A route has the method, but a parameter is longer than any name, so the resource does not exist.
    if (allowed.includes(request.method)) return refuse(book, noSuchPath)
    const allow = allowed.join(", ")
    return refuse(book, new MethodNotAllowed({ detail: `The path supports ${allow}.` }), { allow })
  }

/**
 * Catch-all routes, much cheaper than the router's failure, which remains for unknown methods and malformed paths. A
 * fallback for HEAD would hide the routes of GET.
 */
export const elsewhere = (nowhere: Nowhere) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const answer = answerElsewhere(yield* Addresses, nowhere)
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"] as const) yield* router.add(method, "/*", answer)
    }),
  )

export const make = (nowhere: Nowhere) =>
  Effect.map(Effect.all([Addresses, Versions]), ([book, versions]) => {
    const answer = answerElsewhere(book, nowhere)

    /** Handles OPTIONS and unsupported methods of a known path; other requests go to their route. */
    const options = (request: HttpServerRequest.HttpServerRequest) => {
      const allowed = allowedAt(request)
      if (allowed.length === 0) return answer(request)
      return Effect.succeed(
        HttpServerResponse.empty({
          status: 204,
          headers: { allow: allowed.join(", "), ...CrossOrigin.preflight(book, request, pathOf(request.url)) },
        }),
      )
    }

    /** Rejects a request by its head alone; undefined for most requests. */
    const refusedHead = (request: HttpServerRequest.HttpServerRequest) => {
      const { headers } = request
      const version = headers["svc-version"]
      const unknown = version === undefined ? undefined : refusalOf(versions, version, "/svc-version")
      if (unknown !== undefined && request.url.startsWith("/api/")) return refuse(book, unknown)
      const coding = headers["content-encoding"]
      if (coding !== undefined && coding.toLowerCase() !== "identity") {
        return refuse(
          book,
          new UnsupportedMediaType({ detail: "Compressed bodies are not supported. Send the body uncompressed." }),
          {
            "accept-encoding": "identity",
          },
        )
      }
      const tooLarge = Bodies.tooLarge(request)
      return tooLarge && refuse(book, tooLarge, { connection: "close" })
    }

    const handled = <E, R>(request: HttpServerRequest.HttpServerRequest, routes: Handled<E, R>): Handled<E, R> => {
      if (!namesHost(request)) return refuse(book, noOneHost, { connection: "close" })
      if (request.method === "OPTIONS") return options(request)
      const refused = refusedHead(request)
      if (refused !== undefined) return refused
      if (hasEmptySegment(pathOf(request.url)) && allowedAt(request).length === 0) return answer(request)
      const answered = Effect.catchIf(routes, isUnrouted, () => answer(request)) as Handled<E, R>
      return request.method === "HEAD" ? Effect.map(answered, bodiless) : answered
    }

    /** Returns the response of the routes, or the one that replaces it, with the headers for pages of other origins. */
    return <E, R>(request: HttpServerRequest.HttpServerRequest, routes: Handled<E, R>): Handled<E, R> => {
      const response = handled(request, routes)
      if (request.method === "OPTIONS") return response
      const headers = CrossOrigin.readable(book, request, pathOf(request.url))
      return headers === undefined
        ? response
        : Effect.map(response, (given) => HttpServerResponse.setHeaders(given, headers))
    }
  })

const isUnrouted = (failure: unknown): boolean =>
  HttpServerError.isHttpServerError(failure) && failure.reason._tag === "RouteNotFound"

/**
 * Returns whether an HTTP/1.1 request has exactly one Host (RFC 9112 section 3.2): with two, a proxy and this service
 * could use different ones. Requests of tool calls have no connection.
 */
const namesHost = ({ source }: HttpServerRequest.HttpServerRequest): boolean => {
  const { httpVersion, rawHeaders } = source as Partial<IncomingMessage>
  if (rawHeaders === undefined) return true
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === "host") hosts++
  }
  return hosts === 1 || (hosts === 0 && httpVersion !== "1.1")
}

/** An empty segment, as a trailing slash makes one, which the router would take for a parameter. */
const hasEmptySegment = (path: string) => path.length > 1 && (path.endsWith("/") || path.includes("//"))

/** A stream would continue although HEAD has no body. */
const bodiless = (response: HttpServerResponse.HttpServerResponse) =>
  response.body._tag === "Stream" ? HttpServerResponse.setBody(response, HttpBody.empty) : response
