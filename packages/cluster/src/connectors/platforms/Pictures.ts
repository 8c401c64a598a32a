/** Pictures as an option has them: `content_base64`, `content_type` and `alt`, at most four. */
import { Schema } from "effect"

export const Picture = Schema.Struct({
  content_base64: Schema.String.check(Schema.isMinLength(1), Schema.isPattern(/^[A-Za-z0-9+/]+={0,2}$/)),
  content_type: Schema.String.check(Schema.isPattern(/^[a-z]+\/[a-z0-9.+-]{1,60}$/)),
  alt: Schema.optionalKey(Schema.NullOr(Schema.String.check(Schema.isMaxLength(1500)))),
})
export type Picture = typeof Picture.Type

export const Pictures = Schema.Array(Picture).check(Schema.isMaxLength(4))

export const bytesOf = ({ content_base64 }: Picture): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(content_base64, "base64"))

/** How many bytes it has, without making them. */
export const sizeOf = ({ content_base64 }: Picture): number => Buffer.byteLength(content_base64, "base64")
