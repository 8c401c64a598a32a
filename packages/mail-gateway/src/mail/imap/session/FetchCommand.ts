/**
 * FETCH (RFC 9051 section 6.4.5). Messages and slices of their bytes are streamed from the store: no message is
 * buffered whole, and a slow client slows down reading.
 */
import { Effect, Schema, Stream } from "effect"
import * as Structure from "../../mime/Structure.ts"
import type { Named } from "../protocol/Command.ts"
import * as Dates from "../protocol/Dates.ts"
import type { FetchItem, Partial } from "../protocol/FetchItems.ts"
import * as Sets from "../protocol/Sets.ts"
import * as Strings from "../protocol/Strings.ts"
import { bad, type Conversation, no, ok, type Selected } from "./Conversation.ts"
import * as TransferDecoder from "./TransferDecoder.ts"
import { fieldsOf, nodeAt, type Span, spanOf } from "./Sections.ts"
import { flagsOf, announceKeywords, named, sync } from "./SelectedFolder.ts"
import type { Detailed, Marked, Store, StoreError, Stored } from "./Store.ts"

/** A message was removed while its bytes were sent: the literal cannot be completed, so the connection is closed. */
export class CutShort extends Schema.TaggedError<CutShort>()("ImapCutShort", {}) {}

/**
 * Messages up to this size (bytes) are read before the response begins; a message that was removed by then is skipped.
 */
const ahead = 512 * 1024
/** Bytes of a header that are searched for fields. */
const headerBytes = 1024 * 1024

type SectionItem = Extract<FetchItem, { readonly _tag: "Section" }>

const isWhole = ({ section }: SectionItem) => section.part.length === 0 && section.what === "all"

/** Items that need more than the flags of a message. */
const detailed = new Set(["ENVELOPE", "BODY", "BODYSTRUCTURE", "PREVIEW"])

const needsDetail = (item: FetchItem) => (item._tag === "Section" ? !isWhole(item) : detailed.has(item.name))

const isMark = (item: FetchItem) =>
  item._tag === "Known" && (item.name === "UID" || item.name === "FLAGS" || item.name === "MODSEQ")

const isStored = (message: Marked | Stored): message is Stored => "size" in message
const isDetailed = (message: Marked | Stored | Detailed): message is Detailed => "structure" in message

export const fetch = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  selected: Selected,
  { uid, messages, items: requestedItems, changedSince, vanished }: Named<"FETCH">,
) {
  const requestedUids = named(selected, messages, uid)
  if (requestedUids === undefined) return bad("No message has that sequence number.")
  const items = [...requestedItems]
  const names = (name: string) => items.some((item) => item._tag === "Known" && item.name === name)
  const add = (name: "UID" | "MODSEQ") => {
    if (!names(name)) items.unshift({ _tag: "Known", name })
  }
  if (changedSince !== undefined || names("MODSEQ")) {
    conversation.wantsChanges()
    add("MODSEQ")
  }
  if (uid) add("UID")
  if (changedSince === undefined && items.every((item) => item._tag === "Known" && item.name === "UID")) {
    return yield* fetchUids(conversation, selected, requestedUids)
  }
  if (vanished && !conversation.qresync) return bad("QRESYNC is not enabled.")
  const sees =
    !selected.readOnly && items.some((item) => item._tag === "Section" && !item.peek && item.decoded !== "size")
  const changes =
    changedSince !== undefined && (vanished || sees) ? yield* store.changes(selected.folder, changedSince) : undefined
  if (vanished && changes !== undefined) {
    const range =
      messages === "saved" ? selected.saved : Sets.resolve(messages, Math.max(selected.view.last, selected.uidNext - 1))
    // A message of the view is reported without EARLIER, since its number is removed (RFC 7162 section 3.2.10).
    const reported = changes.vanished.filter((one) => Sets.has(range, one) && selected.view.numberOf(one) === 0)
    if (reported.length > 0) conversation.write(`* VANISHED (EARLIER) ${Sets.write(Sets.of(reported))}\r\n`)
  }
  // Only messages that are returned become seen, and that changes them.
  const uids =
    sees && changes !== undefined
      ? Sets.of(changes.changed.map(({ uid }) => uid).filter((one) => Sets.has(requestedUids, one)))
      : requestedUids
  if (sees) yield* store.change(selected.folder, uids, { seen: true })
  const showsFlags = names("FLAGS")
  let unknownEncoding = false
  let found = 0

  const writePage = Effect.fnUntraced(function* (page: ReadonlyArray<Marked | Stored | Detailed>) {
    for (const message of page) {
      const number = selected.view.numberOf(message.uid)
      if (number === 0) continue
      found++
      if (showsFlags) {
        announceKeywords(conversation, selected, message.flags)
        selected.reported.set(message.uid, message.modseq)
      }
      let text = `* ${number} FETCH (`
      let first = true
      for (const item of items) {
        if (!first) text += " "
        first = false
        if (item._tag === "Known") text += known(item.name, message, selected)
        else if (isStored(message)) {
          conversation.write(text)
          text = ""
          if (!(yield* section(conversation, store, item, message))) unknownEncoding = true
        }
      }
      conversation.write(`${text})\r\n`)
      if (conversation.isFull) yield* conversation.flush
    }
  })

  const wanted = {
    since: changedSince,
    bytes: items.some(({ _tag }) => _tag === "Section"),
    whole: Sets.count(uids) === selected.view.count,
  }
  const rows: Stream.Stream<Marked | Stored | Detailed, StoreError> = items.some(needsDetail)
    ? store.detailed(selected.folder, uids, wanted)
    : items.every(isMark)
      ? store.marked(selected.folder, uids, wanted)
      : store.stored(selected.folder, uids, wanted)
  yield* Stream.runForEachArray(rows, writePage)
  if (sees) yield* sync(conversation, store, uid)
  if (unknownEncoding) return no("Unknown transfer encoding.", "UNKNOWN-CTE")
  const someExpunged = changedSince === undefined && found < Sets.count(uids)
  if (someExpunged) conversation.dirty = true
  return someExpunged ? ok("Some messages no longer exist.", "EXPUNGEISSUED") : ok("FETCH completed.")
})

/**
 * Answers from the session's view, also for messages that were removed but keep their numbers (RFC 2180 section 4.1).
 */
const fetchUids = Effect.fnUntraced(function* (conversation: Conversation, { view }: Selected, uids: Sets.Ranges) {
  let someExpunged = false
  for (const [first, last] of uids) {
    let number = view.numberOf(first)
    for (let one = first; one <= last; one++) {
      conversation.write(`* ${number++} FETCH (UID ${one})\r\n`)
      someExpunged ||= view.isGhost(one)
      if (!conversation.isFull) continue
      yield* conversation.flush
      yield* Effect.yieldNow
    }
  }
  return someExpunged ? ok("Some messages no longer exist.", "EXPUNGEISSUED") : ok("FETCH completed.")
})

const known = (
  name: Extract<FetchItem, { readonly _tag: "Known" }>["name"],
  message: Marked | Stored | Detailed,
  selected: Selected,
): string => {
  switch (name) {
    case "UID":
      return `UID ${message.uid}`
    case "FLAGS":
      return `FLAGS (${flagsOf(selected, message).join(" ")})`
    case "MODSEQ":
      return `MODSEQ (${message.modseq})`
    default:
      return isStored(message) ? ofStored(name, message) : `${name} NIL`
  }
}

const ofStored = (
  name: Exclude<Parameters<typeof known>[0], "UID" | "FLAGS" | "MODSEQ">,
  message: Stored | Detailed,
): string => {
  switch (name) {
    case "INTERNALDATE":
      return `INTERNALDATE ${Dates.write(message)}`
    case "RFC822.SIZE":
      return `RFC822.SIZE ${message.size}`
    case "EMAILID":
      return `EMAILID (${message.id})`
    case "THREADID":
      return `THREADID (${message.threadId})`
    case "PREVIEW":
      return `PREVIEW ${Strings.string(message.snippet)}`
    case "ENVELOPE":
      return `ENVELOPE ${isDetailed(message) ? message.envelope : "NIL"}`
    case "BODY":
    case "BODYSTRUCTURE":
      return `${name} ${isDetailed(message) ? Structure.write(message.structure.root, name === "BODYSTRUCTURE") : "NIL"}`
  }
}

const cut = ({ from, to }: Span, partial: Partial | undefined): Span => {
  if (partial === undefined) return { from, to }
  const start = Math.min(from + partial.from, to)
  return { from: start, to: Math.min(start + partial.count, to) }
}

/** Writes a section. Returns false if the content cannot be decoded. */
const section = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  item: SectionItem,
  message: Stored | Detailed,
) {
  const { section: of, label, partial } = item
  const span = isDetailed(message) ? spanOf(message.structure, message.size, of) : { from: 0, to: message.size }
  if (item.decoded !== undefined) {
    const node = isDetailed(message) ? nodeAt(message.structure, of.part) : undefined
    return yield* binary(conversation, store, item, message, span, of.part.length === 0 ? "binary" : (node?.c ?? ""))
  }
  if (span === undefined) {
    conversation.write(`${label} NIL`)
    return true
  }
  if (of.what === "HEADER.FIELDS" || of.what === "HEADER.FIELDS.NOT") {
    const header = yield* gathered(store, message, { from: span.from, to: Math.min(span.to, span.from + headerBytes) })
    const fields = fieldsOf(header, of)
    const { from, to } = cut({ from: 0, to: fields.length }, partial)
    conversation.write(`${label} {${to - from}}\r\n`)
    yield* conversation.raw(fields.subarray(from, to))
    return true
  }
  const { from, to } = cut(span, partial)
  const length = to - from
  if (length <= ahead) {
    const bytes = length === 0 ? Buffer.alloc(0) : yield* gathered(store, message, { from, to })
    // It was removed since it was listed; the next synchronization tells the client.
    if (bytes.length < length) conversation.write(`${label} NIL`)
    else {
      conversation.write(`${label} {${length}}\r\n`)
      yield* conversation.raw(bytes)
    }
    return true
  }
  conversation.write(`${label} {${length}}\r\n`)
  yield* conversation.flush
  let sent = 0
  yield* Stream.runForEach(store.bytes(message, from, to), (bytes) => {
    sent += bytes.length
    return conversation.raw(bytes)
  })
  if (sent < length) return yield* new CutShort()
  return true
})

const gathered = (store: Store, message: Stored, { from, to }: Span) =>
  message.raw !== undefined
    ? Effect.succeed(Buffer.from(message.raw.buffer, message.raw.byteOffset + from, to - from))
    : Effect.map(Stream.runCollect(store.bytes(message, from, to)), (pieces) => Buffer.concat([...pieces]))

/** Writes decoded content. The content is read twice, since its size comes first. */
const binary = Effect.fnUntraced(function* (
  conversation: Conversation,
  store: Store,
  { label, decoded: wanted, partial }: SectionItem,
  message: Stored,
  span: Span | undefined,
  encoding: string,
) {
  if (span === undefined) {
    conversation.write(`${label} ${wanted === "size" ? "0" : "NIL"}`)
    return true
  }
  if (!TransferDecoder.encodings.has(encoding)) {
    conversation.write(`${label} ${wanted === "size" ? "0" : "NIL"}`)
    return false
  }
  const read = (use: (bytes: Buffer) => Effect.Effect<void>) => {
    const decoder = TransferDecoder.make(encoding)
    return Effect.andThen(
      Stream.runForEach(store.bytes(message, span.from, span.to), (bytes) => use(decoder.push(Buffer.from(bytes)))),
      Effect.suspend(() => use(decoder.end())),
    )
  }
  let size = 0
  let hasNul = false
  yield* read((bytes) =>
    Effect.sync(() => {
      size += bytes.length
      hasNul ||= bytes.includes(0)
    }),
  )
  if (wanted === "size") {
    conversation.write(`${label} ${size}`)
    return true
  }
  const { from, to } = cut({ from: 0, to: size }, partial)
  conversation.write(`${label} ${hasNul ? "~" : ""}{${to - from}}\r\n`)
  let at = 0
  let sent = 0
  yield* read((bytes) => {
    const piece = bytes.subarray(Math.max(0, from - at), Math.max(0, to - at))
    at += bytes.length
    sent += piece.length
    return piece.length === 0 ? Effect.void : conversation.raw(piece)
  })
  if (sent < to - from) return yield* new CutShort()
  return true
})
