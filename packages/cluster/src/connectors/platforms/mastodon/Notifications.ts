/**
 * Mentions of the account. A mention that is direct is a direct message, one whose status answers us a reply. A poll goes
 * on behind the id of the last notification that was seen.
 */
import type { Page } from "@svc/domain/connectors/Post"
import { Effect } from "effect"
import { boundedDate } from "../ResponseBounds.ts"
import type { PlatformFailure } from "../Failure.ts"
import type { ReceivedPost, PageRequest, Poll, Session } from "../Platform.ts"
import * as Answers from "./Responses.ts"
import { asAccount } from "./Credentials.ts"
import { pageOf, type Statuses } from "./Statuses.ts"

/** One page of a poll; more wait for the next. */
const perPoll = 40

const kindOf = (status: Answers.Status, self: string): ReceivedPost["kind"] =>
  status.visibility === "direct" ? "dm" : status.in_reply_to_account_id === self ? "reply" : "mention"

/** So many pages are gone back through for the oldest; what is older still at such a server is not told. */
const pagesBack = 20

/** Before the first notification. */
const beginning = "0"

export const make = (statuses: Statuses) => {
  const heard = Effect.fnUntraced(function* (
    session: Session,
    notifications: ReadonlyArray<Answers.Notification>,
  ): Effect.fn.Return<ReadonlyArray<ReceivedPost>, PlatformFailure> {
    const told = notifications.flatMap(({ type, status, created_at }) =>
      type === "mention" && status != null ? [{ status, created_at }] : [],
    )
    const posts = yield* statuses.posts(
      session,
      told.map(({ status }) => status),
    )
    return told.map(({ status, created_at }, index) => ({
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
        return Effect.map(Answers.listOf(Answers.Notification)(data), (found) => ({ found, cursor }))
      },
    )

  /**
   * The oldest page of what is newer than the mark, newest first. The server was asked for it, but some (snac, and
   * translations of Misskey's API) answer the newest one, so behind a full page it is looked whether there is an older.
   */
  const oldestPage = Effect.fnUntraced(function* (
    session: Session,
    mark: string,
    first: ReadonlyArray<Answers.Notification>,
  ): Effect.fn.Return<{ readonly page: ReadonlyArray<Answers.Notification>; readonly more: boolean }, PlatformFailure> {
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
      return { entries: yield* heard(session, page.found), cursor: page.cursor }
    }),

    poll: Effect.fnUntraced(function* (
      session: Session,
      mark: string | undefined,
    ): Effect.fn.Return<Poll, PlatformFailure> {
      if (mark === undefined) {
        const { found } = yield* list(session, { limit: 1 })
        return { received: [], mark: found[0]?.id ?? beginning, more: false }
      }
      const { found } = yield* list(session, { limit: perPoll, minId: mark })
      const { page, more } = yield* oldestPage(session, mark, found)
      const oldestFirst = page.toReversed()
      return { received: yield* heard(session, oldestFirst), mark: oldestFirst.at(-1)?.id ?? mark, more }
    }),
  }
}
