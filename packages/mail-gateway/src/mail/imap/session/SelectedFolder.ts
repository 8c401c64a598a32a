/**
 * Selects folders and synchronizes the client with their changes: EXISTS, EXPUNGE or VANISHED, FETCH (RFC 9051 sections
 * 6.3.2 and 7.5, RFC 7162). A change is sent once; removals only when no pending command uses sequence numbers.
 */
import { Effect } from "effect"
import type { Named } from "../protocol/Command.ts"
import * as Sets from "../protocol/Sets.ts"
import { type Completion, type Conversation, no, ok, type Selected } from "./Conversation.ts"
import * as Flags from "./Flags.ts"
import { type Folder, type Marked, Refused, type Store } from "./Store.ts"
import { View } from "./View.ts"

export const find = Effect.fnUntraced(function* (store: Store, name: string) {
  const { folders } = yield* store.folders
  const folder = folders.find((one) => one.name === name)
  if (folder === undefined) return yield* new Refused({ code: "NONEXISTENT", message: "The mailbox does not exist." })
  return folder
})

/** Returns the id of a folder (RFC 8474). */
export const mailboxId = (folder: Folder): string => `F${folder.id.replaceAll("-", "")}`

const writeFlags = (selected: Selected): string => {
  const all = [...Flags.system, ...selected.keywords].join(" ")
  const permanent = selected.readOnly ? "" : `${all} \\*`
  return `* FLAGS (${all})\r\n* OK [PERMANENTFLAGS (${permanent})] Flags\r\n`
}

export const select = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  { name, mailbox, condstore, resync }: Named<"SELECT" | "EXAMINE">,
) {
  if (resync !== undefined && !conversation.qresync) return no("QRESYNC is not enabled.", "CLIENTBUG")
  const before = conversation.selected
  // The previous folder is closed even if SELECT fails.
  conversation.selected = undefined
  if (before !== undefined && (conversation.rev2 || conversation.qresync)) {
    conversation.write("* OK [CLOSED] Previous mailbox is now closed\r\n")
  }
  const folder = yield* find(store, mailbox)
  conversation.dirty = false
  const opened = yield* store.open(folder)
  if (condstore) conversation.wantsChanges()
  const readOnly = name === "EXAMINE"
  const selected: Selected = {
    folder,
    readOnly,
    view: new View(opened.uids),
    modseq: opened.modseq,
    uidNext: opened.uidNext,
    recent: new Set(),
    saved: [],
    reported: new Map(),
    silenced: new Set(),
    keywords: new Set(opened.keywords.map(Flags.keyword)),
  }
  yield* claimRecent(conversation, store, selected, opened.uids, opened)
  conversation.selected = selected
  conversation.write(writeFlags(selected))
  conversation.write(`* ${selected.view.count} EXISTS\r\n`)
  if (!conversation.rev2) {
    conversation.write(`* ${selected.recent.size} RECENT\r\n`)
    const unseen = opened.firstUnseen === undefined ? 0 : selected.view.numberOf(opened.firstUnseen)
    if (unseen > 0) conversation.write(`* OK [UNSEEN ${unseen}] First unseen\r\n`)
  }
  conversation.write(`* OK [UIDVALIDITY ${folder.uidValidity}] UIDs valid\r\n`)
  conversation.write(`* OK [UIDNEXT ${opened.uidNext}] Predicted next UID\r\n`)
  conversation.write(`* OK [HIGHESTMODSEQ ${opened.modseq}] Highest\r\n`)
  conversation.write(`* OK [MAILBOXID (${mailboxId(folder)})] Ok\r\n`)
  if (conversation.rev2) conversation.write(`* LIST () "/" ${conversation.name(folder.name)}\r\n`)
  if (resync !== undefined && resync.uidValidity === folder.uidValidity) {
    const { changed, vanished } = yield* store.changes(folder, resync.modseq)
    const known = resync.known === undefined ? undefined : Sets.resolve(resync.known, Sets.highest)
    const expunged = known === undefined ? vanished : vanished.filter((uid) => Sets.has(known, uid))
    if (expunged.length > 0) conversation.write(`* VANISHED (EARLIER) ${Sets.write(Sets.of(expunged))}\r\n`)
    for (const message of changed) {
      const number = selected.view.numberOf(message.uid)
      if (number === 0 || (known !== undefined && !Sets.has(known, message.uid))) continue
      conversation.write(writeMarked(conversation, selected, number, message))
      if (conversation.isFull) yield* conversation.flush
    }
  }
  return ok(`${name} completed.`, readOnly ? "READ-ONLY" : "READ-WRITE")
})

/** Determines which new messages are recent in this session; a read-only session claims none. */
const claimRecent = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  uids: ReadonlyArray<number>,
  { recentFrom, uidNext }: { readonly recentFrom: number; readonly uidNext: number },
) {
  // IMAP4rev2 has no \Recent (RFC 9051 appendix E).
  if (conversation.rev2 || uids.length === 0 || uids.at(-1)! < recentFrom) return
  const first = selected.readOnly ? recentFrom : yield* store.claim(selected.folder, uidNext)
  for (const uid of uids) if (uid >= first) selected.recent.add(uid)
})

/** Returns the flags of a message in this session. */
export const flagsOf = ({ recent }: Selected, { uid, flags }: Marked): ReadonlyArray<string> =>
  recent.has(uid) ? [...flags, "\\Recent"] : flags

const writeMarked = (conversation: Conversation, selected: Selected, number: number, message: Marked): string => {
  const change = conversation.condstore ? ` MODSEQ (${message.modseq})` : ""
  return `* ${number} FETCH (UID ${message.uid} FLAGS (${flagsOf(selected, message).join(" ")})${change})\r\n`
}

/** Announces keywords that the client does not know before a message uses them. */
export const announceKeywords = (
  conversation: Conversation,
  selected: Selected,
  flags: ReadonlyArray<string>,
): void => {
  let isNew = false
  for (const flag of flags) {
    if (flag.startsWith("\\") || selected.keywords.has(flag)) continue
    selected.keywords.add(flag)
    isNew = true
  }
  if (isNew) conversation.write(writeFlags(selected))
}

/**
 * Sends the changes since the last synchronization. `removals` says whether sequence numbers may change: not while a
 * command that uses them is running (RFC 9051 section 7.5.1).
 */
export const sync = (conversation: Conversation, store: Store, removals: boolean) =>
  Effect.tapError(synchronize(conversation, store, removals), () =>
    Effect.sync(() => {
      // The next command synchronizes again.
      conversation.dirty = true
    }),
  )

const synchronize = Effect.fnUntraced(function* (conversation: Conversation, store: Store, removals: boolean) {
  const { selected } = conversation
  if (selected === undefined) return
  conversation.dirty = false
  const { changed, vanished, modseq, uidNext, isGone, recentFrom } = yield* store.changes(
    selected.folder,
    selected.modseq,
  )
  const { view } = selected
  if (isGone) view.markAllRemoved()
  view.markRemoved(vanished)
  if (removals) sendRemovals(conversation, selected)
  const known = view.last
  const arrived = changed.map(({ uid }) => uid).filter((uid) => uid > known)
  if (arrived.length > 0) {
    yield* claimRecent(conversation, store, selected, arrived, { recentFrom, uidNext })
    view.add(arrived)
    conversation.write(`* ${view.count} EXISTS\r\n`)
    if (!conversation.rev2) conversation.write(`* ${selected.recent.size} RECENT\r\n`)
  }
  let looked = 0
  for (const message of changed) {
    // Yields to other fibers, even if no message produces output.
    if (++looked % 1_000 === 0) yield* Effect.yieldNow
    const reported = selected.reported.get(message.uid)
    const number = view.numberOf(message.uid)
    if (number === 0 || (reported !== undefined && reported >= message.modseq)) continue
    announceKeywords(conversation, selected, message.flags)
    // EXISTS announces a new message; its flags are only sent if it has any.
    if (message.uid > known && message.flags.length === 0) continue
    if (selected.silenced.has(message.uid)) {
      if (conversation.condstore)
        conversation.write(`* ${number} FETCH (UID ${message.uid} MODSEQ (${message.modseq}))\r\n`)
    } else conversation.write(writeMarked(conversation, selected, number, message))
    if (conversation.isFull) yield* conversation.flush
  }
  selected.reported.clear()
  selected.silenced.clear()
  selected.modseq = modseq
  selected.uidNext = uidNext
})

export const sendRemovals = (conversation: Conversation, selected: Selected): void => {
  const { numbers, uids } = selected.view.expunge()
  if (uids.length === 0) return
  for (const uid of uids) selected.recent.delete(uid)
  selected.saved = Sets.without(selected.saved, Sets.of(uids))
  if (conversation.qresync) conversation.write(`* VANISHED ${Sets.write(Sets.of(uids))}\r\n`)
  else conversation.write(numbers.map((number) => `* ${number} EXPUNGE\r\n`).join(""))
}

/** Leaves the folder without sending pending changes. */
export const closeFolder = (conversation: Conversation): void => {
  conversation.selected = undefined
}

export const close = Effect.fnUntraced(function* (conversation: Conversation, store: Store, expunges: boolean) {
  const { selected } = conversation
  if (selected !== undefined && expunges && !selected.readOnly) yield* store.expunge(selected.folder, undefined)
  closeFolder(conversation)
  return ok(expunges ? "CLOSE completed." : "UNSELECT completed.")
})

export const readOnly: Completion = no("The mailbox was opened read-only.", "NOPERM")

/** Returns the UIDs of a command's set, or undefined if a sequence number does not exist. */
export const named = (
  selected: Selected,
  messages: Sets.SequenceSet | "saved",
  uid: boolean,
): Sets.Ranges | undefined => {
  if (messages === "saved") return selected.view.within(selected.saved)
  return uid ? selected.view.ofUids(messages) : selected.view.ofNumbers(messages)
}
