/** Reads and publishes statuses, and finds them by URI. */
import { BoundedMap } from "@svc/domain/BoundedMap"
import { uuidMillis } from "@svc/domain/Ids"
import type { Page, Post } from "@svc/domain/connectors/Post"
import { Clock, Effect } from "effect"
import { wordsOf } from "../../../html/PlainText.ts"
import { boundedDate, boundedPost } from "../ResponseBounds.ts"
import { type PlatformFailure, PlatformRefused } from "../Failure.ts"
import { bytesOf } from "../Options.ts"
import type { NewPost, PageRequest, Session } from "../Platform.ts"
import { Timing } from "../../../Timing.ts"
import * as Responses from "./Responses.ts"
import { asAccount } from "./Credentials.ts"
import type { Instances } from "./Discovery.ts"
import { nameOf } from "./Profile.ts"
import * as PostOptions from "./PostOptions.ts"

/** Largest HTML content that is converted to text. */
const htmlAtMost = 100_000

/** Number of parents that are fetched for one page. */
const parentsAtMost = 20
/** Number of checks whether an uploaded image is processed. */
const processingLooks = 30
const knownAtMost = 2_000

/** Returns the `max_id` of the header `Link: …; rel="next"` (RFC 8288), or null on the last page. */
const nextOf = (headers: Headers): string | null => {
  for (const part of (headers.get("link") ?? "").slice(0, 8192).split(/,(?=\s*<)/)) {
    const [, target] = /^\s*<([^>]*)>/.exec(part) ?? []
    if (target === undefined || !/;\s*rel="?next"?/i.test(part)) continue
    const id = URL.parse(target, "https://server.invalid")?.searchParams.get("max_id")
    if (id != null && /^[A-Za-z0-9_-]{1,64}$/.test(id)) return id
  }
  return null
}

/** Returns the unvalidated entries of a page and the cursor of the next one. */
export const pageOf = (raw: { readonly data: unknown; readonly headers: Headers }) => ({
  data: raw.data,
  cursor: nextOf(raw.headers),
})

/** Returns the text of a status, after its content warning. */
const textOf = ({ content, spoiler_text }: Responses.Status): string => {
  const text = wordsOf(content.slice(0, htmlAtMost))
  return spoiler_text == null || spoiler_text === "" ? text : `${spoiler_text}\n\n${text}`
}

/** How far a server's clock may be behind. */
const clockSkew = 60_000

/** Normalizes a text for comparison: removes the domains of mentions and collapses white space. */
const normalized = (text: string) =>
  text
    .replace(/(@[\w.-]+)@[\w.:-]*\w/g, "$1")
    .replace(/\s+/g, " ")
    .trim()

const narrow = new Set(["unlisted", "private", "direct"])

export const make = (instances: Instances) => {
  /** URIs of known posts by server and id. */
  const uris = new BoundedMap<string, string>(knownAtMost)
  const note = (service: string, { id, uri }: Pick<Responses.Status, "id" | "uri">) =>
    void uris.set(`${service} ${id}`, uri)

  const domainOf = (session: Session) =>
    Effect.map(instances.limits(session.http, session.account.service), ({ domain }) => domain)

  /** Converts a status to a post. The URI of an unknown parent is null. */
  const converted = (service: string, domain: string, status: Responses.Status): Post =>
    boundedPost({
      uri: status.uri,
      url: status.url ?? null,
      author_id: status.account.id,
      author: nameOf(status.account.acct, domain),
      author_name:
        status.account.display_name == null || status.account.display_name === "" ? null : status.account.display_name,
      text: textOf(status),
      reply_to: status.in_reply_to_id == null ? null : (uris.get(`${service} ${status.in_reply_to_id}`) ?? null),
      created_at: boundedDate(status.created_at, new Date()),
    })

  /** Converts statuses to posts. Fetches parents whose URIs are unknown. */
  const posts = Effect.fnUntraced(function* (
    session: Session,
    statuses: ReadonlyArray<Responses.Status>,
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
          Effect.flatMap(Responses.as(Responses.Status)),
          Effect.map((status) => note(service, status)),
          // The URI of a deleted or invisible parent stays unknown.
          Effect.catchTags({ PlatformRefused: () => Effect.void, PlatformUnreachable: () => Effect.void }),
        ),
      { concurrency: 4, discard: true },
    )
    return statuses.map((status) => converted(service, domain, status))
  })

  /** Returns the server's status for a URI. The server fetches posts of other servers. */
  const find = Effect.fnUntraced(function* (
    session: Session,
    uri: string,
  ): Effect.fn.Return<Responses.Status, PlatformFailure> {
    const missing = new PlatformRefused({
      message: "The post does not exist, or this account may not see it.",
      missing: true,
    })
    const { service } = session.account
    const url = URL.parse(uri)
    if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return yield* missing
    const local = url.origin === service ? /\/([A-Za-z0-9_-]{1,64})$/.exec(url.pathname)?.[1] : undefined
    if (local !== undefined) {
      const found = yield* asAccount(session, ({ api }) => api.v1.statuses.$select(local).fetch()).pipe(
        Effect.flatMap(Responses.as(Responses.Status)),
        Effect.catchTag("PlatformRefused", () => Effect.succeed(undefined)),
      )
      if (found !== undefined && (found.uri === uri || found.url === uri)) return found
    }
    const response: unknown = yield* asAccount(session, ({ api }) =>
      api.v2.search.list({ q: uri, type: "statuses", resolve: true, limit: 1 }),
    )
    const { statuses } = yield* Responses.as(Responses.Found)(response)
    return statuses?.[0] ?? (yield* missing)
  })

  /** Waits until the server has processed an image, because it rejects statuses with unprocessed ones. */
  const processed = Effect.fnUntraced(function* (
    session: Session,
    media: typeof Responses.Media.Type,
  ): Effect.fn.Return<string, PlatformFailure> {
    let { url } = media
    for (let looks = 0; url === null && looks < processingLooks; looks++) {
      yield* Effect.sleep(Timing.mediaLook)
      const response = yield* asAccount(session, ({ api }) => api.v1.media.$select(media.id).fetch())
      url = (yield* Responses.as(Responses.Media)(response)).url
    }
    return media.id
  })

  const upload = (session: Session, options: PostOptions.Options) =>
    Effect.forEach(options.media ?? [], (picture) =>
      asAccount(session, ({ api }) =>
        api.v2.media.create({
          file: new Blob([bytesOf(picture)], { type: picture.content_type }),
          ...(picture.alt == null ? {} : { description: picture.alt }),
          skipPolling: true,
        }),
      ).pipe(
        Effect.flatMap(Responses.as(Responses.Media)),
        Effect.flatMap((media) => processed(session, media)),
      ),
    )

  /**
   * Finds the status that an interrupted command published at a server without idempotency keys: a status since the
   * command with the same text and parent.
   */
  const findPosted = Effect.fnUntraced(function* (
    session: Session,
    { command }: NewPost,
    text: string,
    parent: Responses.Status | undefined,
  ): Effect.fn.Return<Responses.Status | undefined, PlatformFailure> {
    // Command ids stay monotonic when the clock is set back, so an id may contain a time in the future.
    const since = Math.min(uuidMillis(command), yield* Clock.currentTimeMillis) - clockSkew
    const response: unknown = yield* asAccount(session, ({ api }) =>
      api.v1.accounts.$select(session.account.id).statuses.list({ limit: 20, excludeReblogs: true }),
    )
    const recent = yield* Responses.listOf(Responses.Status)(response)
    return recent.find(
      (status) =>
        boundedDate(status.created_at, new Date(0)).getTime() >= since &&
        (status.in_reply_to_id ?? undefined) === parent?.id &&
        normalized(wordsOf(status.content.slice(0, htmlAtMost))) === normalized(text),
    )
  })

  /** Publishes a status. The command is the `Idempotency-Key`, so that a retry creates no second status. */
  const publish = Effect.fnUntraced(function* (
    session: Session,
    post: NewPost,
    text: string,
    options: PostOptions.Options,
    shape: { readonly visibility: PostOptions.Options["visibility"]; readonly parent: Responses.Status | undefined },
  ) {
    const { service } = session.account
    const limits = yield* instances.limits(session.http, service)
    const postOf = (status: Responses.Status) => {
      note(service, status)
      // Its parent is known, so nothing is read after the status was created: a failure of that request would look like a
      // status that was not created.
      if (shape.parent !== undefined) note(service, shape.parent)
      return converted(service, limits.domain, status)
    }
    yield* PostOptions.checkLimits(limits, text, options)
    if (post.again && !limits.idempotent) {
      const posted = yield* findPosted(session, post, text, shape.parent)
      if (posted !== undefined) return postOf(posted)
    }
    const mediaIds = yield* upload(session, options)
    const response = yield* asAccount(session, ({ api }) =>
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
    return postOf(yield* Responses.as(Responses.Status)(response))
  })

  /** Adds a mention unless there is one. The server only notifies mentioned accounts of a reply or direct message. */
  const mentioning = (text: string, name: string) =>
    new RegExp(`(^|[^\\w@])@${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w@.-]*\\w)`, "i").test(text)
      ? text
      : `@${name} ${text}`

  return {
    posts,
    find,

    post: Effect.fnUntraced(function* (session: Session, post: NewPost): Effect.fn.Return<Post, PlatformFailure> {
      const options = yield* PostOptions.parse(post)
      if (post.replyTo === undefined) {
        return yield* publish(session, post, post.text, options, { visibility: options.visibility, parent: undefined })
      }
      const parent = yield* find(session, post.replyTo)
      const mine = parent.account.id === session.account.id
      const text = mine ? post.text : mentioning(post.text, nameOf(parent.account.acct, yield* domainOf(session)))
      // The default visibility of a reply is at most that of its parent.
      const visibility =
        options.visibility ??
        (narrow.has(parent.visibility) ? (parent.visibility as NonNullable<typeof options.visibility>) : undefined)
      return yield* publish(session, post, text, options, { visibility, parent })
    }),

    sendDm: Effect.fnUntraced(function* (session: Session, post: NewPost): Effect.fn.Return<Post, PlatformFailure> {
      const options = yield* PostOptions.parse(post)
      const to = nameOf(PostOptions.recipientOf(post.to ?? "") ?? "", yield* domainOf(session))
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
      const found = yield* Responses.listOf(Responses.Status)(page.data)
      const statuses = found.filter(({ visibility }) => visibility !== "direct")
      return { entries: yield* posts(session, statuses), cursor: page.cursor }
    }),

    /** Returns the newest message of each direct conversation. */
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
      const found = yield* Responses.listOf(Responses.Conversation)(page.data)
      const statuses = found.flatMap(({ last_status: last }) => (last == null ? [] : [last]))
      return { entries: yield* posts(session, statuses), cursor: page.cursor }
    }),

    thread: Effect.fnUntraced(function* (session: Session, uri: string): Effect.fn.Return<Page<Post>, PlatformFailure> {
      const status = yield* find(session, uri)
      const response = yield* asAccount(session, ({ api }) => api.v1.statuses.$select(status.id).context.fetch())
      const { ancestors, descendants } = yield* Responses.as(Responses.Context)(response)
      return { entries: yield* posts(session, [...ancestors, status, ...descendants]), cursor: null }
    }),
  }
}

export type Statuses = ReturnType<typeof make>
