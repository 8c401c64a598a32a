/**
 * What a tool's result leaves out, where the REST answer could fill a model's whole context: the text of a message is
 * cut, its HTML and headers come only when asked for. The result says what is missing and which argument brings it.
 */
import { InvalidRequest } from "@svc/domain/problems/Problem"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON
type Json = Record<string, any>

export const defaultTextBytes = 64 * 1024
const maxTextBytes = 1024 * 1024

/** Arguments of the tool that its endpoint has not, as JSON Schema. */
const ofMessage: Json = {
  html: { type: "boolean", default: false, description: "Also give the body as HTML." },
  headers: { type: "boolean", default: false, description: "Also give every header field." },
  text_offset: {
    type: "integer",
    minimum: 0,
    default: 0,
    description: "The byte of the text (and of the HTML) to begin at, for what an earlier call left out.",
  },
  text_limit: {
    type: "integer",
    minimum: 1,
    maximum: maxTextBytes,
    default: defaultTextBytes,
    description: "How many bytes of the text, of the HTML and of the headers at most.",
  },
}

/** Whether anything may be left out of this tool's results. */
export const isBounded = (tool: string): boolean => tool === "svc_email_get"

export const extraArguments = (tool: string): Json => (isBounded(tool) ? ofMessage : {})

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** A part of a text by bytes of UTF-8, cut between characters. */
const slice = (bytes: Uint8Array, from: number, limit: number) => {
  const isInner = (at: number) => at > 0 && at < bytes.length && (bytes[at]! & 0xc0) === 0x80
  let begin = Math.min(from, bytes.length)
  let end = Math.min(begin + limit, bytes.length)
  while (isInner(begin)) begin--
  while (isInner(end)) end--
  // A limit below one character would never come to an end.
  if (end <= begin && begin < bytes.length) {
    end = begin + 1
    while (isInner(end)) end++
  }
  return { text: decoder.decode(bytes.subarray(begin, end)), end }
}

const wrong = (name: string, message: string) =>
  new InvalidRequest({
    detail: `The argument ${name} is not valid: ${message}`,
    errors: [{ path: `/${name}`, message }],
  })

/** The first argument of {@link extraArguments} that is not as it should be. */
export const judgeExtra = (tool: string, input: Json): InvalidRequest | undefined => {
  for (const [name, { type, minimum = -Infinity, maximum = Infinity }] of Object.entries<Json>(extraArguments(tool))) {
    const value = input[name]
    if (value === undefined) continue
    if (type === "boolean" && typeof value !== "boolean") return wrong(name, "expected true or false")
    if (type === "integer" && !(Number.isInteger(value) && value >= minimum && value <= maximum)) {
      return wrong(
        name,
        `expected an integer of ${minimum} or more${maximum === Infinity ? "" : `, at most ${maximum}`}`,
      )
    }
  }
  return undefined
}

interface LeftOut {
  readonly member: string
  readonly bytes: number
  readonly how: string
}

/** Bytes of links, which a newsletter has many and long ones of. */
const linkBytes = 8 * 1024

/** A message as the tool gives it. */
const message = (input: Json, body: Json): Json => {
  const limit: number = input["text_limit"] ?? defaultTextBytes
  const from: number = input["text_offset"] ?? 0
  const left: Array<LeftOut> = []
  const cut = (member: "text" | "html"): string | null => {
    if (typeof body[member] !== "string") return null
    const bytes = encoder.encode(body[member])
    const { text, end } = slice(bytes, from, limit)
    if (end < bytes.length) {
      left.push({ member, bytes: bytes.length - end, how: `Call again with text_offset ${end}.` })
    }
    return text
  }
  const { html, headers, text: _, ...rest } = body
  const given: Json = { ...rest, text: cut("text") }
  // A part of the text: what is left out of it is there.
  if (typeof body["text_reply"] === "string")
    given["text_reply"] = slice(encoder.encode(body["text_reply"]), 0, limit).text
  if (input["html"] === true) given["html"] = cut("html")
  else if (typeof html === "string") {
    left.push({ member: "html", bytes: encoder.encode(html).length, how: "Call again with html true." })
  }
  if (Array.isArray(body["links"])) {
    const sizes = body["links"].map((link) => encoder.encode(JSON.stringify(link)).length)
    let room = linkBytes
    const shown = body["links"].filter((_, at) => (room -= sizes[at]!) >= 0)
    given["links"] = shown
    const missing = sizes.slice(shown.length).reduce((sum, size) => sum + size, 0)
    if (missing > 0) left.push({ member: "links", bytes: missing, how: "The text names the targets of its links." })
  }
  if (Array.isArray(headers)) {
    const sizes = headers.map((header) => encoder.encode(JSON.stringify(header)).length)
    let room = input["headers"] === true ? limit : 0
    const shown = headers.filter((_, at) => (room -= sizes[at]!) >= 0)
    if (input["headers"] === true) given["headers"] = shown
    const missing = sizes.slice(shown.length).reduce((sum, size) => sum + size, 0)
    if (missing > 0) {
      const how = input["headers"] === true ? "Call again with a larger text_limit." : "Call again with headers true."
      left.push({ member: "headers", bytes: missing, how })
    }
  }
  return left.length === 0 ? given : { ...given, left_out: left }
}

/** The result of a tool, bounded where that is called for. */
export const bounded = (tool: string, input: Json, body: Json): Json => (isBounded(tool) ? message(input, body) : body)
