/** Translates bodies of requests and responses between the newest version of the API and an older one, and refuses unknown versions. */
import { InvalidRequest } from "@svc/domain/problems/Problem"
import type { DatedVersion, Translation } from "@svc/domain/Versions"
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

type Translate = NonNullable<Translation["request"]>

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value)

/** Translates the text of a JSON object. Other texts stay as they are, for the decoder to reject. */
const translatedText = (text: string, translate: Translate): string => {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return text
  }
  return isObject(body) ? JSON.stringify(translate(body as object)) : text
}

/** Returns the request with its body in the form of the newest version. */
export const inNewerForm = (
  request: HttpServerRequest.HttpServerRequest,
  translate: Translate,
): HttpServerRequest.HttpServerRequest => {
  const text = Effect.map(request.text, (given) => translatedText(given, translate))
  return Object.defineProperty(request.modify({}), "text", { value: text })
}

/** Returns a successful response with its body in the older form. Problems are the same in every version. */
export const inOlderForm = (
  response: HttpServerResponse.HttpServerResponse,
  translate: Translate,
): HttpServerResponse.HttpServerResponse => {
  const { status, body, headers } = response
  if (status >= 400 || body._tag !== "Uint8Array" || !body.contentType.startsWith("application/json")) return response
  const text = translatedText(new TextDecoder().decode(body.body), translate)
  const { "content-length": _, ...kept } = headers
  return HttpServerResponse.text(text, { status, headers: kept, contentType: body.contentType })
}

/** Returns the refusal of an unknown version; undefined for a known one. `path` is the member of the request that names it. */
export const refusalOf = (
  versions: ReadonlyArray<DatedVersion>,
  version: string,
  path: string,
): InvalidRequest | undefined => {
  const known = versions.map((one) => one.version)
  if (known.includes(version)) return undefined
  return new InvalidRequest({
    detail: `Unknown version of the API. Known are ${known.join(", ")}; the newest is ${known.at(-1)}.`,
    errors: [{ path, message: `expected ${known.length === 1 ? "" : "one of "}${known.join(", ")}` }],
  })
}
