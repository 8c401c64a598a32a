/** Validates the options under a platform's name with the platform's schema, and the schema of pictures in options. */
import { Effect, Schema } from "effect"
import type { PlatformName } from "@svc/domain/connectors/Connector"
import { InputRefused } from "./Failure.ts"

/** Returns a member name as a segment of a JSON Pointer. */
export const segment = (key: PropertyKey) => String(key).slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")

/** Returns a decoder for options. An unknown option has its own problem; other errors are invalid requests. */
export const reader = <A>(platform: PlatformName, schema: Schema.Codec<A>, known: ReadonlyArray<string>) => {
  const decode = Schema.decodeUnknownEffect(schema, { onExcessProperty: "error" })
  return (options: Readonly<Record<string, unknown>>): Effect.Effect<A, InputRefused> => {
    const unknown = Object.keys(options).find((name) => !known.includes(name))
    if (unknown !== undefined) {
      return Effect.fail(
        new InputRefused({
          message: `${platform} has no option "${unknown.slice(0, 100)}". Its options are ${known.join(", ")}.`,
          path: `/options/${platform}/${segment(unknown)}`,
          unknownOption: true,
        }),
      )
    }
    return Effect.mapError(decode(options), (error) => {
      // Values may be whole pictures, so the message contains only the path.
      const at = /at \[(.*?)\]\s*$/s.exec(String(error.message).slice(-300))?.[1]
      const place = at === undefined ? "" : at.replaceAll('"]["', "/").replaceAll('"', "").replaceAll("][", "/")
      return new InputRefused({
        message: `The options of ${platform} are invalid${place === "" ? "" : ` at ${place}`}.`,
        path: `/options/${platform}${place === "" ? "" : `/${place}`}`,
      })
    })
  }
}

/**
 * Returns whether a text is base64. Searches for an invalid character, because a pattern for the whole text would
 * backtrack over millions of characters.
 */
export const isBase64 = (text: string): boolean => {
  const bare = text.slice(0, text.endsWith("==") ? -2 : text.endsWith("=") ? -1 : undefined)
  return bare !== "" && !/[^A-Za-z0-9+/]/.test(bare)
}

/** A picture. A post has up to four. */
const Picture = Schema.Struct({
  content_base64: Schema.String.check(Schema.makeFilter(isBase64, { expected: "base64" })),
  content_type: Schema.String.check(Schema.isPattern(/^[a-z]+\/[a-z0-9.+-]{1,60}$/)),
  alt: Schema.optionalKey(Schema.NullOr(Schema.String.check(Schema.isMaxLength(1500)))),
})
type Picture = typeof Picture.Type

export const Pictures = Schema.Array(Picture).check(Schema.isMaxLength(4))

export const bytesOf = ({ content_base64 }: Picture): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(content_base64, "base64"))

/** Returns the size in bytes without decoding. */
export const sizeOf = ({ content_base64 }: Picture): number => Buffer.byteLength(content_base64, "base64")
