/** Posts of the account, and the conversations they stand in. */
import { AppBskyFeedDefs, type AppBskyFeedPost, type ComAtprotoRepoStrongRef } from "@atproto/api"
import type { Page, Post } from "@svc/domain/connectors/Post"
import { Clock, Effect } from "effect"
import { InputRefused, type PlatformFailure, PlatformRefused, PlatformUnreachable } from "../Failure.ts"
import type { NewPost, PageRequest } from "../Platform.ts"
import type { Connection } from "./Connection.ts"
import * as Options from "./Options.ts"
import * as Profile from "./Profile.ts"
import * as RecordKey from "./RecordKey.ts"
import * as Records from "./Records.ts"
import * as Text from "./Text.ts"

/** Records asked for at once. */
const pageAtMost = 50
/** A conversation is shown as far as this. */
const threadPosts = 200
const threadParents = 40
const threadDepth = 6

export const judge = Effect.fnUntraced(function* (post: NewPost): Effect.fn.Return<Options.Options, InputRefused> {
  const options = yield* Options.judge(post.options)
  yield* Text.judge(post.text, Text.ofPosts)
  if (post.text.trim() === "" && options.images.length === 0) {
    return yield* new InputRefused({ message: "There is nothing to post.", path: "/text" })
  }
  if (post.replyTo !== undefined && Records.parse(post.replyTo) === undefined) {
    return yield* new InputRefused({ message: "This is not the uri of a post on Bluesky.", path: "/reply_to" })
  }
  return options
})

export const create = Effect.fnUntraced(function* (
  connection: Connection,
  name: string,
  given: NewPost,
): Effect.fn.Return<Post, PlatformFailure> {
  const { langs, labels, images } = yield* judge(given)
  const { agent, call, did } = connection
  const rkey = RecordKey.ofCommand(given.command)
  const author = { did, handle: name }
  if (given.again) {
    const made = yield* find(connection, did, rkey)
    if (made !== undefined) return yield* shown(made.uri, made.value, author)
  }
  const reply = given.replyTo === undefined ? undefined : yield* replyTo(connection, given.replyTo)
  const blobs = yield* Effect.forEach(images, ({ bytes, type, alt }) =>
    Effect.map(
      call(() => agent.com.atproto.repo.uploadBlob(bytes, { encoding: type })),
      ({ data }) => ({ image: data.blob, alt }),
    ),
  )
  const facets = yield* Text.facets(connection, given.text)
  const record: AppBskyFeedPost.Record = {
    $type: Records.collection,
    text: given.text,
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
  return yield* shown(data.uri, record, author)
})

const shown = (uri: string, record: unknown, author: Records.Author): Effect.Effect<Post, PlatformUnreachable> => {
  const post = Records.post(uri, record, author)
  return post === undefined
    ? Effect.fail(new PlatformUnreachable({ message: "The server gave something that is no post." }))
    : Effect.succeed(post)
}

interface Found {
  readonly uri: string
  readonly cid: string | undefined
  readonly value: unknown
}

/** Whoever's it is, the account's own server finds it. */
const find = (
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
  const found = parsed === undefined ? undefined : yield* find(connection, parsed.host, parsed.rkey)
  if (found?.cid === undefined) {
    return yield* new PlatformRefused({ message: "The post to answer is not there.", missing: true })
  }
  const parent: ComAtprotoRepoStrongRef.Main = { uri: found.uri, cid: found.cid }
  return { root: Records.replyOf(found.value)?.root ?? parent, parent }
})

/** From the account's own repository: what was just posted is in it. */
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
  given: string,
): Effect.fn.Return<Page<Post>, PlatformFailure> {
  const uri = Records.parse(given)?.uri
  if (uri === undefined) {
    return yield* new InputRefused({ message: "This is not the uri of a post on Bluesky.", path: "/uri" })
  }
  const read = (depth: number) =>
    call(() => agent.app.bsky.feed.getPostThread({ uri, depth, parentHeight: threadParents }))
  const { data } = yield* read(threadDepth).pipe(
    // Too many answers to be read: less deep, and none in the end.
    Effect.catchTag("PlatformUnreachable", () => read(1)),
    Effect.catchTag("PlatformUnreachable", () => read(0)),
  )
  const { thread } = data
  if (!AppBskyFeedDefs.isThreadViewPost(thread)) {
    return yield* new PlatformRefused({ message: "The post is not there, or not for this account.", missing: true })
  }
  const views = [...before(thread), thread.post, ...after(thread)]
  return { entries: views.slice(0, threadPosts).flatMap((view) => viewed(view) ?? []), cursor: null }
})

/** What the post answers, from the root on. */
const before = ({ parent }: AppBskyFeedDefs.ThreadViewPost): ReadonlyArray<AppBskyFeedDefs.PostView> => {
  const views: Array<AppBskyFeedDefs.PostView> = []
  for (let at = parent; AppBskyFeedDefs.isThreadViewPost(at) && views.length < threadParents; at = at.parent) {
    views.unshift(at.post)
  }
  return views
}

/** What answers it, each answer followed by its own. */
function* after({ replies }: AppBskyFeedDefs.ThreadViewPost, depth = 0): Generator<AppBskyFeedDefs.PostView> {
  // As deep as was asked for, whatever came.
  if (depth > threadDepth) return
  for (const reply of replies ?? []) {
    if (!AppBskyFeedDefs.isThreadViewPost(reply)) continue
    yield reply.post
    yield* after(reply, depth + 1)
  }
}

const viewed = ({ uri, record, author, indexedAt }: AppBskyFeedDefs.PostView): Post | undefined =>
  Records.post(uri, record, author, indexedAt)
