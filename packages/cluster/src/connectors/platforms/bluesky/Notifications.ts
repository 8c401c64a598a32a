/**
 * What is said to the account: mentions and replies from its notifications, and direct messages. A poll tells each once,
 * oldest first: it reads page by page until it meets what it has told before, and remembers that in its mark.
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
import * as Standing from "./AccountStatus.ts"

type Listed = AppBskyNotificationListNotifications.Notification

const reasons = ["mention", "reply"]

const pageSize = 50
/** How far back a poll goes, in pages: what fills more between two polls is no conversation. */
const pagesAtMost = 40
/** How many of what was told is remembered: more than a page, since posts before them may be deleted. */
const rememberedAtMost = 200

/** What each half of a poll may tell. */
const halfAtMost = pollAtMost / 2

const Mark = Schema.fromJsonString(
  Schema.Struct({
    /** Nothing is told that is older (milliseconds). */
    floor: Schema.Number,
    /** What was told, the latest first. */
    seen: Schema.Array(Schema.String),
    /** Where the log of direct messages goes on. */
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
  const posts = mark === undefined ? yield* begin(connection) : yield* unseen(connection, mark)
  const messages = yield* told(session, connection, mark?.dm)
  const rest = connection.restUntil()
  const next: Mark = {
    floor: posts.floor,
    seen: posts.seen,
    ...(messages.mark === undefined ? {} : { dm: messages.mark }),
  }
  return {
    received: [...posts.heard, ...messages.heard].sort((one, other) => one.at.getTime() - other.at.getTime()),
    mark: JSON.stringify(next),
    more: posts.more || messages.more,
    ...(rest === undefined ? {} : { notBefore: rest }),
  }
})

interface Found {
  readonly heard: ReadonlyArray<ReceivedPost>
  readonly floor: number
  readonly seen: ReadonlyArray<string>
  readonly more: boolean
}

/** What is there already is known; older than that nothing will be told, though what is there may be deleted. */
const begin = (connection: Connection) =>
  Effect.map(page(connection, pageSize, undefined), ({ listed, cursor }): Found => ({
    heard: [],
    floor: cursor === undefined ? 0 : Math.min(...listed.map(millisOf)),
    seen: listed.map(({ uri }) => short(uri)),
    more: false,
  }))

const unseen = Effect.fnUntraced(function* (
  connection: Connection,
  { floor, seen }: Mark,
): Effect.fn.Return<Found, PlatformFailure> {
  const known = new Set(seen)
  let oldest: ReadonlyArray<Listed> = []
  let found = 0
  let cursor: string | undefined
  for (let read = 0; read < pagesAtMost; read++) {
    const next = yield* page(connection, pageSize, cursor)
    const fresh = next.listed.filter((one) => !known.has(short(one.uri)) && millisOf(one) >= floor)
    found += fresh.length
    // The oldest are told first; the newer ones are found again by the poll that follows at once.
    oldest = [...oldest, ...fresh].slice(-halfAtMost)
    if (fresh.length < next.listed.length || next.cursor === undefined) break
    cursor = next.cursor
  }
  const telling = oldest.toReversed()
  return {
    heard: telling.flatMap((one) => hearing(one) ?? []),
    floor,
    seen: [...oldest.map(({ uri }) => short(uri)), ...seen].slice(0, rememberedAtMost),
    more: found > telling.length,
  }
})

/** Direct messages, where the account may have them. That their service is away keeps no mention back. */
const told = (session: Session, connection: Connection, mark: string | undefined) =>
  Effect.gen(function* () {
    const nothing: Messages.Told = { heard: [], mark, more: false }
    if (!(yield* Standing.mayDm(session))) return nothing
    return yield* Messages.since(connection, mark, halfAtMost).pipe(
      Effect.catchTags({
        Unsupported: () => Effect.as(Standing.cannotDm(session), nothing),
        PlatformRefused: () => Effect.succeed(nothing),
        PlatformRateLimited: () => Effect.succeed(nothing),
        PlatformUnreachable: () => Effect.succeed(nothing),
      }),
    )
  })

const page = Effect.fnUntraced(function* (
  { agent, call }: Connection,
  limit: number,
  cursor: string | undefined,
): Effect.fn.Return<{ readonly listed: ReadonlyArray<Listed>; readonly cursor: string | undefined }, PlatformFailure> {
  const wanted = { reasons, limit, ...(cursor === undefined ? {} : { cursor }) }
  const { data } = yield* call(() => agent.app.bsky.notification.listNotifications(wanted))
  return {
    // A server that does not know `reasons` gives all of them.
    listed: data.notifications.filter(({ reason }) => reasons.includes(reason)),
    cursor: data.notifications.length === 0 ? undefined : data.cursor,
  }
})

const atOf = ({ indexedAt }: Listed) => boundedDate(indexedAt, new Date(0))
const millisOf = (one: Listed) => atOf(one).getTime()

const hearing = (one: Listed): ReceivedPost | undefined => {
  const post = Records.post(one.uri, one.record, one.author, one.indexedAt)
  return post && { kind: one.reason === "reply" ? "reply" : "mention", key: post.uri, post, at: atOf(one) }
}

/** Where a list goes on: a page of the server's, and what of it was given out last. */
const Cursor = Schema.fromJsonString(
  Schema.Struct({
    page: Schema.optionalKey(Schema.String),
    at: Schema.Number,
    key: Schema.String,
  }),
)

/** Notifications and, woven in by their time, what others said last in each conversation; newest first. */
export const list = Effect.fnUntraced(function* (
  session: Session,
  connection: Connection,
  { limit, cursor }: PageRequest,
): Effect.fn.Return<Page<ReceivedPost>, PlatformFailure> {
  const from = cursor === undefined ? undefined : Option.getOrUndefined(Schema.decodeOption(Cursor)(cursor))
  const older = (one: ReceivedPost) =>
    from === undefined || one.at.getTime() < from.at || (one.at.getTime() === from.at && one.key < from.key)
  const messages = (yield* lastMessages(session, connection)).filter(older)
  const entries: Array<ReceivedPost> = []
  let at = from?.page
  for (let read = 0; read < pagesAtMost; read++) {
    const { listed, cursor: next } = yield* page(connection, Math.min(limit, pageSize), at)
    const heard = listed.flatMap((one) => hearing(one) ?? [])
    const end = next === undefined ? Number.NEGATIVE_INFINITY : Math.min(...heard.map((one) => one.at.getTime()))
    const begun = entries.at(-1)
    const woven = [...heard, ...messages]
      .filter((one) => older(one) && one.at.getTime() >= end)
      .filter((one) => begun === undefined || newestFirst(begun, one) < 0)
      .sort(newestFirst)
    entries.push(...woven.slice(0, limit - entries.length))
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

const newestFirst = (one: ReceivedPost, other: ReceivedPost) =>
  other.at.getTime() - one.at.getTime() || (one.key < other.key ? 1 : one.key > other.key ? -1 : 0)

const lastMessages = (session: Session, connection: Connection) =>
  Effect.gen(function* () {
    if (!(yield* Standing.mayDm(session))) return []
    return yield* Effect.catchTags(Messages.heard(connection), {
      Unsupported: () => Effect.as(Standing.cannotDm(session), []),
      PlatformRefused: () => Effect.succeed([]),
      PlatformUnreachable: () => Effect.succeed([]),
      PlatformRateLimited: () => Effect.succeed([]),
    })
  })
