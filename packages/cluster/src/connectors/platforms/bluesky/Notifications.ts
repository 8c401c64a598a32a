/**
 * Mentions and replies from the account's notifications, and direct messages. A poll reads pages until it reaches posts
 * that an earlier poll reported, and returns the new ones, oldest first. Its mark contains the reported posts.
 */
import type { AppBskyNotificationListNotifications } from "@atproto/api"
import type { Page } from "@svc/domain/connectors/Post"
import { Effect, Option, Schema } from "effect"
import { createHash } from "node:crypto"
import { boundedDate } from "../ResponseBounds.ts"
import type { PlatformFailure } from "../Failure.ts"
import { type ReceivedPost, type PageRequest, type Poll, pollAtMost, type Session } from "../Platform.ts"
import type { Connection } from "./Connection.ts"
import * as Messages from "./Messages.ts"
import * as Records from "./Records.ts"
import * as AccountStatus from "./AccountStatus.ts"

type Listed = AppBskyNotificationListNotifications.Notification

const reasons = ["mention", "reply"]

const pageSize = 50
/** Largest number of pages that a poll reads. */
const pagesAtMost = 40
/** Number of reported posts in a mark: more than one page, because posts may be deleted in between. */
const rememberedAtMost = 200

/** Limit for posts and for direct messages in one poll. */
const halfLimit = pollAtMost / 2

const Mark = Schema.fromJsonString(
  Schema.Struct({
    /** Posts before this time (in milliseconds) are not reported. */
    floor: Schema.Number,
    /** Hashes of reported posts, latest first. */
    seen: Schema.Array(Schema.String),
    /** Cursor of the log of direct messages. */
    dm: Schema.optionalKey(Schema.String),
  }),
)
type Mark = typeof Mark.Type

const short = (uri: string) => createHash("sha256").update(uri).digest("base64url").slice(0, 12)

export const poll = Effect.fnUntraced(function* (
  session: Session,
  connection: Connection,
  text: string | undefined,
): Effect.fn.Return<Poll, PlatformFailure> {
  const mark = text === undefined ? undefined : Option.getOrUndefined(Schema.decodeOption(Mark)(text))
  const posts = mark === undefined ? yield* startingPoint(connection) : yield* newPosts(connection, mark)
  const messages = yield* newMessages(session, connection, mark?.dm)
  const notBefore = connection.quietUntil()
  const next: Mark = {
    floor: posts.floor,
    seen: posts.seen,
    ...(messages.mark === undefined ? {} : { dm: messages.mark }),
  }
  return {
    received: [...posts.received, ...messages.received].sort((a, b) => a.at.getTime() - b.at.getTime()),
    mark: JSON.stringify(next),
    more: posts.more || messages.more,
    ...(notBefore === undefined ? {} : { notBefore }),
  }
})

interface Found {
  readonly received: ReadonlyArray<ReceivedPost>
  readonly floor: number
  readonly seen: ReadonlyArray<string>
  readonly more: boolean
}

/** Returns the position for the first poll. Existing posts and anything older are not reported, even if some are deleted. */
const startingPoint = (connection: Connection) =>
  Effect.map(page(connection, pageSize, undefined), ({ listed, cursor, oldest }): Found => ({
    received: [],
    floor: cursor === undefined ? 0 : oldest,
    seen: listed.map(({ uri }) => short(uri)),
    more: false,
  }))

const newPosts = Effect.fnUntraced(function* (
  connection: Connection,
  { floor, seen }: Mark,
): Effect.fn.Return<Found, PlatformFailure> {
  const known = new Set(seen)
  let oldest: ReadonlyArray<Listed> = []
  let found = 0
  let cursor: string | undefined
  for (let read = 0; read < pagesAtMost; read++) {
    const next = yield* page(connection, pageSize, cursor)
    const fresh = next.listed.filter((entry) => !known.has(short(entry.uri)) && millisOf(entry) >= floor)
    found += fresh.length
    // The oldest posts are reported first. The next poll follows immediately and finds the newer ones again.
    oldest = [...oldest, ...fresh].slice(-halfLimit)
    if (fresh.length < next.listed.length || next.cursor === undefined) break
    cursor = next.cursor
  }
  const oldestFirst = oldest.toReversed()
  return {
    received: oldestFirst.flatMap((entry) => receivedOf(entry) ?? []),
    floor,
    seen: [...oldest.map(({ uri }) => short(uri)), ...seen].slice(0, rememberedAtMost),
    more: found > oldestFirst.length,
  }
})

/** Returns new direct messages if the account may read them. An unavailable chat service does not block mentions. */
const newMessages = (session: Session, connection: Connection, mark: string | undefined) =>
  Effect.gen(function* () {
    const nothing: Messages.NewMessages = { received: [], mark, more: false }
    if (!(yield* AccountStatus.mayDm(session))) return nothing
    return yield* Messages.since(connection, mark, halfLimit).pipe(
      Effect.catchTags({
        Unsupported: () => Effect.as(AccountStatus.cannotDm(session), nothing),
        PlatformRefused: () => Effect.succeed(nothing),
        PlatformRateLimited: () => Effect.succeed(nothing),
        PlatformUnreachable: () => Effect.succeed(nothing),
      }),
    )
  })

interface ListedPage {
  readonly listed: ReadonlyArray<Listed>
  readonly cursor: string | undefined
  /** The time of the oldest notification of any kind, in milliseconds. */
  readonly oldest: number
}

const page = Effect.fnUntraced(function* (
  { agent, call }: Connection,
  limit: number,
  cursor: string | undefined,
): Effect.fn.Return<ListedPage, PlatformFailure> {
  const wanted = { reasons, limit, ...(cursor === undefined ? {} : { cursor }) }
  const { data } = yield* call(() => agent.app.bsky.notification.listNotifications(wanted))
  return {
    // Servers that do not support `reasons` return all notifications.
    listed: data.notifications.filter(({ reason }) => reasons.includes(reason)),
    cursor: data.notifications.length === 0 ? undefined : data.cursor,
    oldest: Math.min(...data.notifications.map(millisOf)),
  }
})

const atOf = ({ indexedAt }: Listed) => boundedDate(indexedAt, new Date(0))
const millisOf = (entry: Listed) => atOf(entry).getTime()

const receivedOf = (entry: Listed): ReceivedPost | undefined => {
  const post = Records.post(entry.uri, entry.record, entry.author, entry.indexedAt)
  return post && { kind: entry.reason === "reply" ? "reply" : "mention", key: post.uri, post, at: atOf(entry) }
}

/** Cursor of a list: the server's page and the last returned entry. */
const Cursor = Schema.fromJsonString(
  Schema.Struct({
    page: Schema.optionalKey(Schema.String),
    at: Schema.Number,
    key: Schema.String,
  }),
)

/** Returns notifications and the last received message of each conversation, newest first. */
export const list = Effect.fnUntraced(function* (
  session: Session,
  connection: Connection,
  { limit, cursor }: PageRequest,
): Effect.fn.Return<Page<ReceivedPost>, PlatformFailure> {
  const from = cursor === undefined ? undefined : Option.getOrUndefined(Schema.decodeOption(Cursor)(cursor))
  const older = (entry: ReceivedPost) =>
    from === undefined || entry.at.getTime() < from.at || (entry.at.getTime() === from.at && entry.key < from.key)
  const messages = (yield* lastMessages(session, connection)).filter(older)
  const entries: Array<ReceivedPost> = []
  let at = from?.page
  for (let read = 0; read < pagesAtMost; read++) {
    const { listed, cursor: next } = yield* page(connection, Math.min(limit, pageSize), at)
    const received = listed.flatMap((entry) => receivedOf(entry) ?? [])
    const end = next === undefined ? Number.NEGATIVE_INFINITY : Math.min(...received.map((entry) => entry.at.getTime()))
    const previous = entries.at(-1)
    const merged = [...received, ...messages]
      .filter((entry) => older(entry) && entry.at.getTime() >= end)
      .filter((entry) => previous === undefined || newestFirst(previous, entry) < 0)
      .sort(newestFirst)
    entries.push(...merged.slice(0, limit - entries.length))
    const last = entries.at(-1)
    if (entries.length >= limit && last !== undefined) {
      const here = { ...(at === undefined ? {} : { page: at }), at: last.at.getTime(), key: last.key }
      return { entries, cursor: JSON.stringify(here) }
    }
    if (next === undefined) break
    at = next
  }
  return { entries, cursor: null }
})

const newestFirst = (a: ReceivedPost, b: ReceivedPost) =>
  b.at.getTime() - a.at.getTime() || (a.key < b.key ? 1 : a.key > b.key ? -1 : 0)

const lastMessages = (session: Session, connection: Connection) =>
  Effect.gen(function* () {
    if (!(yield* AccountStatus.mayDm(session))) return []
    return yield* Effect.catchTags(Messages.received(connection), {
      Unsupported: () => Effect.as(AccountStatus.cannotDm(session), []),
      PlatformRefused: () => Effect.succeed([]),
      PlatformUnreachable: () => Effect.succeed([]),
      PlatformRateLimited: () => Effect.succeed([]),
    })
  })
