/** Validates a post: its options, and the length of its text as Mastodon counts it. */
import { Effect, Schema } from "effect"
import { InputRefused } from "../Failure.ts"
import { Pictures, reader, sizeOf } from "../Options.ts"
import type { NewPost } from "../Platform.ts"
import type { Limits } from "./Discovery.ts"

const members = {
  visibility: Schema.optionalKey(Schema.Literals(["public", "unlisted", "private", "direct"])),
  spoiler_text: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(5000))),
  sensitive: Schema.optionalKey(Schema.Boolean),
  language: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/))),
  media: Schema.optionalKey(Pictures),
}
const Options = Schema.Struct(members)
export type Options = typeof Options.Type

const read = reader("mastodon", Options, Object.keys(members))

const empty = new InputRefused({ message: "A post needs text or media.", path: "/text" })
const openDm = new InputRefused({
  message: "A direct message must have the visibility `direct`.",
  path: "/options/mastodon/visibility",
})

/** Returns `user` or `user@domain` without a leading `@`, or undefined if the recipient is invalid. */
export const recipientOf = (to: string): string | undefined =>
  /^@?([\w.-]{1,100}(?:@[a-z0-9.:-]{1,255})?)$/i.exec(to.trim())?.[1]

/** Validates a post as far as possible without a call. Returns its options. */
export const parse = Effect.fnUntraced(function* (post: NewPost): Effect.fn.Return<Options, InputRefused> {
  const options = yield* read(post.options)
  if (post.text.trim() === "" && (options.media ?? []).length === 0) return yield* empty
  if (post.to !== undefined) {
    if (recipientOf(post.to) === undefined) {
      return yield* new InputRefused({ message: "The recipient must be `user@domain`.", path: "/to" })
    }
    if (options.visibility !== undefined && options.visibility !== "direct") return yield* openDm
  }
  return options
})

const urls = /https?:\/\/[^\s<>"]+/gi
const mentions = /(^|[^\w/@])@([\w.-]+)@[\w.:-]+\w/g
const segmenter = new Intl.Segmenter()

/**
 * Counts the characters of a text as Mastodon does: graphemes, with a fixed length for each URL and without the domains of
 * mentions. Stops above `most`.
 */
const lengthOf = (text: string, perUrl: number, most: number): number => {
  const counted = text.replace(urls, "x".repeat(perUrl)).replace(mentions, "$1@$2")
  let length = 0
  for (const _ of segmenter.segment(counted)) if (++length > most) break
  return length
}

/** Validates a post against the server's limits. */
export const checkLimits = (limits: Limits, text: string, options: Options): Effect.Effect<void, InputRefused> => {
  const media = options.media ?? []
  const spoiler = options.spoiler_text ?? ""
  if (lengthOf(text + spoiler, limits.perUrl, limits.characters) > limits.characters) {
    return Effect.fail(
      new InputRefused({ message: `The server allows at most ${limits.characters} characters.`, path: "/text" }),
    )
  }
  if (media.length > limits.attachments) {
    return Effect.fail(
      new InputRefused({
        message: `The server allows at most ${limits.attachments} attachments.`,
        path: "/options/mastodon/media",
      }),
    )
  }
  for (const [index, picture] of media.entries()) {
    const path = `/options/mastodon/media/${index}`
    if (limits.mimeTypes !== undefined && !limits.mimeTypes.has(picture.content_type)) {
      return Effect.fail(
        new InputRefused({
          message: `The server does not accept ${picture.content_type}.`,
          path: `${path}/content_type`,
        }),
      )
    }
    if (sizeOf(picture) > limits.imageBytes) {
      return Effect.fail(
        new InputRefused({
          message: `The server accepts images of at most ${limits.imageBytes} bytes.`,
          path: `${path}/content_base64`,
        }),
      )
    }
  }
  return Effect.void
}
