/** Keys and parsing of post records (`app.bsky.feed.post`). Records come from any server and may violate the lexicon. */
import { AtUri } from "@atproto/api"
import type { Post } from "@svc/domain/connectors/Post"
import { Option, Schema } from "effect"
import { boundedDate, boundedPost } from "../ResponseBounds.ts"

const Record = Schema.Struct({
  text: Schema.String,
  createdAt: Schema.optionalKey(Schema.Unknown),
  reply: Schema.optionalKey(Schema.Unknown),
})
const decodeRecord = Schema.decodeUnknownOption(Record)

const Ref = Schema.Struct({ uri: Schema.String, cid: Schema.String })
const Reply = Schema.Struct({ root: Ref, parent: Ref })
const decodeReply = Schema.decodeUnknownOption(Reply)

export interface Author {
  readonly did: string
  readonly handle: string
  readonly displayName?: string | undefined
}

export const collection = "app.bsky.feed.post"

/** Returns the post of a record, or undefined if the record is not a post. */
export const post = (uri: string, record: unknown, author: Author, seen?: string): Post | undefined => {
  const read = Option.getOrUndefined(decodeRecord(record))
  if (read === undefined) return undefined
  const seenAt = seen === undefined ? new Date(0) : boundedDate(seen, new Date(0))
  return boundedPost({
    uri,
    url: urlOf(uri),
    author_id: author.did,
    author: author.handle,
    author_name: author.displayName === undefined || author.displayName === "" ? null : author.displayName,
    text: read.text,
    reply_to: replyOf(record)?.parent.uri ?? null,
    created_at: typeof read.createdAt === "string" ? boundedDate(read.createdAt, seenAt) : seenAt,
  })
}

/** Returns the references to a post's parent and to the root of its thread. */
export const replyOf = (record: unknown): typeof Reply.Type | undefined =>
  Option.getOrUndefined(Option.flatMap(decodeRecord(record), ({ reply }) => decodeReply(reply)))

/** Returns the address of the post's page in the Bluesky app. */
const urlOf = (uri: string): string | null => {
  const parsed = parse(uri)
  return parsed === undefined ? null : `https://bsky.app/profile/${parsed.host}/post/${parsed.rkey}`
}

/** Parses a post's `at://` URI, or the address of its page in the Bluesky app. */
export const parse = (
  uri: string,
): { readonly host: string; readonly rkey: string; readonly uri: string } | undefined => {
  const page = /^https:\/\/bsky\.app\/profile\/([^/?#]{1,300})\/post\/([^/?#]{1,512})$/.exec(uri)
  const text = page === null ? uri : `at://${page[1]}/${collection}/${page[2]}`
  if (text.length > 2_048) return undefined
  try {
    const at = new AtUri(text)
    return at.collection === collection && at.rkey !== "" ? { host: at.host, rkey: at.rkey, uri: at.href } : undefined
  } catch {
    return undefined
  }
}

const digits = "234567abcdefghijklmnopqrstuvwxyz"

/**
 * Returns the record key for a command, a version 7 UUID: 48 bits of milliseconds, then random bits. A repeated command
 * addresses the same record. A key has the form of atproto's TIDs (https://atproto.com/specs/tid): 53 bits of
 * microseconds and 10 bits of a clock id, in sortable base32.
 */
export const keyOf = (command: string): string => {
  const bits = BigInt(`0x${command.replaceAll("-", "")}`)
  const millis = bits >> 80n
  const random = bits & ((1n << 62n) - 1n)
  const micros = millis * 1_000n + (random % 1_000n)
  let rest = ((micros & ((1n << 53n) - 1n)) << 10n) | ((random / 1_000n) & 1_023n)
  let text = ""
  for (let place = 0; place < 13; place++) {
    text = digits[Number(rest & 31n)] + text
    rest >>= 5n
  }
  return text
}
