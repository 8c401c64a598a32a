/** SEARCH, SORT and THREAD (RFC 9051 section 6.4.4, RFC 4731, RFC 5182, RFC 5256, RFC 5267). */
import { Effect } from "effect"
import type { Named, SearchReturn } from "../protocol/Command.ts"
import { type SearchKey, some } from "../protocol/SearchKeys.ts"
import * as Sets from "../protocol/Sets.ts"
import { type Conversation, no, ok, type Selected } from "./Conversation.ts"
import * as CooperativeWork from "./CooperativeWork.ts"
import type { Store } from "./Store.ts"
import * as Threads from "./Threads.ts"

const charsets = new Set(["US-ASCII", "ASCII", "UTF-8", "UTF8"])

/** Maximum messages to sort or thread; a client must narrow a larger search. */
const orderedAtMost = 50_000
const tooMany = no("Too many messages to sort.", "LIMIT")

const badCharset = no("Unknown character set.", "BADCHARSET (US-ASCII UTF-8)")

const run = Effect.fnUntraced(function* (conversation: Conversation, store: Store, selected: Selected, key: SearchKey) {
  const { view } = selected
  const found = yield* store.search(selected.folder, key, (set) => {
    if (set._tag === "Saved") return selected.saved
    if (set._tag === "Recent") return Sets.of([...selected.recent])
    if (set.uid) return Sets.resolve(set.set, view.last)
    return view.uidsAt(Sets.resolve(set.set, view.count))
  })
  const isOfChanges = some(key, ({ _tag }) => _tag === "Modseq")
  if (isOfChanges) conversation.wantsChanges()
  // The client does not know newer messages yet.
  const uids = found.uids.filter((uid) => view.numberOf(uid) > 0)
  return { uids, changes: isOfChanges ? new Map(found.uids.map((uid, n) => [uid, found.modseqs[n]!])) : undefined }
})

/** The last change of each message, if the search uses MODSEQ. */
type Changes = ReadonlyMap<number, number>

const highest = (changes: Changes, uids: ReadonlyArray<number>): number =>
  uids.reduce((most, uid) => Math.max(most, changes.get(uid) ?? 0), 0)

/** Writes ESEARCH (RFC 4731 section 3.1) for messages in the order of the result, and sets the meaning of `$`. */
const writeEsearch = (
  conversation: Conversation,
  selected: Selected,
  tag: string,
  uid: boolean,
  returns: SearchReturn["returns"],
  uids: ReadonlyArray<number>,
  changes: Changes | undefined,
) => {
  const numbers = uid ? uids : selected.view.numbersOf(uids)
  const edges = !returns.has("ALL") && !returns.has("COUNT") && (returns.has("MIN") || returns.has("MAX"))
  /** The messages of the result: only the first and last if nothing else is requested. */
  const result = edges
    ? [...(returns.has("MIN") ? uids.slice(0, 1) : []), ...(returns.has("MAX") ? uids.slice(-1) : [])]
    : uids
  if (returns.has("SAVE")) selected.saved = Sets.of(new Set([...result].sort((a, b) => a - b)))
  const parts: Array<string> = []
  // The lowest and highest in the order of the result (RFC 5267 section 3.1).
  if (returns.has("MIN") && numbers.length > 0) parts.push(`MIN ${numbers[0]}`)
  if (returns.has("MAX") && numbers.length > 0) parts.push(`MAX ${numbers.at(-1)}`)
  if (returns.has("COUNT")) parts.push(`COUNT ${numbers.length}`)
  if (returns.has("ALL") && numbers.length > 0) parts.push(`ALL ${Sets.writeInOrder(numbers)}`)
  if (returns.size === 1 && returns.has("SAVE")) return
  if (changes !== undefined && numbers.length > 0) parts.push(`MODSEQ ${highest(changes, result)}`)
  conversation.write(`* ESEARCH (TAG "${tag}")${uid ? " UID" : ""}${parts.map((part) => ` ${part}`).join("")}\r\n`)
}

export const search = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  tag: string,
  { uid, key, charset, returns }: Named<"SEARCH">,
) {
  // A failed search leaves `$` empty (RFC 5182 section 2.1).
  const failed = Effect.sync(() => {
    if (returns?.has("SAVE") === true) selected.saved = []
  })
  if (charset !== undefined && !charsets.has(charset)) return yield* Effect.as(failed, badCharset)
  const { uids, changes } = yield* Effect.onError(run(conversation, store, selected, key), () => failed)
  if (returns !== undefined || conversation.rev2) {
    writeEsearch(conversation, selected, tag, uid, returns ?? new Set(["ALL"]), uids, changes)
  } else {
    const numbers = uid ? uids : selected.view.numbersOf(uids)
    const change = changes === undefined || numbers.length === 0 ? "" : ` (MODSEQ ${highest(changes, uids)})`
    conversation.write(`* SEARCH${numbers.map((number) => ` ${number}`).join("")}${change}\r\n`)
  }
  return ok("SEARCH completed.")
})

export const sort = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  tag: string,
  { uid, key, keys, charset, returns }: Named<"SORT">,
) {
  if (charset !== undefined && !charsets.has(charset)) return badCharset
  const { uids, changes } = yield* run(conversation, store, selected, key)
  if (uids.length > orderedAtMost) return tooMany
  const sorted =
    uids.length === 0
      ? []
      : yield* CooperativeWork.exclusive(uids.length, store.sorted(selected.folder, Sets.of(uids), keys))
  if (returns !== undefined) writeEsearch(conversation, selected, tag, uid, returns, sorted, changes)
  else {
    const numbers = uid
      ? sorted
      : yield* CooperativeWork.done(() => CooperativeWork.each(sorted, (one) => selected.view.numberOf(one)))
    conversation.write(`* SORT${numbers.map((number) => ` ${number}`).join("")}\r\n`)
  }
  return ok("SORT completed.")
})

export const thread = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  { uid, key, algorithm, charset }: Named<"THREAD">,
) {
  if (!charsets.has(charset)) return badCharset
  const threads =
    algorithm === "REFERENCES"
      ? Threads.references
      : algorithm === "ORDEREDSUBJECT"
        ? Threads.orderedSubject
        : undefined
  if (threads === undefined) return no("Unknown threading algorithm.")
  const { uids } = yield* run(conversation, store, selected, key)
  if (uids.length > orderedAtMost) return tooMany
  const text = yield* CooperativeWork.exclusive(
    uids.length,
    Effect.gen(function* () {
      const messages = uids.length === 0 ? [] : yield* store.threadable(selected.folder, Sets.of(uids))
      return yield* CooperativeWork.done(() => threads(messages, (one) => (uid ? one : selected.view.numberOf(one))))
    }),
  )
  conversation.write(`* THREAD${text === "" ? "" : ` ${text}`}\r\n`)
  return ok("THREAD completed.")
})
