/** `options.bluesky` of a post (decisions.md "Connector"): everything is judged before a call, what is unknown is refused. */
import { Effect } from "effect"
import { InputRefused } from "../Failure.ts"
import { isBase64 } from "../Pictures.ts"

export interface Image {
  readonly bytes: Uint8Array
  readonly type: string
  readonly alt: string
}

export interface Options {
  /** BCP 47. */
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
/** What apps let people write. */
const altAtMost = 2_000

const at = "/options/bluesky"
const refuse = (path: string, message: string) => Effect.fail(new InputRefused({ message, path: `${at}${path}` }))
const unknown = (path: string, message: string) =>
  Effect.fail(new InputRefused({ message, path: `${at}${path}`, unknownOption: true }))

export const judge = Effect.fnUntraced(function* (
  given: Readonly<Record<string, unknown>>,
): Effect.fn.Return<Options, InputRefused> {
  const { langs, labels, images, ...others } = given
  const [other] = Object.keys(others)
  if (other !== undefined) {
    return yield* unknown(`/${pointer(other)}`, "Bluesky knows the options `langs`, `labels` and `images`.")
  }
  return {
    langs: yield* texts("/langs", langs, langsAtMost, isLanguage, "a language tag of BCP 47, as in `en` or `pt-BR`"),
    labels: yield* texts("/labels", labels, labelsAtMost, isLabel, "a label, as in `graphic-media`"),
    images: images === undefined ? [] : yield* Effect.forEach(yield* list("/images", images, imagesAtMost), image),
  }
})

/** Direct messages have none. */
export const judgeNone = (given: Readonly<Record<string, unknown>>): Effect.Effect<void, InputRefused> => {
  const [first] = Object.keys(given)
  return first === undefined
    ? Effect.void
    : unknown(`/${pointer(first)}`, "A direct message on Bluesky takes no options.")
}

const pointer = (name: string) => name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")

const isLanguage = (text: string) => /^[a-zA-Z]{2,8}(-[a-zA-Z0-9]{1,8}){0,8}$/.test(text)
const isLabel = (text: string) => /^!?[a-z][a-z0-9-]*$/.test(text) && text.length <= labelBytes

const list = (path: string, given: unknown, atMost: number): Effect.Effect<ReadonlyArray<unknown>, InputRefused> =>
  Array.isArray(given) && given.length <= atMost
    ? Effect.succeed(given)
    : refuse(path, `A list of at most ${atMost} is expected.`)

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
  if (wrong >= 0) return yield* refuse(`${path}/${wrong}`, `This is not ${expected}.`)
  return entries.filter((entry) => typeof entry === "string")
})

const image = Effect.fnUntraced(function* (given: unknown, index: number): Effect.fn.Return<Image, InputRefused> {
  const path = `/images/${index}`
  if (typeof given !== "object" || given === null) return yield* refuse(path, "An image is an object.")
  const { content_base64, content_type, alt, ...others } = given as Record<string, unknown>
  const [other] = Object.keys(others)
  if (other !== undefined) {
    return yield* unknown(`${path}/${pointer(other)}`, "An image has `content_base64`, `content_type` and `alt`.")
  }
  if (typeof alt !== "string" || alt.length > altAtMost) {
    return yield* refuse(`${path}/alt`, `A description of the image of at most ${altAtMost} characters is expected.`)
  }
  if (typeof content_type !== "string" || !Object.hasOwn(marks, content_type)) {
    return yield* refuse(`${path}/content_type`, `One of ${Object.keys(marks).join(", ")} is expected.`)
  }
  if (typeof content_base64 !== "string" || content_base64.length > (imageBytes / 3) * 4 + 4) {
    return yield* refuse(`${path}/content_base64`, `At most ${imageBytes} bytes in base64 are expected.`)
  }
  // Node would skip what is not base64.
  if (!isBase64(content_base64)) return yield* refuse(`${path}/content_base64`, "This is not base64.")
  const bytes = Buffer.from(content_base64, "base64")
  if (!marks[content_type as keyof typeof marks](bytes)) {
    return yield* refuse(`${path}/content_base64`, `The bytes are no image of the type ${content_type}.`)
  }
  return { bytes, type: content_type, alt }
})

const begins = (hex: string, offset = 0) => {
  const mark = Buffer.from(hex, "hex")
  return (bytes: Buffer) => bytes.subarray(offset, offset + mark.length).equals(mark)
}
const isWebp = (bytes: Buffer) => begins("52494646")(bytes) && begins("57454250", 8)(bytes)

/** The first bytes of what each type is. */
const marks = {
  "image/jpeg": begins("ffd8ff"),
  "image/png": begins("89504e470d0a1a0a"),
  "image/gif": begins("47494638"),
  "image/webp": isWebp,
}
