/**
 * Direct messages (`chat.bsky.convo`), which are at a separate service, proxied by the account's server. The platform
 * has no URI for messages, so this module builds one from the conversation and message ids.
 */
import { ChatBskyConvoDefs } from "@atproto/api"
import { uuidMillis } from "@svc/domain/Ids"
import type { Page, Post } from "@svc/domain/connectors/Post"
import { Clock, Effect } from "effect"
import { InputRefused, type PlatformFailure, PlatformRefused } from "../Failure.ts"
import { boundedDate, boundedPost } from "../ResponseBounds.ts"
import type { ReceivedPost, NewPost, PageRequest } from "../Platform.ts"
import type { Connection } from "./Connection.ts"
import * as Options from "./Options.ts"
import type * as Records from "./Records.ts"
import * as Text from "./Text.ts"

/** Largest page of conversations or messages. */
const pageAtMost = 50
/** Pages of the log that one poll reads. */
const logPages = 5

const scheme = "chat.bsky.convo://"

export const validate = Effect.fnUntraced(function* (post: NewPost): Effect.fn.Return<void, InputRefused> {
  yield* Options.rejectAll(post.options)
  yield* Text.validate(post.text, Text.messageLimit)
  const invalid = (path: string, message: string) => Effect.fail(new InputRefused({ path, message }))
  if (post.text.trim() === "") return yield* invalid("/text", "The message is empty.")
  if (!/^@?[^\s@/]{1,300}$/.test(post.to ?? "")) {
    return yield* invalid("/to", "The recipient must be a handle or a DID.")
  }
  if (post.replyTo !== undefined && parse(post.replyTo) === undefined) {
    return yield* invalid("/reply_to", "This is not the URI of a direct message on Bluesky.")
  }
})

export const send = Effect.fnUntraced(function* (
  connection: Connection,
  name: string,
  post: NewPost,
): Effect.fn.Return<Post, PlatformFailure> {
  yield* validate(post)
  const { chat, call, did } = connection
  const to = yield* didOf(connection, post.to!.replace(/^@/, ""))
  const { data } = yield* call(() => chat.chat.bsky.convo.getConvoForMembers({ members: [to] }))
  const { convo } = data
  const parent = post.replyTo === undefined ? undefined : parse(post.replyTo)
  if (parent !== undefined && parent.convo !== convo.id) {
    return yield* new InputRefused({ message: "The message belongs to another conversation.", path: "/reply_to" })
  }
  const profiles = authorsOf(convo.members).set(did, { did, handle: name })
  if (post.again) {
    const made = yield* findSent(connection, convo.id, post)
    if (made !== undefined) return postOf(convo.id, made, profiles)
  }
  const facets = yield* Text.facets(connection, post.text)
  const message = {
    text: post.text,
    ...(facets === undefined ? {} : { facets }),
    ...(parent === undefined ? {} : { replyTo: { messageId: parent.id } }),
  }
  const sent = yield* call(() => chat.chat.bsky.convo.sendMessage({ convoId: convo.id, message }))
  return postOf(convo.id, sent.data, profiles)
})

/** Finds the message that an interrupted command sent, by sender, time and text, because the service has no idempotency keys. */
const findSent = Effect.fnUntraced(function* (
  { chat, call, did }: Connection,
  convoId: string,
  { command, text }: NewPost,
): Effect.fn.Return<ChatBskyConvoDefs.MessageView | undefined, PlatformFailure> {
  const { data } = yield* call(() => chat.chat.bsky.convo.getMessages({ convoId, limit: pageAtMost }))
  // Command ids stay monotonic when the clock is set back, so an id may contain a time in the future. The service's clock
  // may be behind.
  const since = Math.min(uuidMillis(command), yield* Clock.currentTimeMillis) - 60_000
  return data.messages
    .filter(ChatBskyConvoDefs.isMessageView)
    .find((sent) => sent.sender.did === did && sent.text === text && Date.parse(sent.sentAt) >= since)
})

const didOf = Effect.fnUntraced(function* (
  { agent, call }: Connection,
  account: string,
): Effect.fn.Return<string, PlatformFailure> {
  if (account.startsWith("did:")) return account
  const found = yield* Effect.catchTag(
    call(() => agent.com.atproto.identity.resolveHandle({ handle: account })),
    "PlatformRefused",
    ({ message }) => Effect.fail(new PlatformRefused({ message, missing: true })),
  )
  return found.data.did
})

/** Returns the last message of each conversation, newest first. */
export const list = Effect.fnUntraced(function* (
  connection: Connection,
  { limit, cursor }: PageRequest,
): Effect.fn.Return<Page<Post>, PlatformFailure> {
  const { convos, next } = yield* conversations(connection, Math.min(limit, pageAtMost), cursor)
  return { entries: convos.flatMap((convo) => lastOf(convo) ?? []), cursor: next }
})

const conversations = Effect.fnUntraced(function* (
  { chat, call }: Connection,
  limit: number,
  cursor: string | undefined,
): Effect.fn.Return<
  { readonly convos: ReadonlyArray<ChatBskyConvoDefs.ConvoView>; readonly next: string | null },
  PlatformFailure
> {
  const wanted = { limit, ...(cursor === undefined ? {} : { cursor }) }
  const { data } = yield* call(() => chat.chat.bsky.convo.listConvos(wanted))
  return { convos: data.convos, next: data.convos.length === 0 ? null : (data.cursor ?? null) }
})

const lastOf = ({ id, lastMessage, members }: ChatBskyConvoDefs.ConvoView): Post | undefined =>
  ChatBskyConvoDefs.isMessageView(lastMessage) ? postOf(id, lastMessage, authorsOf(members)) : undefined

/** Returns the last messages of the latest conversations, newest first, unless the account sent them. */
export const received = Effect.fnUntraced(function* (
  connection: Connection,
): Effect.fn.Return<ReadonlyArray<ReceivedPost>, PlatformFailure> {
  const { convos } = yield* conversations(connection, pageAtMost, undefined)
  return convos
    .flatMap((convo) => lastOf(convo) ?? [])
    .filter(({ author_id }) => author_id !== connection.did)
    .map(receivedOf)
})

/** Returns whether a URI belongs to a direct message. */
export const isMessage = (uri: string) => uri.startsWith(scheme)

/** Returns the latest page of a message's conversation, oldest first. */
export const conversation = Effect.fnUntraced(function* (
  connection: Connection,
  name: string,
  uri: string,
): Effect.fn.Return<Page<Post>, PlatformFailure> {
  const { chat, call, did } = connection
  const parsed = parse(uri)
  if (parsed === undefined) {
    return yield* new InputRefused({ message: "This is not the URI of a direct message on Bluesky.", path: "/uri" })
  }
  const convoId = parsed.convo
  const [{ data }, convo] = yield* Effect.all(
    [
      call(() => chat.chat.bsky.convo.getMessages({ convoId, limit: pageAtMost })),
      call(() => chat.chat.bsky.convo.getConvo({ convoId })),
    ],
    { concurrency: 2 },
  )
  const profiles = authorsOf([...convo.data.convo.members, ...(data.relatedProfiles ?? [])]).set(did, {
    did,
    handle: name,
  })
  const messages = data.messages.filter(ChatBskyConvoDefs.isMessageView)
  return { entries: messages.map((message) => postOf(convoId, message, profiles)).toReversed(), cursor: null }
})

export interface NewMessages {
  readonly received: ReadonlyArray<ReceivedPost>
  /** Cursor of the log for the next poll. */
  readonly mark: string | undefined
  readonly more: boolean
}

/** Returns messages from others since the mark, or only the log's current position if there is no mark. */
export const since = Effect.fnUntraced(function* (
  connection: Connection,
  mark: string | undefined,
  atMost: number,
): Effect.fn.Return<NewMessages, PlatformFailure> {
  const { chat, call, did } = connection
  const received: Array<ReceivedPost> = []
  let at = mark
  for (let page = 0; page < logPages; page++) {
    const { data } = yield* call(() => chat.chat.bsky.convo.getLog(at === undefined ? {} : { cursor: at }))
    if (mark === undefined) return { received, mark: data.cursor, more: false }
    for (const entry of data.logs) {
      if (!ChatBskyConvoDefs.isLogCreateMessage(entry)) continue
      const { message, convoId, relatedProfiles, rev } = entry
      if (!ChatBskyConvoDefs.isMessageView(message) || message.sender.did === did) continue
      const authors = yield* withAuthor(connection, message.sender.did, authorsOf(relatedProfiles ?? []))
      received.push(receivedOf(postOf(convoId, message, authors)))
      // The revision of an entry is a valid cursor.
      if (received.length >= atMost) return { received, mark: rev, more: true }
    }
    if (data.logs.length === 0 || data.cursor === undefined || data.cursor === at)
      return { received, mark: at, more: false }
    at = data.cursor
  }
  return { received, mark: at, more: true }
})

/** Adds the sender's profile, which older services do not send with the message. */
const withAuthor = Effect.fnUntraced(function* (
  { agent, call }: Connection,
  did: string,
  authors: Map<string, Records.Author>,
): Effect.fn.Return<Map<string, Records.Author>, PlatformFailure> {
  if (authors.has(did)) return authors
  const found = yield* Effect.catchTag(
    call(() => agent.app.bsky.actor.getProfile({ actor: did })),
    ["PlatformRefused", "PlatformUnreachable"],
    () => Effect.succeed(undefined),
  )
  return found === undefined ? authors : authors.set(did, found.data)
})

const receivedOf = (post: Post): ReceivedPost => ({ kind: "dm", key: post.uri, post, at: post.created_at })

const authorsOf = (members: ReadonlyArray<Records.Author>) => new Map(members.map((member) => [member.did, member]))

const postOf = (
  convo: string,
  { id, text, sender, sentAt, replyTo }: ChatBskyConvoDefs.MessageView,
  profiles: ReadonlyMap<string, Records.Author>,
): Post => {
  const author = profiles.get(sender.did)
  return boundedPost({
    uri: uriOf(convo, id),
    url: null,
    author_id: sender.did,
    author: author?.handle ?? sender.did,
    author_name: author?.displayName === undefined || author.displayName === "" ? null : author.displayName,
    text,
    reply_to: replyTo !== undefined && "id" in replyTo ? uriOf(convo, String(replyTo.id)) : null,
    created_at: boundedDate(sentAt, new Date(0)),
  })
}

const uriOf = (convo: string, id: string) => `${scheme}${encodeURIComponent(convo)}/${encodeURIComponent(id)}`

const parse = (uri: string): { readonly convo: string; readonly id: string } | undefined => {
  const match = /^chat\.bsky\.convo:\/\/([\w.~%-]{1,300})\/([\w.~%-]{1,300})$/.exec(uri)
  try {
    return match === null ? undefined : { convo: decodeURIComponent(match[1]!), id: decodeURIComponent(match[2]!) }
  } catch {
    return undefined
  }
}
