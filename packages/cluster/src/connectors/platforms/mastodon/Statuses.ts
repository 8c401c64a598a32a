/** Statuses: read as posts, found by their uri, written, and the conversation around one. */
import type { Page, Post } from "@svc/domain/connectors/Post"
import { Clock, Effect } from "effect"
import { wordsOf } from "../../../html/PlainText.ts"
import { boundedDate, boundedPost } from "../ResponseBounds.ts"
import { type PlatformFailure, PlatformRefused } from "../Failure.ts"
import { bytesOf } from "../Pictures.ts"
import type { NewPost, PageRequest, Session } from "../Platform.ts"
import { Timing } from "../../../Timing.ts"
import * as Answers from "./Responses.ts"
import { asAccount } from "./Credentials.ts"
import type { Instances } from "./Discovery.ts"
import { nameOf } from "./Profile.ts"
import * as Writing from "./PostOptions.ts"

/** What is made a text of, at most. */
const htmlAtMost = 100_000

/** So many look-ups of posts that are answered go out for one page. */
const parentsAtMost = 20
/** How often it is asked whether a picture is finished. */
const processingLooks = 30
const knownAtMost = 2_000

/** `max_id` of a page's `Link: …; rel="next"` (RFC 8288), which is all that is taken of it. */
const nextOf = (headers: Headers): string | null => {
  for (const part of (headers.get("link") ?? "").slice(0, 8192).split(/,(?=\s*<)/)) {
    const [, target] = /^\s*<([^>]*)>/.exec(part) ?? []
    if (target === undefined || !/;\s*rel="?next"?/i.test(part)) continue
    const id = URL.parse(target, "https://server.invalid")?.searchParams.get("max_id")
    if (id != null && /^[A-Za-z0-9_-]{1,64}$/.test(id)) return id
  }
  return null
}

/** A page of the server's as it comes: entries and where the next begins. */
export const pageOf = (raw: { readonly data: unknown; readonly headers: Headers }) => ({
  data: raw.data,
  cursor: nextOf(raw.headers),
})

/** The text of a status: its warning first, as its readers see it. */
const textOf = ({ content, spoiler_text }: Answers.Status): string => {
  const text = wordsOf(content.slice(0, htmlAtMost))
  return spoiler_text == null || spoiler_text === "" ? text : `${spoiler_text}\n\n${text}`
}

/** How far a server's clock may be behind ours. */
const clockSkew = 60_000

/** When a command was made, in milliseconds since 1970: a uuid of version 7 begins with it (RFC 9562 section 5.7). */
const timeOf = (command: string) => Number.parseInt(command.replaceAll("-", "").slice(0, 12), 16)

/** A text but for what a server makes of mentions and spaces. */
const words = (text: string) =>
  text
    .replace(/(@[\w.-]+)@[\w.:-]*\w/g, "$1")
    .replace(/\s+/g, " ")
    .trim()

const narrow = new Set(["unlisted", "private", "direct"])

export const make = (instances: Instances) => {
  /** What uris and ids of posts we have seen, by server; of the oldest the first goes. */
  const uris = new Map<string, string>()
  const note = (service: string, { id, uri }: Pick<Answers.Status, "id" | "uri">) => {
    const key = `${service} ${id}`
    uris.delete(key)
    if (uris.size >= knownAtMost) uris.delete(uris.keys().next().value!)
    uris.set(key, uri)
  }

  const domainOf = (session: Session) =>
    Effect.map(instances.limits(session.http, session.account.service), ({ domain }) => domain)

  /** Statuses as posts; what they answer is looked up where it is not known. */
  const posts = Effect.fnUntraced(function* (
    session: Session,
    statuses: ReadonlyArray<Answers.Status>,
  ): Effect.fn.Return<ReadonlyArray<Post>, PlatformFailure> {
    const { service } = session.account
    const domain = yield* domainOf(session)
    for (const status of statuses) note(service, status)
    const wanted = new Set(
      statuses.flatMap(({ in_reply_to_id: id }) => (id == null || uris.has(`${service} ${id}`) ? [] : [id])),
    )
    yield* Effect.forEach(
      [...wanted].slice(0, parentsAtMost),
      (id) =>
        asAccount(session, ({ api }) => api.v1.statuses.$select(id).fetch()).pipe(
          Effect.flatMap(Answers.as(Answers.Status)),
          Effect.map((status) => note(service, status)),
          // One that is gone, or not ours to see, has no uri for us.
          Effect.catchTags({ PlatformRefused: () => Effect.void, PlatformUnreachable: () => Effect.void }),
        ),
      { concurrency: 4, discard: true },
    )
    const now = new Date()
    return statuses.map((status) =>
      boundedPost({
        uri: status.uri,
        url: status.url ?? null,
        author_id: status.account.id,
        author: nameOf(status.account.acct, domain),
        author_name:
          status.account.display_name == null || status.account.display_name === ""
            ? null
            : status.account.display_name,
        text: textOf(status),
        reply_to: status.in_reply_to_id == null ? null : (uris.get(`${service} ${status.in_reply_to_id}`) ?? null),
        created_at: boundedDate(status.created_at, now),
      }),
    )
  })

  const one = (session: Session, status: Answers.Status) => Effect.map(posts(session, [status]), (made) => made[0]!)

  /** The server's own status of that uri; one from elsewhere is fetched by the server first. */
  const find = Effect.fnUntraced(function* (
    session: Session,
    uri: string,
  ): Effect.fn.Return<Answers.Status, PlatformFailure> {
    const missing = new PlatformRefused({ message: "There is no such post, or it is not ours to see.", missing: true })
    const { service } = session.account
    const url = URL.parse(uri)
    if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return yield* missing
    const local = url.origin === service ? /\/([A-Za-z0-9_-]{1,64})$/.exec(url.pathname)?.[1] : undefined
    if (local !== undefined) {
      const found = yield* asAccount(session, ({ api }) => api.v1.statuses.$select(local).fetch()).pipe(
        Effect.flatMap(Answers.as(Answers.Status)),
        Effect.catchTag("PlatformRefused", () => Effect.succeed(undefined)),
      )
      if (found !== undefined && (found.uri === uri || found.url === uri)) return found
    }
    const answer: unknown = yield* asAccount(session, ({ api }) =>
      api.v2.search.list({ q: uri, type: "statuses", resolve: true, limit: 1 }),
    )
    const { statuses } = yield* Answers.as(Answers.Found)(answer)
    return statuses?.[0] ?? (yield* missing)
  })

  /**
   * A server may take a while to make of a picture what others are sent; a status with one that it has not finished is
   * refused. All of it is within the time of the call.
   */
  const processed = Effect.fnUntraced(function* (
    session: Session,
    media: typeof Answers.Media.Type,
  ): Effect.fn.Return<string, PlatformFailure> {
    let { url } = media
    for (let looks = 0; url === null && looks < processingLooks; looks++) {
      yield* Effect.sleep(Timing.mediaLook)
      const answer = yield* asAccount(session, ({ api }) => api.v1.media.$select(media.id).fetch())
      url = (yield* Answers.as(Answers.Media)(answer)).url
    }
    return media.id
  })

  const upload = (session: Session, options: Writing.Options) =>
    Effect.forEach(options.media ?? [], (picture) =>
      asAccount(session, ({ api }) =>
        api.v2.media.create({
          file: new Blob([bytesOf(picture)], { type: picture.content_type }),
          ...(picture.alt == null ? {} : { description: picture.alt }),
          skipPolling: true,
        }),
      ).pipe(
        Effect.flatMap(Answers.as(Answers.Media)),
        Effect.flatMap((media) => processed(session, media)),
      ),
    )

  /**
   * What the command may have made before, at a server that does not know it again: a status since then of the same words
   * that answers the same.
   */
  const already = Effect.fnUntraced(function* (
    session: Session,
    { command }: NewPost,
    text: string,
    parent: Answers.Status | undefined,
  ): Effect.fn.Return<Answers.Status | undefined, PlatformFailure> {
    // Ids never go back, and clocks do: one may say a time that is to come.
    const since = Math.min(timeOf(command), yield* Clock.currentTimeMillis) - clockSkew
    const answer: unknown = yield* asAccount(session, ({ api }) =>
      api.v1.accounts.$select(session.account.id).statuses.list({ limit: 20, excludeReblogs: true }),
    )
    const recent = yield* Answers.listOf(Answers.Status)(answer)
    return recent.find(
      (status) =>
        boundedDate(status.created_at, new Date(0)).getTime() >= since &&
        (status.in_reply_to_id ?? undefined) === parent?.id &&
        words(wordsOf(status.content.slice(0, htmlAtMost))) === words(text),
    )
  })

  /** Publishes a text as it is. The command is the server's `Idempotency-Key`, so that a repeat makes no second one. */
  const publish = Effect.fnUntraced(function* (
    session: Session,
    post: NewPost,
    text: string,
    options: Writing.Options,
    shape: { readonly visibility: Writing.Options["visibility"]; readonly parent: Answers.Status | undefined },
  ) {
    const limits = yield* instances.limits(session.http, session.account.service)
    yield* Writing.within(limits, text, options)
    if (post.again && !limits.idempotent) {
      const made = yield* already(session, post, text, shape.parent)
      if (made !== undefined) return yield* one(session, made)
    }
    const mediaIds = yield* upload(session, options)
    const answer = yield* asAccount(session, ({ api }) =>
      api.v1.statuses.create(
        {
          status: text,
          ...(mediaIds.length === 0 ? {} : { mediaIds }),
          ...(shape.parent === undefined ? {} : { inReplyToId: shape.parent.id }),
          ...(shape.visibility === undefined ? {} : { visibility: shape.visibility }),
          ...(options.spoiler_text === undefined ? {} : { spoilerText: options.spoiler_text }),
          ...(options.sensitive === undefined ? {} : { sensitive: options.sensitive }),
          ...(options.language === undefined ? {} : { language: options.language }),
        },
        { requestInit: { headers: { "Idempotency-Key": post.command } } },
      ),
    )
    return yield* one(session, yield* Answers.as(Answers.Status)(answer))
  })

  /** Without a mention the server tells nobody of an answer or a direct message. */
  const mentioning = (text: string, name: string) =>
    new RegExp(`(^|[^\\w@])@${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w@.-]*\\w)`, "i").test(text)
      ? text
      : `@${name} ${text}`

  return {
    posts,
    find,

    post: Effect.fnUntraced(function* (session: Session, post: NewPost): Effect.fn.Return<Post, PlatformFailure> {
      const options = yield* Writing.judge(post)
      if (post.replyTo === undefined) {
        return yield* publish(session, post, post.text, options, { visibility: options.visibility, parent: undefined })
      }
      const parent = yield* find(session, post.replyTo)
      const mine = parent.account.id === session.account.id
      const text = mine ? post.text : mentioning(post.text, nameOf(parent.account.acct, yield* domainOf(session)))
      // An answer is seen by no more people than what it answers, unless that is asked for.
      const visibility =
        options.visibility ??
        (narrow.has(parent.visibility) ? (parent.visibility as NonNullable<typeof options.visibility>) : undefined)
      return yield* publish(session, post, text, options, { visibility, parent })
    }),

    sendDm: Effect.fnUntraced(function* (session: Session, post: NewPost): Effect.fn.Return<Post, PlatformFailure> {
      const options = yield* Writing.judge(post)
      const to = nameOf(Writing.recipientOf(post.to ?? "") ?? "", yield* domainOf(session))
      const parent = post.replyTo === undefined ? undefined : yield* find(session, post.replyTo)
      return yield* publish(session, post, mentioning(post.text, to), options, { visibility: "direct", parent })
    }),

    own: Effect.fnUntraced(function* (
      session: Session,
      { limit, cursor }: PageRequest,
    ): Effect.fn.Return<Page<Post>, PlatformFailure> {
      const raw = yield* asAccount(session, ({ api }) =>
        api.v1.accounts.$select(session.account.id).statuses.list.$raw({
          limit: Math.min(limit, 40),
          excludeReblogs: true,
          ...(cursor === undefined ? {} : { maxId: cursor }),
        }),
      )
      const page = pageOf(raw)
      const found = yield* Answers.listOf(Answers.Status)(page.data)
      const statuses = found.filter(({ visibility }) => visibility !== "direct")
      return { entries: yield* posts(session, statuses), cursor: page.cursor }
    }),

    /** The newest message of each direct conversation; `thread` has the others. */
    dms: Effect.fnUntraced(function* (
      session: Session,
      { limit, cursor }: PageRequest,
    ): Effect.fn.Return<Page<Post>, PlatformFailure> {
      const raw = yield* asAccount(session, ({ api }) =>
        api.v1.conversations.list.$raw({
          limit: Math.min(limit, 40),
          ...(cursor === undefined ? {} : { maxId: cursor }),
        }),
      )
      const page = pageOf(raw)
      const found = yield* Answers.listOf(Answers.Conversation)(page.data)
      const statuses = found.flatMap(({ last_status: last }) => (last == null ? [] : [last]))
      return { entries: yield* posts(session, statuses), cursor: page.cursor }
    }),

    thread: Effect.fnUntraced(function* (session: Session, uri: string): Effect.fn.Return<Page<Post>, PlatformFailure> {
      const status = yield* find(session, uri)
      const answer = yield* asAccount(session, ({ api }) => api.v1.statuses.$select(status.id).context.fetch())
      const { ancestors, descendants } = yield* Answers.as(Answers.Context)(answer)
      return { entries: yield* posts(session, [...ancestors, status, ...descendants]), cursor: null }
    }),
  }
}

export type Statuses = ReturnType<typeof make>
