/**
 * What a request's body may be before anything decodes it. A body of a mebibyte can hold half a million values, and
 * judging each costs more than the event loop may be held for, so large bodies are counted first: one pass over the text,
 * which parses nothing.
 */
import { isUtf8 } from "node:buffer"
import { InvalidRequest, PayloadTooLarge } from "@svc/domain/problems/Problem"
import { ByteSize, Effect } from "effect"
import { HttpServerError, type HttpServerRequest } from "effect/http"

/** Bodies over this are refused (decisions.md "General conventions"). */
const largest = ByteSize.mebibytes(1)
/** The same of requests without a credential; the contact form takes 10,000 characters. */
export const largestPublic = ByteSize.kibibytes(64)

/** The same where a message with its attachments is sent or kept as a draft, also by a tool. */
const largestMessage = ByteSize.mebibytes(10)
const isMessage = /^\/api\/(?:identities\/[^/?]+\/(?:messages\/send|drafts(?:\/[^/?]+)?)|mcp)\/?(?:\?|$)/

/** The same of a post with its pictures at a platform: it travels to its Connector's process as one message. */
const largestPost = ByteSize.mebibytes(8)
const isPost = /^\/api\/identities\/[^/?]+\/connectors\/[^/?]+\/(?:posts|dms)\/?(?:\?|$)/

/** What takes no credential of a header, whatever it carries: pages, and what apps are let in by. */
const isOpen = /^\/(?:auth|api\/oauth)\//

export const largestOf = ({ headers, url }: HttpServerRequest.HttpServerRequest): ByteSize.ByteSize =>
  headers["authorization"] === undefined || isOpen.test(url)
    ? largestPublic
    : isMessage.test(url)
      ? largestMessage
      : isPost.test(url)
        ? largestPost
        : largest

const isWithoutBody = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["transfer-encoding"] === undefined && (headers["content-length"] ?? "0") === "0"

/** Whether the head says how long the body is. */
export const hasLength = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["content-length"] !== undefined

/** Whether a body may be larger than those without a credential, as its head says. */
export const isLarge = (request: HttpServerRequest.HttpServerRequest): boolean =>
  !isWithoutBody(request) && !(Number(request.headers["content-length"]) <= Number(largestPublic))

const written = (size: number) => (size < 1024 * 1024 ? `${size / 1024} KiB` : `${size / 1024 / 1024} MiB`)

/** A body that is over the limit, as its head says. */
export const tooLarge = (request: HttpServerRequest.HttpServerRequest): PayloadTooLarge | undefined => {
  const length = request.headers["content-length"]
  if (length === undefined) return undefined
  const most = Number(largestOf(request))
  return Number(length) > most
    ? new PayloadTooLarge({ detail: `The request body is over the limit, which is ${written(most)} here.` })
    : undefined
}

const decoder = new TextDecoder()

/**
 * The request, whose text is UTF-8 or cannot be read (RFC 8259 section 8.1): decoded as if it were, a secret or a card would
 * be kept with other letters than were sent, and nobody told.
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

/** Bodies up to this many bytes hold too few values to matter. */
const uncountedBytes = 8 * 1024
const valuesAtMost = 5000

/**
 * Whether a JSON text has more values than `most`: it counts the commas outside strings, valid or not, and the brackets
 * that open, since a text of nothing else nests as deep as it is long.
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

/** Refuses a body that would take too long to judge; one that cannot be read is its reader's to refuse. */
export const counted = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<InvalidRequest | undefined> => {
  if (isWithoutBody(request) || Number(request.headers["content-length"]) <= uncountedBytes) {
    return Effect.succeed(undefined)
  }
  return Effect.match(request.text, {
    onFailure: () => undefined,
    onSuccess: (text) =>
      hasMoreValues(text)
        ? new InvalidRequest({
            detail: `The request body holds more than ${valuesAtMost} values.`,
            errors: [{ path: "", message: `Expected at most ${valuesAtMost} values` }],
          })
        : undefined,
  })
}
