/**
 * What holds of a request before and behind the routes: a path that does not exist, a method it does not have, HEAD,
 * OPTIONS, and bodies that no route would take. The paths that exist are the API's and the {@link pages}.
 */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import {
  MethodNotAllowed,
  NotFound,
  PayloadTooLarge,
  type Problem,
  UnsupportedMediaType,
} from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { HttpBody, HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { render } from "../problems/Render.ts"
import { RequestId } from "../RequestId.ts"
import * as Bodies from "./Bodies.ts"

/** Paths outside the API, with their methods. */
export const pages: ReadonlyArray<readonly [path: string, methods: ReadonlyArray<string>]> = [
  ["/", ["GET"]],
  ["/icon.svg", ["GET"]],
  ["/favicon.ico", ["GET"]],
  ["/terms", ["GET"]],
  ["/auth/device", ["GET", "POST"]],
  ["/auth/magic-link", ["GET", "POST"]],
  ["/auth/sign-in", ["GET", "POST"]],
  ["/problems/:code", ["GET"]],
  ["/@:handle", ["GET"]],
  ["/@:handle/agent-card.json", ["GET"]],
  ["/api/openapi.json", ["GET"]],
  ["/api/docs", ["GET"]],
  ["/api/docs/assets/:file", ["GET"]],
  ["/api/mcp", ["POST"]],
  ["/console", ["GET"]],
  ["/console/*", ["GET"]],
]

/** Paths that scripts of any origin may read. */
const shared = /^\/@[^/]+\/agent-card\.json$|^\/api\/openapi\.json$/

const matcher = (path: string) =>
  new RegExp(
    `^${path
      .replaceAll(".", "\\.")
      .replace(/:[A-Za-z]+/g, "[^/]+")
      .replace(/\*$/, ".*")}$`,
  )

const known = [
  ...Object.values(Api.groups).flatMap((group) =>
    Object.values(group.endpoints).map(({ method, path }) => ({ methods: [method as string], matches: matcher(path) })),
  ),
  ...pages.map(([path, methods]) => ({ methods, matches: matcher(path) })),
]

/** The methods of a path in the order of its endpoints, HEAD behind GET, OPTIONS last; none for a path that is none. */
const methodsOf = (path: string): ReadonlyArray<string> => {
  const own = new Set(known.filter(({ matches }) => matches.test(path)).flatMap(({ methods }) => methods))
  if (own.size === 0) return []
  return [...[...own].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])), "OPTIONS"]
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

/** How a path that is none is shown: a page to a browser, a problem to a program. */
type Nowhere = (request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse | undefined

export const make = (nowhere: Nowhere) =>
  Effect.map(Addresses, (book) => {
    const refuse = (problem: Problem, headers: Record<string, string> = {}) =>
      Effect.map(RequestId, (id) => HttpServerResponse.setHeaders(render(book, id, problem), headers))

    const elsewhere = (request: HttpServerRequest.HttpServerRequest) => {
      const path = pathOf(request.url)
      const allowed = isReadable(path) ? methodsOf(path) : []
      if (allowed.length === 0) {
        const page = nowhere(request)
        return page === undefined ? refuse(new NotFound({ detail: "There is no such path." })) : Effect.succeed(page)
      }
      // A route has the method, but a parameter is longer than any name: there is no such thing.
      if (allowed.includes(request.method)) return refuse(new NotFound({ detail: "There is no such path." }))
      const allow = allowed.join(", ")
      return refuse(new MethodNotAllowed({ detail: `The path has ${allow}.` }), { allow })
    }

    const options = (request: HttpServerRequest.HttpServerRequest) => {
      const path = pathOf(request.url)
      const allowed = isReadable(path) ? methodsOf(path) : []
      if (allowed.length === 0) return elsewhere(request)
      const preflight = {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "GET, HEAD",
        "access-control-allow-headers": "*",
        "access-control-max-age": "86400",
      }
      return Effect.succeed(
        HttpServerResponse.empty({
          status: 204,
          headers: { allow: allowed.join(", "), ...(shared.test(path) ? preflight : {}) },
        }),
      )
    }

    /** Refused by its head alone: undefined for most. */
    const refusedBody = (request: HttpServerRequest.HttpServerRequest) => {
      const { headers } = request
      const coding = headers["content-encoding"]
      if (coding !== undefined && coding.toLowerCase() !== "identity") {
        return refuse(new UnsupportedMediaType({ detail: "The body is compressed. Send it as it is." }), {
          "accept-encoding": "identity",
        })
      }
      const length = headers["content-length"]
      return length !== undefined && Number(length) > Number(Bodies.largestOf(request))
        ? refuse(new PayloadTooLarge({ detail: "The request body is over the limit." }), { connection: "close" })
        : undefined
    }

    /** The routes' answer, or what is answered in their place. */
    return <E, R>(request: HttpServerRequest.HttpServerRequest, routes: Handled<E, R>): Handled<E, R> => {
      if (request.method === "OPTIONS") return options(request)
      const refused = refusedBody(request)
      if (refused !== undefined) return refused
      const answer = Effect.catchIf(routes, isUnrouted, () => elsewhere(request)) as Handled<E, R>
      return request.method === "HEAD" ? Effect.map(answer, bodiless) : answer
    }
  })

const isUnrouted = (failure: unknown): boolean =>
  HttpServerError.isHttpServerError(failure) && failure.reason._tag === "RouteNotFound"

/** A stream would go on for a client that takes no body of it. */
const bodiless = (response: HttpServerResponse.HttpServerResponse) =>
  response.body._tag === "Stream" ? HttpServerResponse.setBody(response, HttpBody.empty) : response
