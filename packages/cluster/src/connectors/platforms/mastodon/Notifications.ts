/**
 * Mentions, replies and direct messages, which are all mentions at Mastodon. The mark of a poll is the id of the latest
 * notification that was reported.
 */
import type { Page } from "@svc/domain/connectors/Post"
import { Effect } from "effect"
import { boundedDate } from "../ResponseBounds.ts"
import type { PlatformFailure } from "../Failure.ts"
import type { ReceivedPost, PageRequest, Poll, Session } from "../Platform.ts"
import * as Responses from "./Responses.ts"
import { asAccount } from "./Credentials.ts"
import { pageOf, type Statuses } from "./Statuses.ts"

/** Largest number of notifications that one poll reports. */
const perPoll = 40

const kindOf = (status: Responses.Status, self: string): ReceivedPost["kind"] =>
  status.visibility === "direct" ? "dm" : status.in_reply_to_account_id === self ? "reply" : "mention"

/** Number of pages that a poll goes back to find the oldest one. Notifications before those are not reported. */
const pagesBack = 20

/** The mark before the first notification. */
const noNotification = "0"

export const make = (statuses: Statuses) => {
  const receivedPosts = Effect.fnUntraced(function* (
    session: Session,
    notifications: ReadonlyArray<Responses.Notification>,
  ): Effect.fn.Return<ReadonlyArray<ReceivedPost>, PlatformFailure> {
    const mentions = notifications.flatMap(({ type, status, created_at }) =>
      type === "mention" && status != null ? [{ status, created_at }] : [],
    )
    const posts = yield* statuses.posts(
      session,
      mentions.map(({ status }) => status),
    )
    return mentions.map(({ status, created_at }, index) => ({
      kind: kindOf(status, session.account.id),
      key: status.uri,
      post: posts[index]!,
      at: boundedDate(created_at, posts[index]!.created_at),
    }))
  })

  const list = (
    session: Session,
    wanted: { readonly limit: number; readonly maxId?: string; readonly minId?: string },
  ) =>
    Effect.flatMap(
      asAccount(session, ({ api }) => api.v1.notifications.list.$raw({ types: ["mention"], ...wanted })),
      (raw) => {
        const { data, cursor } = pageOf(raw)
        return Effect.map(Responses.listOf(Responses.Notification)(data), (found) => ({ found, cursor }))
      },
    )

  /**
   * Returns the oldest page of notifications since the mark, newest first. Some servers (snac, and adapters for Misskey's
   * API) return the newest page instead, so this function looks for older pages behind a full one.
   */
  const oldestPage = Effect.fnUntraced(function* (
    session: Session,
    mark: string,
    first: ReadonlyArray<Responses.Notification>,
  ): Effect.fn.Return<
    { readonly page: ReadonlyArray<Responses.Notification>; readonly more: boolean },
    PlatformFailure
  > {
    let page = first
    const seen = new Set(first.map(({ id }) => id))
    const more = first.length >= perPoll
    for (let n = 0; page.length >= perPoll && n < pagesBack; n++) {
      const { found } = yield* list(session, { limit: perPoll, minId: mark, maxId: page.at(-1)!.id })
      const older = found.filter(({ id }) => id !== mark && !seen.has(id))
      if (older.length === 0) break
      for (const { id } of older) seen.add(id)
      page = older
    }
    return { page, more }
  })

  return {
    page: Effect.fnUntraced(function* (
      session: Session,
      { limit, cursor }: PageRequest,
    ): Effect.fn.Return<Page<ReceivedPost>, PlatformFailure> {
      const page = yield* list(session, {
        limit: Math.min(limit, 40),
        ...(cursor === undefined ? {} : { maxId: cursor }),
      })
      return { entries: yield* receivedPosts(session, page.found), cursor: page.cursor }
    }),

    poll: Effect.fnUntraced(function* (
      session: Session,
      mark: string | undefined,
    ): Effect.fn.Return<Poll, PlatformFailure> {
      if (mark === undefined) {
        const { found } = yield* list(session, { limit: 1 })
        return { received: [], mark: found[0]?.id ?? noNotification, more: false }
      }
      const { found } = yield* list(session, { limit: perPoll, minId: mark })
      const { page, more } = yield* oldestPage(session, mark, found)
      const oldestFirst = page.toReversed()
      return { received: yield* receivedPosts(session, oldestFirst), mark: oldestFirst.at(-1)?.id ?? mark, more }
    }),
  }
}
