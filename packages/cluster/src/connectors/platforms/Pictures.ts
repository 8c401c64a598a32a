/** Pictures as an option has them: `content_base64`, `content_type` and `alt`, at most four. */
import { Schema } from "effect"

/** Looks for what base64 has not: a pattern of the whole text goes back over each of its millions of characters. */
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

/** How many bytes it has, without making them. */
export const sizeOf = ({ content_base64 }: Picture): number => Buffer.byteLength(content_base64, "base64")
