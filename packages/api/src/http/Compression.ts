/**
 * Compresses text responses that are held in memory and worth compressing, never streams. Responses with secrets or mail
 * (`Confidential`) are not compressed: next to attacker-chosen text, the compressed length would leak them (BREACH).
 * Compression runs off the event loop, once for responses that are the same for everyone.
 */
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import { Api } from "@svc/domain/Api"
import { Confidential, ShowsSecret } from "@svc/domain/account/Policy"
import { Context, Effect } from "effect"
import { HttpBody, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { tagOfCoding } from "../EntityTags.ts"
import type { RequestContextState } from "../RequestContext.ts"

/** Smaller responses fit into one packet with their headers anyway. */
const worthwhile = 1024
const compressible = /^(?:application\/(?:[\w.-]+\+)?json|text\/(?:html|css|javascript)|image\/svg\+xml)\b/

/** Endpoints whose responses contain secrets or mail. */
const confidential = new Set(
  Object.values(Api.groups)
    .flatMap(({ endpoints }) => Object.values<HttpApiEndpoint.Top>(endpoints))
    .filter(({ annotations }) => Context.get(annotations, Confidential) || Context.get(annotations, ShowsSecret))
    .map(({ path }): string => path),
)
/** The same for paths outside the API. */
const confidentialPaths: ReadonlyArray<RegExp> = [
  /^\/auth\//,
  /^\/api\/mcp$/,
  ...[...confidential].map((path) => new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`)),
]

const isConfidential = ({ endpoint }: RequestContextState, { url }: HttpServerRequest.HttpServerRequest): boolean => {
  if (endpoint !== undefined) return confidential.has(endpoint.route)
  const path = url.split("?", 1)[0]!
  return confidentialPaths.some((one) => one.test(path))
}

type Coding = "br" | "gzip"

/** Returns the preferred supported encoding of `Accept-Encoding` (RFC 9110 section 12.5.3). */
export const codingFor = (header: string | undefined): Coding | undefined => {
  if (header === undefined) return undefined
  const weights = new Map<string, number>()
  for (const one of header.toLowerCase().split(",")) {
    const [name = "", ...parameters] = one.split(";").map((part) => part.trim())
    const weight = parameters.find((part) => part.startsWith("q="))
    weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)))
  }
  const takes = (name: string) => (weights.get(name) ?? weights.get("*") ?? 0) > 0
  return takes("br") ? "br" : takes("gzip") ? "gzip" : undefined
}

const compress: { readonly [C in Coding]: (body: Uint8Array, thorough: boolean) => Promise<Uint8Array> } = {
  br: (body, thorough) =>
    promisify(brotliCompress)(body, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: thorough ? 9 : 4,
        [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
      },
    }),
  gzip: (body, thorough) => promisify(gzip)(body, { level: thorough ? 9 : 5 }),
}

/** Bodies that are the same object for every client, such as the OpenAPI document. */
const done = new WeakMap<Uint8Array, Map<Coding, Promise<Uint8Array>>>()
const once = (body: Uint8Array, coding: Coding) => {
  const known = done.get(body) ?? new Map<Coding, Promise<Uint8Array>>()
  done.set(body, known)
  const made = known.get(coding) ?? compress[coding](body, true)
  known.set(coding, made)
  return made
}

/** Allows compression of a response on a confidential path that has neither secrets nor mail, such as the list of tools. */
export const mayCompress = (exchange: RequestContextState) => (exchange.openly = true)

/** Returns the compressed response, or undefined if it is sent unchanged. */
export const compressed = (
  exchange: RequestContextState,
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
): Effect.Effect<HttpServerResponse.HttpServerResponse> | undefined => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.contentLength < worthwhile) return undefined
  // The console's files were compressed at build time.
  if (response.headers["content-encoding"] !== undefined) return undefined
  if (!compressible.test(body.contentType)) return undefined
  if (!exchange.openly && isConfidential(exchange, request)) return undefined
  const { vary } = response.headers
  const varying = HttpServerResponse.setHeader(
    response,
    "vary",
    vary === undefined || vary === "accept-encoding" ? "accept-encoding" : `${vary}, accept-encoding`,
  )
  const coding = codingFor(request.headers["accept-encoding"])
  if (coding === undefined) return Effect.succeed(varying)
  const constant = response.headers["cache-control"]?.startsWith("public") === true
  return Effect.map(
    Effect.promise(() => (constant ? once(body.body, coding) : compress[coding](body.body, false))),
    (bytes) => {
      const { etag } = exchange.headers
      if (etag !== undefined) exchange.headers["etag"] = tagOfCoding(etag, coding)
      return HttpServerResponse.setHeader(
        HttpServerResponse.setBody(varying, HttpBody.uint8Array(bytes, body.contentType)),
        "content-encoding",
        coding,
      )
    },
  )
}
