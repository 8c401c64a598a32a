/**
 * Checks request bodies before they are decoded. A 1 MiB body can hold half a million values, and validating each would
 * block the event loop, so the values of large bodies are counted first in one pass without parsing.
 */
import { isUtf8 } from "node:buffer"
import { InvalidRequest, PayloadTooLarge } from "@svc/domain/problems/Problem"
import { ByteSize, Effect } from "effect"
import { HttpServerError, type HttpServerRequest } from "effect/http"

/** The maximum body size (decisions.md "General conventions"). */
const largest = ByteSize.mebibytes(1)
/** The limit for requests without a credential; the contact form takes 10,000 characters. */
export const largestPublic = ByteSize.kibibytes(64)

/** The limit for sending a message with attachments or storing it as a draft, also by a tool. */
const largestMessage = ByteSize.mebibytes(10)
const isMessage = /^\/api\/(?:identities\/[^/?]+\/(?:messages\/send|drafts(?:\/[^/?]+)?)|mcp)\/?(?:\?|$)/

/** The limit for a post with images. It is sent to the Connector's process as one message. */
const largestPost = ByteSize.mebibytes(8)
const isPost = /^\/api\/identities\/[^/?]+\/connectors\/[^/?]+\/(?:posts|dms)\/?(?:\?|$)/

/** Routes that do not use the Authorization header: pages and OAuth. */
const isOpen = /^\/(?:auth|api\/oauth)\//

export const largestOf = ({ headers, url }: HttpServerRequest.HttpServerRequest): ByteSize.ByteSize =>
  headers["authorization"] === undefined || isOpen.test(url)
    ? largestPublic
    : isMessage.test(url)
      ? largestMessage
      : isPost.test(url)
        ? largestPost
        : largest

/** Returns whether the head of the request says that it has no body. */
export const isWithoutBody = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["transfer-encoding"] === undefined && (headers["content-length"] ?? "0") === "0"

/** Returns whether the request declares the length of its body. */
export const hasLength = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["content-length"] !== undefined

/** Returns whether the body may exceed the limit for anonymous requests, judging by its headers. */
export const isLarge = (request: HttpServerRequest.HttpServerRequest): boolean =>
  !isWithoutBody(request) && !(Number(request.headers["content-length"]) <= Number(largestPublic))

const written = (size: number) => (size < 1024 * 1024 ? `${size / 1024} KiB` : `${size / 1024 / 1024} MiB`)

/** Returns whether the declared length exceeds the limit. */
export const tooLarge = (request: HttpServerRequest.HttpServerRequest): PayloadTooLarge | undefined => {
  const length = request.headers["content-length"]
  if (length === undefined) return undefined
  const most = Number(largestOf(request))
  return Number(length) > most
    ? new PayloadTooLarge({ detail: `The request body exceeds the limit of ${written(most)} for this operation.` })
    : undefined
}

const decoder = new TextDecoder()

/**
 * Requires the body to be valid UTF-8 (RFC 8259 section 8.1). A lenient decoder would silently store a secret or a card
 * with replacement characters.
 */
export const inUtf8 = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  if (isWithoutBody(request)) return request
  let text: Effect.Effect<string, HttpServerError.HttpServerError> | undefined
  return Object.defineProperty(request, "text", {
    get: () => (text ??= Effect.flatMap(request.arrayBuffer, (bytes) => decoded(request, bytes))),
  })
}

const decoded = (request: HttpServerRequest.HttpServerRequest, bytes: ArrayBuffer) =>
  isUtf8(bytes)
    ? Effect.succeed(decoder.decode(bytes))
    : Effect.fail(
        new HttpServerError.HttpServerError({
          reason: new HttpServerError.RequestParseError({
            request,
            reason: "Parse",
            description: "The request body is not UTF-8.",
          }),
        }),
      )

/** Bodies up to this size hold too few values to matter. */
const uncountedBytes = 8 * 1024
const valuesAtMost = 5000

/**
 * Returns whether a JSON text has more than `most` values. Counts commas outside strings and opening brackets, because a
 * text of brackets alone nests as deep as it is long. The text need not be valid.
 */
export const hasMoreValues = (text: string, most = valuesAtMost): boolean => {
  let values = 1
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) inString = !inString
    else if (inString) {
      if (code === 0x5c) at++
    } else if ((code === 0x2c || code === 0x5b || code === 0x7b) && ++values > most) return true
  }
  return false
}

/** Rejects a body that would take too long to validate. Malformed bodies are left to the decoder. */
export const counted = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<InvalidRequest | undefined> => {
  if (isWithoutBody(request) || Number(request.headers["content-length"]) <= uncountedBytes) {
    return Effect.succeed(undefined)
  }
  return Effect.match(request.text, {
    onFailure: () => undefined,
    onSuccess: (text) =>
      hasMoreValues(text)
        ? new InvalidRequest({
            detail: `The request body contains more than ${valuesAtMost} values.`,
            errors: [{ path: "", message: `Expected at most ${valuesAtMost} values` }],
          })
        : undefined,
  })
}
