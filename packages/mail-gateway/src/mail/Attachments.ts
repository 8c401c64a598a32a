/**
 * Extracts an attachment by the index that `ParsedMail` gives it, decoded in pieces while it is sent, and the images
 * that a message's HTML references by Content-ID.
 */
import { fromHtml } from "@svc/cluster/html/PlainText"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { Effect, Layer, Stream } from "effect"
import * as Decode from "./mime/Decode.ts"
import * as Header from "./mime/Header.ts"
import { indexing, type Part } from "./mime/Part.ts"
import { attachmentsOf } from "./ParsedMail.ts"

/** Returns the attachments of a message. Yields between steps so that other fibers can run. */
const attachmentsIn = Effect.fnUntraced(function* (raw: Buffer) {
  const work = indexing(raw)
  let next = work.next()
  while (next.done !== true) {
    yield* Effect.yieldNow
    next = work.next()
  }
  return attachmentsOf(next.value)
})

/** Streams the content between two offsets. */
const between = (pieces: Iterable<Uint8Array>, start: number, end: number) =>
  Stream.unfold(
    { iterator: pieces[Symbol.iterator](), at: 0 },
    ({
      iterator,
      at,
    }): Effect.Effect<readonly [Uint8Array, { iterator: Iterator<Uint8Array>; at: number }] | undefined> =>
      Effect.as(Effect.yieldNow, undefined).pipe(
        Effect.map(() => {
          const next = at >= end ? undefined : iterator.next()
          if (next === undefined || next.done === true) return undefined
          const piece = next.value
          return [
            piece.subarray(Math.max(0, start - at), Math.max(0, Math.min(piece.length, end - at))),
            { iterator, at: at + piece.length },
          ] as const
        }),
      ),
  ).pipe(Stream.filter((piece) => piece.length > 0))

/** The maximum bytes decoded for an attachment's text. HTML takes longer to convert. */
const maxTextBytes = 1024 * 1024
const maxHtmlBytes = 256 * 1024

/** Types that are text, and types that are binary whatever their first bytes look like. */
const textTypes =
  /^(?:text\/|message\/|application\/(?:.*\+)?(?:json|xml|yaml|toml|sql|javascript|x-sh|x-ndjson|jsonl|csv)$)/
const binaryTypes = /^(?:image|audio|video|font)\/|^application\/(?:pdf|zip|gzip)$/
/** The bytes inspected when the type is inconclusive. */
const sniffedBytes = 4096

/** Returns whether the bytes are UTF-8 without control characters. */
const looksLikeText = (bytes: Uint8Array): boolean => {
  if (bytes.length === 0) return false
  try {
    // `stream` permits a truncated last character.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true })
    // oxlint-disable-next-line no-control-regex -- control characters are searched for
    return !/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text)
  } catch {
    return false
  }
}

/** The maximum bytes of one image and of all images of a message, and the maximum number of parts inspected. */
const imageLimits = { one: 2 * 1024 * 1024, all: 6 * 1024 * 1024, parts: 100 }
/** Raster formats that browsers display. An SVG is a document. */
const imageType = /^image\/(?:png|jpeg|gif|webp)$/

const contentId = (raw: Buffer, { rows }: Part) =>
  /^\s*<?([^<>\s]{1,250})>?\s*$/.exec(Header.header(raw, rows, "content-id") ?? "")?.[1]

export const layer = Layer.succeed(AttachmentReader, {
  read: Effect.fnUntraced(function* (bytes, at) {
    const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const part = (yield* attachmentsIn(raw))[at]
    if (part === undefined) return undefined
    let size = 0
    for (const piece of Decode.pieces(raw, part)) {
      size += piece.length
      yield* Effect.yieldNow
    }
    return {
      filename: part.filename === null ? null : Decode.line(part.filename),
      content_type: part.type,
      size,
      content: (start: number, end: number) => between(Decode.pieces(raw, part), start, end),
    }
  }),
  text: Effect.fnUntraced(function* (bytes, at) {
    const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const part = (yield* attachmentsIn(raw))[at]
    if (part === undefined) return undefined
    const { type } = part
    const size = Decode.size(raw, part)
    const isHtml = type === "text/html" || type === "application/xhtml+xml"
    const limit = isHtml ? maxHtmlBytes : maxTextBytes
    yield* Effect.yieldNow
    const isText =
      textTypes.test(type) || (!binaryTypes.test(type) && looksLikeText(Decode.bytes(raw, part, sniffedBytes)))
    const text = isText ? Decode.text(raw, part, limit) : null
    return {
      filename: part.filename === null ? null : Decode.line(part.filename),
      content_type: type,
      size,
      text: text !== null && isHtml ? fromHtml(text) : text,
      whole: size <= limit,
    }
  }),
  pictures: Effect.fnUntraced(function* (bytes) {
    const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const found = new Map<string, string>()
    let left = imageLimits.all
    for (const part of (yield* attachmentsIn(raw)).slice(0, imageLimits.parts)) {
      const id = imageType.test(part.type) ? contentId(raw, part) : undefined
      if (id === undefined || found.has(id)) continue
      yield* Effect.yieldNow
      const content = Decode.bytes(raw, part, Math.min(left, imageLimits.one) + 1)
      // A truncated image is not shown.
      if (content.length > Math.min(left, imageLimits.one)) continue
      left -= content.length
      found.set(id, `data:${part.type};base64,${content.toString("base64")}`)
    }
    return found
  }),
})
