/**
 * STORE, COPY, MOVE, APPEND and EXPUNGE (RFC 9051 sections 6.3.12 and 6.4), with the additions of UIDPLUS and
 * CONDSTORE.
 */
import { Effect, Stream } from "effect"
import type { Named } from "../protocol/Command.ts"
import * as Sets from "../protocol/Sets.ts"
import { bad, type Conversation, no, ok, type Selected } from "./Conversation.ts"
import * as Flags from "./Flags.ts"
import { flagsOf, announceKeywords, named, readOnly, sync } from "./SelectedFolder.ts"
import type { Upload } from "./Spool.ts"
import type { Store } from "./Store.ts"

const tooMany = no("A message cannot have that many keywords.", "LIMIT")

export const store = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  { uid, messages, how, silent, flags, unchangedSince }: Named<"STORE">,
) {
  if (selected.readOnly) return readOnly
  const uids = named(selected, messages, uid)
  if (uids === undefined) return bad("No message has that sequence number.")
  const change = Flags.change(how, flags)
  if (change === undefined) return bad("One of the flags cannot be stored.")
  if (Flags.areTooMany(change)) return tooMany
  if (unchangedSince !== undefined) conversation.wantsChanges()
  const modified = yield* store.change(selected.folder, uids, change, unchangedSince)
  const left = Sets.without(uids, Sets.of(modified))
  // The response includes messages whose flags did not change, and skipped messages, so that the client can decide
  // again.
  const shown = silent && !conversation.condstore ? [] : silent ? left : uids
  let found = 0
  if (shown.length > 0) {
    yield* Stream.runForEach(store.marked(selected.folder, shown), (message) => {
      const number = selected.view.numberOf(message.uid)
      if (number === 0) return Effect.void
      found++
      announceKeywords(conversation, selected, message.flags)
      selected.reported.set(message.uid, message.modseq)
      const parts = [
        ...(uid || conversation.qresync ? [`UID ${message.uid}`] : []),
        ...(conversation.condstore ? [`MODSEQ (${message.modseq})`] : []),
        ...(silent ? [] : [`FLAGS (${flagsOf(selected, message).join(" ")})`]),
      ]
      conversation.write(`* ${number} FETCH (${parts.join(" ")})\r\n`)
      return conversation.isFull ? conversation.flush : Effect.void
    })
  } else if (silent)
    for (const [first, last] of left) for (let one = first; one <= last; one++) selected.silenced.add(one)
  yield* sync(conversation, store, uid)
  if (modified.length > 0) {
    const left = uid ? modified : selected.view.numbersOf(modified)
    return ok("Some messages were changed meanwhile.", `MODIFIED ${Sets.write(Sets.of(left))}`)
  }
  if (!silent && found < Sets.count(uids)) return no("Some messages no longer exist.", "EXPUNGEISSUED")
  return ok("STORE completed.")
})

/** Returns the COPYUID code (RFC 4315), or undefined if nothing was copied. */
const copied = ({
  uidValidity,
  from,
  to,
}: {
  readonly uidValidity: number
  readonly from: ReadonlyArray<number>
  readonly to: ReadonlyArray<number>
}) =>
  from.length === 0 || to.length < from.length
    ? undefined
    : `COPYUID ${uidValidity} ${Sets.writeInOrder(from)} ${Sets.writeInOrder(to)}`

export const copy = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  { name, uid, messages, mailbox }: Named<"COPY" | "MOVE">,
) {
  const move = name === "MOVE"
  if (move && selected.readOnly) return readOnly
  const uids = named(selected, messages, uid)
  if (uids === undefined) return bad("No message has that sequence number.")
  if (uids.length === 0) return ok(`${name} completed: no messages.`)
  const done = yield* store.copy(selected.folder, uids, mailbox, move)
  const code = copied(done)
  // The copies may be in the selected folder.
  conversation.dirty = true
  if (!move) {
    if (done.from.length < Sets.count(uids)) return no("Some messages no longer exist.", "EXPUNGEISSUED")
    return ok("COPY completed.", code)
  }
  // RFC 6851 section 4.3: COPYUID comes before the expunges.
  if (code !== undefined) conversation.write(`* OK [${code}] Moved\r\n`)
  return ok("MOVE completed.")
})

export const append = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  { mailbox, flags, at, message }: Named<"APPEND">,
) {
  const change = Flags.change("set", flags)
  if (change === undefined) return bad("One of the flags cannot be stored.")
  if (Flags.areTooMany(change)) return tooMany
  const brought: Upload =
    message === "aside" ? conversation.aside.brought() : { size: message.length, read: Effect.succeed(message) }
  if (brought.size === 0) return no("The message is empty.")
  const { uidValidity, uid } = yield* store.append(mailbox, brought, change, at)
  if (conversation.selected?.folder.name === mailbox) conversation.dirty = true
  return ok("APPEND completed.", `APPENDUID ${uidValidity} ${uid}`)
})

export const expunge = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  { messages }: Named<"EXPUNGE">,
) {
  if (selected.readOnly) return readOnly
  // Only messages that the client knows are expunged.
  const uids =
    messages === undefined ? selected.view.uidsAt([[1, selected.view.count]]) : named(selected, messages, true)
  if (uids === undefined) return bad("The message does not exist.")
  if (uids.length > 0) yield* store.expunge(selected.folder, uids)
  yield* sync(conversation, store, true)
  return ok("EXPUNGE completed.", conversation.condstore ? `HIGHESTMODSEQ ${selected.modseq}` : undefined)
})
