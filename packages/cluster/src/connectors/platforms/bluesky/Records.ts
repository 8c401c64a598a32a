/** Posts as they come back: records (`app.bsky.feed.post`) of anybody's server, which need not keep to the lexicon. */
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

/** Undefined where the record is no post. */
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

/** What a post answers, and where its conversation begins. */
export const replyOf = (record: unknown): typeof Reply.Type | undefined =>
  Option.getOrUndefined(Option.flatMap(decodeRecord(record), ({ reply }) => decodeReply(reply)))

/** The post's page in the app that most people use. */
const urlOf = (uri: string): string | null => {
  const parsed = parse(uri)
  return parsed === undefined ? null : `https://bsky.app/profile/${parsed.host}/post/${parsed.rkey}`
}

/** A post's `at://` address, or the address of its page in the app, taken apart. */
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
