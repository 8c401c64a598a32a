/**
 * Rules before and after the routes: unknown paths and methods, HEAD, OPTIONS, and bodies that no route accepts.
 */
import type { IncomingMessage } from "node:http"
import { Addresses } from "@svc/domain/Addresses"
import {
  InvalidRequest,
  MethodNotAllowed,
  NotFound,
  type Problem,
  UnsupportedMediaType,
} from "@svc/domain/problems/Problem"
import { Versions } from "@svc/domain/Versions"
import { Context, Effect, Layer } from "effect"
import { HttpBody, HttpRouter, HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { render } from "../problems/Render.ts"
import { RequestId } from "../RequestContext.ts"
import * as Bodies from "./Bodies.ts"
import * as CrossOrigin from "./CrossOrigin.ts"
import { refusalOf } from "./Translations.ts"

interface Known {
  readonly segments: ReadonlyArray<RegExp | string>
  readonly method: string
}

/** A segment with a parameter matches any text. */
const segmentOf = (segment: string) =>
  segment.includes(":") ? new RegExp(`^${segment.replaceAll(".", "\\.").replace(/:\w+/g, "[^/]+")}$`) : segment

const isOne = (segment: RegExp | string, text: string) =>
  typeof segment === "string" ? segment === text : segment.test(text)

/** The routes for every path that no other route has. */
const elsewherePath = "/*"

const makePaths = () => {
  /** Grouped by the number of segments, so that few patterns are compared. */
  const known = new Map<number, Array<Known>>()
  /** Every path below a folder. */
  const folders: Array<{ readonly above: string; readonly method: string }> = []
  let longest = 0

  const add = (method: string, path: string): void => {
    if (path === elsewherePath) return
    if (path.endsWith("/*")) {
      folders.push({ above: path.slice(0, -1), method })
      return add(method, path.slice(0, -2))
    }
    const segments = path.split("/").map(segmentOf)
    known.set(segments.length, [...(known.get(segments.length) ?? []), { segments, method }])
    longest = Math.max(longest, segments.length)
  }
  return {
    add,
    /** Returns the methods of a path: those of its routes, HEAD after GET, OPTIONS last; empty for an unknown path. */
    methodsOf: (path: string): ReadonlyArray<string> => {
      const texts = path.split("/", longest + 1)
      const ofOne = known
        .get(texts.length)
        ?.filter(({ segments }) => segments.every((one, at) => isOne(one, texts[at]!)))
      const ofFolder = folders.filter(({ above }) => path.startsWith(above))
      const own = new Set([...(ofOne ?? []), ...ofFolder].map(({ method }) => method))
      if (own.size === 0) return []
      return [...[...own].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])), "OPTIONS"]
    },
  }
}

/** The methods of each path. The router cannot be asked for them, so they are noted when its routes are added. */
export class Paths extends Context.Service<Paths, ReturnType<typeof makePaths>>()("@svc/api/http/Paths") {
  static readonly layer = Layer.sync(Paths, makePaths)
}

/** A router that notes the paths of its routes. */
export const notingRouter = Layer.effect(
  HttpRouter.HttpRouter,
  Effect.map(Effect.all([HttpRouter.HttpRouter, Paths]), ([router, paths]): HttpRouter.HttpRouter => ({
    ...router,
    add: (method, path, ...rest) => {
      paths.add(method, path)
      return router.add(method, path, ...rest)
    },
    addAll: (routes) => {
      for (const { method, path } of routes) paths.add(method, path)
      return router.addAll(routes)
    },
  })),
)

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

type AllowedAt = (request: HttpServerRequest.HttpServerRequest) => ReadonlyArray<string>

/** Returns the methods of a request's path. */
const allowedIn =
  ({ methodsOf }: Paths["Service"]): AllowedAt =>
  (request) => {
    const path = pathOf(request.url)
    return isReadable(path) ? methodsOf(path) : []
  }

/** The response if no route matches. */
const answerElsewhere =
  (book: Addresses["Service"], allowedAt: AllowedAt, nowhere: Nowhere) =>
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
      const answer = answerElsewhere(yield* Addresses, allowedIn(yield* Paths), nowhere)
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"] as const)
        yield* router.add(method, elsewherePath, answer)
    }),
  )

export const make = (nowhere: Nowhere) =>
  Effect.map(Effect.all([Addresses, Versions, Paths]), ([book, versions, paths]) => {
    const allowedAt = allowedIn(paths)
    const answer = answerElsewhere(book, allowedAt, nowhere)

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

/** A stream would continue although HEAD has no body. Its headers are those of GET. */
const bodiless = (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  return body._tag === "Stream"
    ? HttpServerResponse.setHeader(
        HttpServerResponse.setBody(response, HttpBody.empty),
        "content-type",
        body.contentType,
      )
    : response
}
