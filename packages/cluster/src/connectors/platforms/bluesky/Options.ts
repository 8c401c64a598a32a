/** Parses `options.bluesky` of a post before any call, and rejects unknown options. */
import { Effect } from "effect"
import { InputRefused } from "../Failure.ts"
import { isBase64, segment } from "../Options.ts"

interface Image {
  readonly bytes: Uint8Array
  readonly type: string
  readonly alt: string
}

export interface Options {
  /** Language tags (BCP 47). */
  readonly langs: ReadonlyArray<string> | undefined
  readonly labels: ReadonlyArray<string> | undefined
  readonly images: ReadonlyArray<Image>
}

/** Limits of the lexicons `app.bsky.feed.post`, `com.atproto.label.defs` and `app.bsky.embed.images`. */
const langsAtMost = 3
const labelsAtMost = 10
const labelBytes = 128
const imagesAtMost = 4
const imageBytes = 2_000_000
/** Longest image description that the apps allow. */
const altAtMost = 2_000

const at = "/options/bluesky"
const invalid = (path: string, message: string) => Effect.fail(new InputRefused({ message, path: `${at}${path}` }))
const unknown = (path: string, message: string) =>
  Effect.fail(new InputRefused({ message, path: `${at}${path}`, unknownOption: true }))

export const parse = Effect.fnUntraced(function* (
  given: Readonly<Record<string, unknown>>,
): Effect.fn.Return<Options, InputRefused> {
  const { langs, labels, images, ...others } = given
  const [other] = Object.keys(others)
  if (other !== undefined) {
    return yield* unknown(`/${segment(other)}`, "Bluesky has the options `langs`, `labels` and `images`.")
  }
  return {
    langs: yield* texts("/langs", langs, langsAtMost, isLanguage, "a BCP 47 language tag, such as `en` or `pt-BR`"),
    labels: yield* texts("/labels", labels, labelsAtMost, isLabel, "a label, such as `graphic-media`"),
    images: images === undefined ? [] : yield* Effect.forEach(yield* list("/images", images, imagesAtMost), image),
  }
})

/** Rejects all options, for direct messages. */
export const rejectAll = (given: Readonly<Record<string, unknown>>): Effect.Effect<void, InputRefused> => {
  const [first] = Object.keys(given)
  return first === undefined
    ? Effect.void
    : unknown(`/${segment(first)}`, "Direct messages on Bluesky have no options.")
}

const isLanguage = (text: string) => /^[a-zA-Z]{2,8}(-[a-zA-Z0-9]{1,8}){0,8}$/.test(text)
const isLabel = (text: string) => /^!?[a-z][a-z0-9-]*$/.test(text) && text.length <= labelBytes

const list = (path: string, given: unknown, atMost: number): Effect.Effect<ReadonlyArray<unknown>, InputRefused> =>
  Array.isArray(given) && given.length <= atMost
    ? Effect.succeed(given)
    : invalid(path, `This must be a list of at most ${atMost}.`)

const texts = Effect.fnUntraced(function* (
  path: string,
  given: unknown,
  atMost: number,
  holds: (text: string) => boolean,
  expected: string,
): Effect.fn.Return<ReadonlyArray<string> | undefined, InputRefused> {
  if (given === undefined) return undefined
  const entries = yield* list(path, given, atMost)
  const wrong = entries.findIndex((entry) => typeof entry !== "string" || !holds(entry))
  if (wrong >= 0) return yield* invalid(`${path}/${wrong}`, `This is not ${expected}.`)
  return entries.filter((entry) => typeof entry === "string")
})

const image = Effect.fnUntraced(function* (given: unknown, index: number): Effect.fn.Return<Image, InputRefused> {
  const path = `/images/${index}`
  if (typeof given !== "object" || given === null) return yield* invalid(path, "An image must be an object.")
  const { content_base64, content_type, alt, ...others } = given as Record<string, unknown>
  const [other] = Object.keys(others)
  if (other !== undefined) {
    return yield* unknown(`${path}/${segment(other)}`, "An image has `content_base64`, `content_type` and `alt`.")
  }
  if (typeof alt !== "string" || alt.length > altAtMost) {
    return yield* invalid(`${path}/alt`, `An image needs a description of at most ${altAtMost} characters.`)
  }
  if (typeof content_type !== "string" || !Object.hasOwn(signatures, content_type)) {
    return yield* invalid(`${path}/content_type`, `The type must be one of ${Object.keys(signatures).join(", ")}.`)
  }
  if (typeof content_base64 !== "string" || content_base64.length > (imageBytes / 3) * 4 + 4) {
    return yield* invalid(`${path}/content_base64`, `This must be at most ${imageBytes} bytes in base64.`)
  }
  // Node would skip invalid characters.
  if (!isBase64(content_base64)) return yield* invalid(`${path}/content_base64`, "This is not base64.")
  const bytes = Buffer.from(content_base64, "base64")
  if (!signatures[content_type as keyof typeof signatures](bytes)) {
    return yield* invalid(`${path}/content_base64`, `The data is not an image of the type ${content_type}.`)
  }
  return { bytes, type: content_type, alt }
})

const hasBytes = (hex: string, offset = 0) => {
  const expected = Buffer.from(hex, "hex")
  return (bytes: Buffer) => bytes.subarray(offset, offset + expected.length).equals(expected)
}
const isWebp = (bytes: Buffer) => hasBytes("52494646")(bytes) && hasBytes("57454250", 8)(bytes)

/** Checks of the file signature, by content type. */
const signatures = {
  "image/jpeg": hasBytes("ffd8ff"),
  "image/png": hasBytes("89504e470d0a1a0a"),
  "image/gif": hasBytes("47494638"),
  "image/webp": isWebp,
}
