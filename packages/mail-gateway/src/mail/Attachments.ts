/**
 * Takes one attachment out of a message, by the index that `ParsedMail` gives it, decoded in pieces as it goes out; or the
 * pictures that its HTML names by their Content-ID.
 */
import { fromHtml } from "@svc/cluster/html/PlainText"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { Effect, Layer, Stream } from "effect"
import * as Decode from "./mime/Decode.ts"
import * as Header from "./mime/Header.ts"
import { indexing, type Part } from "./mime/Part.ts"
import { attachmentsOf } from "./ParsedMail.ts"

/** The attachments of a message; between the steps others have their turn. */
const attachmentsIn = Effect.fnUntraced(function* (raw: Buffer) {
  const work = indexing(raw)
  let next = work.next()
  while (next.done !== true) {
    yield* Effect.yieldNow
    next = work.next()
  }
  return attachmentsOf(next.value)
})

/** The pieces of the content between two offsets of it. */
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

/** Bytes that are decoded for the text of an attachment; HTML takes longer. */
const textAtMost = 1024 * 1024
const htmlAtMost = 256 * 1024

/** Types that say they are text, and types that are none whatever their first bytes look like. */
const textTypes =
  /^(?:text\/|message\/|application\/(?:.*\+)?(?:json|xml|yaml|toml|sql|javascript|x-sh|x-ndjson|jsonl|csv)$)/
const otherTypes = /^(?:image|audio|video|font)\/|^application\/(?:pdf|zip|gzip)$/
/** Bytes that are looked at where the type does not tell. */
const lookedAt = 4096

/** Whether bytes without a telling type are text: UTF-8 without control characters. */
const looksLikeText = (bytes: Uint8Array): boolean => {
  if (bytes.length === 0) return false
  try {
    // The last character may be cut off, which `stream` allows.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true })
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    return !/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text)
  } catch {
    return false
  }
}

/** Bytes of one picture, and of all that one message shows; how many parts are looked at. */
const picturesAtMost = { one: 2 * 1024 * 1024, all: 6 * 1024 * 1024, parts: 100 }
/** What browsers draw and nothing else: an SVG is a document. */
const picture = /^image\/(?:png|jpeg|gif|webp)$/

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
    const limit = isHtml ? htmlAtMost : textAtMost
    yield* Effect.yieldNow
    const isText = textTypes.test(type) || (!otherTypes.test(type) && looksLikeText(Decode.bytes(raw, part, lookedAt)))
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
    let left = picturesAtMost.all
    for (const part of (yield* attachmentsIn(raw)).slice(0, picturesAtMost.parts)) {
      const id = picture.test(part.type) ? contentId(raw, part) : undefined
      if (id === undefined || found.has(id)) continue
      yield* Effect.yieldNow
      const content = Decode.bytes(raw, part, Math.min(left, picturesAtMost.one) + 1)
      // Half a picture is none.
      if (content.length > Math.min(left, picturesAtMost.one)) continue
      left -= content.length
      found.set(id, `data:${part.type};base64,${content.toString("base64")}`)
    }
    return found
  }),
})
