/** Schema of pictures in options: up to four, each with `content_base64`, `content_type` and `alt`. */
import { Schema } from "effect"

/**
 * Returns whether a text is base64. Searches for an invalid character, because a pattern for the whole text would
 * backtrack over millions of characters.
 */
export const isBase64 = (text: string): boolean => {
  const bare = text.slice(0, text.endsWith("==") ? -2 : text.endsWith("=") ? -1 : undefined)
  return bare !== "" && !/[^A-Za-z0-9+/]/.test(bare)
}

export const Picture = Schema.Struct({
  content_base64: Schema.String.check(Schema.makeFilter(isBase64, { expected: "base64" })),
  content_type: Schema.String.check(Schema.isPattern(/^[a-z]+\/[a-z0-9.+-]{1,60}$/)),
  alt: Schema.optionalKey(Schema.NullOr(Schema.String.check(Schema.isMaxLength(1500)))),
})
export type Picture = typeof Picture.Type

export const Pictures = Schema.Array(Picture).check(Schema.isMaxLength(4))

export const bytesOf = ({ content_base64 }: Picture): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(content_base64, "base64"))

/** Returns the size in bytes without decoding. */
export const sizeOf = ({ content_base64 }: Picture): number => Buffer.byteLength(content_base64, "base64")
