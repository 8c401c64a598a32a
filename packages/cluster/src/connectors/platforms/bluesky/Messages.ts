/**
 * Direct messages (`chat.bsky.convo`), which a service of its own carries, behind the account's server. A message has no
 * address there, so it gets one: its conversation and its id.
 */
import { ChatBskyConvoDefs } from "@atproto/api"
import type { Page, Post } from "@svc/domain/connectors/Post"
import { Effect } from "effect"
import { InputRefused, type PlatformFailure, PlatformRefused } from "../Failure.ts"
import { boundedDate, boundedPost } from "../ResponseBounds.ts"
import type { ReceivedPost, NewPost, PageRequest } from "../Platform.ts"
import type { Connection } from "./Connection.ts"
import * as Options from "./Options.ts"
import * as RecordKey from "./RecordKey.ts"
import type * as Records from "./Records.ts"
import * as Text from "./Text.ts"

/** Conversations, or messages of one, asked for at once. */
const pageAtMost = 50
/** Pages of the log that one poll reads: the service gives out what happened in turn. */
const logPages = 5

const scheme = "chat.bsky.convo://"

export const judge = Effect.fnUntraced(function* (post: NewPost): Effect.fn.Return<void, InputRefused> {
  yield* Options.judgeNone(post.options)
  yield* Text.judge(post.text, Text.ofMessages)
  const refuse = (path: string, message: string) => Effect.fail(new InputRefused({ path, message }))
  if (post.text.trim() === "") return yield* refuse("/text", "There is nothing to send.")
  if (!/^@?[^\s@/]{1,300}$/.test(post.to ?? "")) return yield* refuse("/to", "A handle or a DID is expected.")
  if (post.replyTo !== undefined && parse(post.replyTo) === undefined) {
    return yield* refuse("/reply_to", "This is not the uri of a direct message on Bluesky.")
  }
})

export const send = Effect.fnUntraced(function* (
  connection: Connection,
  name: string,
  given: NewPost,
): Effect.fn.Return<Post, PlatformFailure> {
  yield* judge(given)
  const { chat, call, did } = connection
  const to = yield* didOf(connection, given.to!.replace(/^@/, ""))
  const { data } = yield* call(() => chat.chat.bsky.convo.getConvoForMembers({ members: [to] }))
  const { convo } = data
  const answered = given.replyTo === undefined ? undefined : parse(given.replyTo)
  if (answered !== undefined && answered.convo !== convo.id) {
    return yield* new InputRefused({ message: "That message is of another conversation.", path: "/reply_to" })
  }
  const profiles = authorsOf(convo.members).set(did, { did, handle: name })
  if (given.again) {
    const made = yield* findSent(connection, convo.id, given)
    if (made !== undefined) return shown(convo.id, made, profiles)
  }
  const facets = yield* Text.facets(connection, given.text)
  const message = {
    text: given.text,
    ...(facets === undefined ? {} : { facets }),
    ...(answered === undefined ? {} : { replyTo: { messageId: answered.id } }),
  }
  const sent = yield* call(() => chat.chat.bsky.convo.sendMessage({ convoId: convo.id, message }))
  return shown(convo.id, sent.data, profiles)
})

/** The service takes no key of ours: what a command that died may have sent is looked for by who, when and what. */
const findSent = Effect.fnUntraced(function* (
  { chat, call, did }: Connection,
  convoId: string,
  { command, text }: NewPost,
): Effect.fn.Return<ChatBskyConvoDefs.MessageView | undefined, PlatformFailure> {
  const { data } = yield* call(() => chat.chat.bsky.convo.getMessages({ convoId, limit: pageAtMost }))
  // The service's clock may be behind ours.
  const since = RecordKey.millisOf(command) - 60_000
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

/** The last message of each conversation, newest first; {@link conversation} has the rest. */
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
  ChatBskyConvoDefs.isMessageView(lastMessage) ? shown(id, lastMessage, authorsOf(members)) : undefined

/** What others said last in the latest conversations, newest first. */
export const heard = Effect.fnUntraced(function* (
  connection: Connection,
): Effect.fn.Return<ReadonlyArray<ReceivedPost>, PlatformFailure> {
  const { convos } = yield* conversations(connection, pageAtMost, undefined)
  return convos
    .flatMap((convo) => lastOf(convo) ?? [])
    .filter(({ author_id }) => author_id !== connection.did)
    .map(hearing)
})

/** Whether a uri is that of a direct message. */
export const isMessage = (uri: string) => uri.startsWith(scheme)

/** The conversation that a message is of, oldest first as far as a page goes. */
export const conversation = Effect.fnUntraced(function* (
  connection: Connection,
  name: string,
  uri: string,
): Effect.fn.Return<Page<Post>, PlatformFailure> {
  const { chat, call, did } = connection
  const parsed = parse(uri)
  if (parsed === undefined) {
    return yield* new InputRefused({ message: "This is not the uri of a direct message on Bluesky.", path: "/uri" })
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
  return { entries: messages.map((message) => shown(convoId, message, profiles)).toReversed(), cursor: null }
})

export interface Told {
  readonly heard: ReadonlyArray<ReceivedPost>
  /** Where the log goes on. */
  readonly mark: string | undefined
  readonly more: boolean
}

/** What others wrote since the mark; without one, only where the log stands now. */
export const since = Effect.fnUntraced(function* (
  connection: Connection,
  mark: string | undefined,
  atMost: number,
): Effect.fn.Return<Told, PlatformFailure> {
  const { chat, call, did } = connection
  const heard: Array<ReceivedPost> = []
  let at = mark
  for (let page = 0; page < logPages; page++) {
    const { data } = yield* call(() => chat.chat.bsky.convo.getLog(at === undefined ? {} : { cursor: at }))
    if (mark === undefined) return { heard, mark: data.cursor, more: false }
    for (const entry of data.logs) {
      if (!ChatBskyConvoDefs.isLogCreateMessage(entry)) continue
      const { message, convoId, relatedProfiles, rev } = entry
      if (!ChatBskyConvoDefs.isMessageView(message) || message.sender.did === did) continue
      const authors = yield* known(connection, message.sender.did, authorsOf(relatedProfiles ?? []))
      heard.push(hearing(shown(convoId, message, authors)))
      // The log's cursors are its entries' revisions.
      if (heard.length >= atMost) return { heard, mark: rev, more: true }
    }
    if (data.logs.length === 0 || data.cursor === undefined || data.cursor === at)
      return { heard, mark: at, more: false }
    at = data.cursor
  }
  return { heard, mark: at, more: true }
})

/** An older service does not say with a message who wrote it. */
const known = Effect.fnUntraced(function* (
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

const hearing = (post: Post): ReceivedPost => ({ kind: "dm", key: post.uri, post, at: post.created_at })

const authorsOf = (members: ReadonlyArray<Records.Author>) => new Map(members.map((member) => [member.did, member]))

const shown = (
  convo: string,
  { id, text, sender, sentAt, replyTo }: ChatBskyConvoDefs.MessageView,
  profiles: ReadonlyMap<string, Records.Author>,
): Post => {
  const author = profiles.get(sender.did)
  return boundedPost({
    uri: addressOf(convo, id),
    url: null,
    author_id: sender.did,
    author: author?.handle ?? sender.did,
    author_name: author?.displayName === undefined || author.displayName === "" ? null : author.displayName,
    text,
    reply_to: replyTo !== undefined && "id" in replyTo ? addressOf(convo, String(replyTo.id)) : null,
    created_at: boundedDate(sentAt, new Date(0)),
  })
}

const addressOf = (convo: string, id: string) => `${scheme}${encodeURIComponent(convo)}/${encodeURIComponent(id)}`

const parse = (uri: string): { readonly convo: string; readonly id: string } | undefined => {
  const match = /^chat\.bsky\.convo:\/\/([\w.~%-]{1,300})\/([\w.~%-]{1,300})$/.exec(uri)
  try {
    return match === null ? undefined : { convo: decodeURIComponent(match[1]!), id: decodeURIComponent(match[2]!) }
  } catch {
    return undefined
  }
}
