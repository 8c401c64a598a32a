/** Takes one attachment out of a message, by the index that `ParsedMail` gives it, decoded in pieces as it goes out. */
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { Effect, Layer, Stream } from "effect"
import * as Decode from "./mime/Decode.ts"
import { index } from "./mime/Part.ts"
import { attachmentsOf } from "./ParsedMail.ts"

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

export const layer = Layer.succeed(AttachmentReader, {
  read: Effect.fnUntraced(function* (bytes, at) {
    const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const part = attachmentsOf(index(raw))[at]
    if (part === undefined) return undefined
    let size = 0
    for (const piece of Decode.pieces(raw, part)) {
      size += piece.length
      yield* Effect.yieldNow
    }
    return {
      filename: part.filename === null ? null : Decode.clean(part.filename),
      content_type: part.type,
      size,
      content: (start: number, end: number) => between(Decode.pieces(raw, part), start, end),
    }
  }),
})
