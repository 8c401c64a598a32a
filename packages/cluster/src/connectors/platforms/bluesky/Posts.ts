/** Posts of the account, and threads. */
import { AppBskyFeedDefs, type AppBskyFeedPost, type ComAtprotoRepoStrongRef } from "@atproto/api"
import type { Page, Post } from "@svc/domain/connectors/Post"
import { Clock, Effect } from "effect"
import { InputRefused, type PlatformFailure, PlatformRefused, PlatformUnreachable } from "../Failure.ts"
import type { NewPost, PageRequest } from "../Platform.ts"
import type { Connection } from "./Connection.ts"
import * as Options from "./Options.ts"
import * as Profile from "./Profile.ts"
import * as Records from "./Records.ts"
import * as Text from "./Text.ts"

/** Largest page of records. */
const pageAtMost = 50
/** Limits for a returned thread. */
const threadPosts = 200
const threadParents = 40
const threadDepth = 6

export const validate = Effect.fnUntraced(function* (post: NewPost): Effect.fn.Return<Options.Options, InputRefused> {
  const options = yield* Options.parse(post.options)
  yield* Text.validate(post.text, Text.postLimit)
  if (post.text.trim() === "" && options.images.length === 0) {
    return yield* new InputRefused({ message: "A post needs text or images.", path: "/text" })
  }
  if (post.replyTo !== undefined && Records.parse(post.replyTo) === undefined) {
    return yield* new InputRefused({ message: "This is not the URI of a post on Bluesky.", path: "/reply_to" })
  }
  return options
})

export const create = Effect.fnUntraced(function* (
  connection: Connection,
  name: string,
  post: NewPost,
): Effect.fn.Return<Post, PlatformFailure> {
  const { langs, labels, images } = yield* validate(post)
  const { agent, call, did } = connection
  const rkey = Records.keyOf(post.command)
  const author = { did, handle: name }
  if (post.again) {
    const existing = yield* findRecord(connection, did, rkey)
    if (existing !== undefined) return yield* postOf(existing.uri, existing.value, author)
  }
  const reply = post.replyTo === undefined ? undefined : yield* replyTo(connection, post.replyTo)
  const blobs = yield* Effect.forEach(images, ({ bytes, type, alt }) =>
    Effect.map(
      call(() => agent.com.atproto.repo.uploadBlob(bytes, { encoding: type })),
      ({ data }) => ({ image: data.blob, alt }),
    ),
  )
  const facets = yield* Text.facets(connection, post.text)
  const record: AppBskyFeedPost.Record = {
    $type: Records.collection,
    text: post.text,
    createdAt: new Date(yield* Clock.currentTimeMillis).toISOString(),
    ...(facets === undefined ? {} : { facets }),
    ...(reply === undefined ? {} : { reply }),
    ...(langs === undefined ? {} : { langs: [...langs] }),
    ...(blobs.length === 0 ? {} : { embed: { $type: "app.bsky.embed.images", images: blobs } }),
    ...(labels === undefined || labels.length === 0
      ? {}
      : { labels: { $type: "com.atproto.label.defs#selfLabels", values: labels.map((val) => ({ val })) } }),
  }
  const { data } = yield* call(() =>
    agent.com.atproto.repo.createRecord({ repo: did, collection: Records.collection, rkey, record: { ...record } }),
  )
  return yield* postOf(data.uri, record, author)
})

const postOf = (uri: string, record: unknown, author: Records.Author): Effect.Effect<Post, PlatformUnreachable> => {
  const post = Records.post(uri, record, author)
  return post === undefined
    ? Effect.fail(new PlatformUnreachable({ message: "The server's response is not a post." }))
    : Effect.succeed(post)
}

interface Found {
  readonly uri: string
  readonly cid: string | undefined
  readonly value: unknown
}

/** Reads a post's record, from any repository, through the account's server. */
const findRecord = (
  { agent, call }: Connection,
  repo: string,
  rkey: string,
): Effect.Effect<Found | undefined, PlatformFailure> =>
  call(() => agent.com.atproto.repo.getRecord({ repo, collection: Records.collection, rkey })).pipe(
    Effect.map(({ data: { uri, cid, value } }): Found => ({ uri, cid, value })),
    Effect.catchTag("PlatformRefused", (refused) =>
      refused.missing === true ? Effect.succeed(undefined) : Effect.fail(refused),
    ),
  )

const replyTo = Effect.fnUntraced(function* (
  connection: Connection,
  uri: string,
): Effect.fn.Return<AppBskyFeedPost.ReplyRef, PlatformFailure> {
  const parsed = Records.parse(uri)
  const found = parsed === undefined ? undefined : yield* findRecord(connection, parsed.host, parsed.rkey)
  if (found?.cid === undefined) {
    return yield* new PlatformRefused({ message: "The post to reply to does not exist.", missing: true })
  }
  const parent: ComAtprotoRepoStrongRef.Main = { uri: found.uri, cid: found.cid }
  return { root: Records.replyOf(found.value)?.root ?? parent, parent }
})

/** Returns the account's posts from its own repository, which includes a post immediately. */
export const own = Effect.fnUntraced(function* (
  connection: Connection,
  name: string,
  { limit, cursor }: PageRequest,
): Effect.fn.Return<Page<Post>, PlatformFailure> {
  const { agent, call, did } = connection
  const wanted = {
    repo: did,
    collection: Records.collection,
    limit: Math.min(limit, pageAtMost),
    ...(cursor === undefined ? {} : { cursor }),
  }
  const [{ data }, profile] = yield* Effect.all(
    [call(() => agent.com.atproto.repo.listRecords(wanted)), Profile.read(connection)],
    { concurrency: 2 },
  )
  const author = { did, handle: name, displayName: Profile.displayName(profile) ?? undefined }
  return {
    entries: data.records.flatMap(({ uri, value }) => Records.post(uri, value, author) ?? []),
    cursor: data.records.length === 0 ? null : (data.cursor ?? null),
  }
})

export const thread = Effect.fnUntraced(function* (
  { agent, call }: Connection,
  post: string,
): Effect.fn.Return<Page<Post>, PlatformFailure> {
  const uri = Records.parse(post)?.uri
  if (uri === undefined) {
    return yield* new InputRefused({ message: "This is not the URI of a post on Bluesky.", path: "/uri" })
  }
  const read = (depth: number) =>
    call(() => agent.app.bsky.feed.getPostThread({ uri, depth, parentHeight: threadParents }))
  const { data } = yield* read(threadDepth).pipe(
    // The response was too large: request fewer levels of replies, and finally none.
    Effect.catchTag("PlatformUnreachable", () => read(1)),
    Effect.catchTag("PlatformUnreachable", () => read(0)),
  )
  const { thread } = data
  if (!AppBskyFeedDefs.isThreadViewPost(thread)) {
    return yield* new PlatformRefused({
      message: "The post does not exist, or this account may not see it.",
      missing: true,
    })
  }
  const views = [...ancestors(thread), thread.post, ...descendants(thread)]
  return { entries: views.slice(0, threadPosts).flatMap((view) => postOfView(view) ?? []), cursor: null }
})

/** Returns the posts above a post, from the root. */
const ancestors = ({ parent }: AppBskyFeedDefs.ThreadViewPost): ReadonlyArray<AppBskyFeedDefs.PostView> => {
  const views: Array<AppBskyFeedDefs.PostView> = []
  for (let at = parent; AppBskyFeedDefs.isThreadViewPost(at) && views.length < threadParents; at = at.parent) {
    views.unshift(at.post)
  }
  return views
}

/** Yields the replies to a post, each followed by its own replies. */
function* descendants({ replies }: AppBskyFeedDefs.ThreadViewPost, depth = 0): Generator<AppBskyFeedDefs.PostView> {
  // A server may return more levels than requested.
  if (depth > threadDepth) return
  for (const reply of replies ?? []) {
    if (!AppBskyFeedDefs.isThreadViewPost(reply)) continue
    yield reply.post
    yield* descendants(reply, depth + 1)
  }
}

const postOfView = ({ uri, record, author, indexedAt }: AppBskyFeedDefs.PostView): Post | undefined =>
  Records.post(uri, record, author, indexedAt)
