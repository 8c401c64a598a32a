/** A Mailbox in memory for testing sessions, with the same guarantees as the real store. */
import { toPublic } from "@svc/domain/Ids"
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import type { SearchKey } from "@svc/mail-gateway/mail/imap/protocol/SearchKeys"
import * as Sets from "@svc/mail-gateway/mail/imap/protocol/Sets"
import * as Flags from "@svc/mail-gateway/mail/imap/session/Flags"
import {
  type FlagChange,
  type Folder,
  Refused,
  type Store,
  type Stored,
} from "@svc/mail-gateway/mail/imap/session/Store"
import * as Structure from "@svc/mail-gateway/mail/mime/Structure"
import { Effect, Stream } from "effect"

interface Message {
  readonly uid: number
  readonly raw: Buffer
  modseq: number
  marks: Flags.Marks
}

interface Box {
  readonly folder: Folder
  uidNext: number
  recentFrom: number
  messages: Array<Message>
  readonly vanished: Array<{ uid: number; modseq: number }>
}

const fresh: Flags.Marks = {
  seen: false,
  flagged: false,
  answered: false,
  deleted: false,
  draft: false,
  labels: [],
  tags: [],
}

const detailed = (structure: Structure.Structure) => ({ structure, envelope: structure.envelope })

const changed = (
  marks: Flags.Marks,
  { labels, add_labels = [], remove_labels = [], ...rest }: FlagChange,
): Flags.Marks => ({
  ...marks,
  ...rest,
  labels: [...new Set([...(labels ?? marks.labels), ...add_labels])]
    .filter((label) => !remove_labels.includes(label))
    .sort(),
})

export const make = () => {
  let modseq = 1
  let ids = 0
  const boxes = new Map<string, Box>()
  const subscribed = new Set<string>()
  const refuse = (code: Refused["code"]) => Effect.fail(new Refused({ code, message: code }))
  const add = (name: string, use: FolderUse | null) => {
    const id = `00000000-0000-7000-8000-${String(ids++).padStart(12, "0")}`
    boxes.set(name, {
      folder: { id, name, use, uidValidity: ids, uidNext: 1 },
      uidNext: 1,
      recentFrom: 1,
      messages: [],
      vanished: [],
    })
  }
  add("INBOX", "inbox")
  add("Sent", "sent")
  const boxOf = (folder: Folder) => [...boxes.values()].find((box) => box.folder.id === folder.id)
  const place = (box: Box, raw: Buffer, marks: Flags.Marks) => {
    const message = { uid: box.uidNext++, raw, modseq, marks }
    box.messages.push(message)
    return message.uid
  }
  const take = (box: Box, uids: ReadonlyArray<number>) => {
    box.messages = box.messages.filter(({ uid }) => !uids.includes(uid))
    for (const uid of uids) box.vanished.push({ uid, modseq })
  }
  const marked = ({ uid, modseq, marks }: Message) => ({ uid, modseq, flags: Flags.shown(marks) })
  const stored = (message: Message): Stored => ({
    ...marked(message),
    // No two values are equal, so that a response with the wrong one is noticed.
    id: toPublic("msg_", `00000000-0000-7000-8000-${String(message.uid).padStart(12, "0")}`),
    threadId: toPublic("thr_", `00000000-0000-7000-9000-${String(message.uid).padStart(12, "0")}`),
    size: message.raw.length,
    at: new Date(Date.UTC(2024, 0, 2, 3, 4, message.uid)),
    zone: 90,
    // The beginning of the text comes with the structure only.
    snippet: "",
  })
  const chosen = (folder: Folder, uids: Sets.Ranges, since = 0) =>
    (boxOf(folder)?.messages ?? []).filter((one) => Sets.has(uids, one.uid) && one.modseq > since)
  const isPart = (key: SearchKey, one: Message, numbers: Parameters<Store["search"]>[2]): boolean => {
    switch (key._tag) {
      case "And":
        return key.keys.every((each) => isPart(each, one, numbers))
      case "Or":
        return isPart(key.either, one, numbers) || isPart(key.or, one, numbers)
      case "Not":
        return !isPart(key.key, one, numbers)
      case "Numbers":
      case "Saved":
      case "Recent":
        return Sets.has(numbers(key), one.uid)
      case "Flag":
        return Flags.shown(one.marks).some((flag) => flag.toLowerCase() === key.flag)
      case "Text":
      case "Header":
        return one.raw.toString("latin1").includes(key.text)
      default:
        return true
    }
  }

  const store: Store = {
    folders: Effect.sync(() => ({ folders: [...boxes.values()].map(({ folder }) => folder), subscribed })),
    status: (folder) =>
      Effect.sync(() => {
        const all = boxOf(folder)?.messages ?? []
        const size = all.reduce((sum, { raw }) => sum + raw.length, 0)
        const unseen = all.filter(({ marks }) => !marks.seen).length
        const from = boxOf(folder)?.recentFrom ?? 1
        const recent = all.filter(({ uid }) => uid >= from).length
        const deleted = all.filter(({ marks }) => marks.deleted).length
        return { uidNext: boxOf(folder)?.uidNext ?? 1, messages: all.length, recent, unseen, deleted, size, modseq }
      }),
    open: (folder) =>
      Effect.sync(() => ({
        modseq,
        uidNext: boxOf(folder)?.uidNext ?? 1,
        uids: (boxOf(folder)?.messages ?? []).map(({ uid }) => uid),
        recentFrom: boxOf(folder)?.recentFrom ?? 1,
        firstUnseen: boxOf(folder)?.messages.find(({ marks }) => !marks.seen)?.uid,
        keywords: [...new Set((boxOf(folder)?.messages ?? []).flatMap(({ marks }) => marks.labels))],
      })),
    claim: (folder, upTo) =>
      Effect.sync(() => {
        const box = boxOf(folder)
        const first = Math.min(box?.recentFrom ?? upTo, upTo)
        if (box !== undefined) box.recentFrom = Math.max(box.recentFrom, upTo)
        return first
      }),
    changes: (folder, since) =>
      Effect.sync(() => {
        const box = boxOf(folder)
        return {
          modseq,
          uidNext: box?.uidNext ?? 1,
          recentFrom: box?.recentFrom ?? 1,
          changed: (box?.messages ?? []).filter((one) => one.modseq > since).map(marked),
          vanished: (box?.vanished ?? []).filter((one) => one.modseq > since).map(({ uid }) => uid),
          isGone: box === undefined,
        }
      }),
    marked: (folder, uids, { since } = {}) =>
      Stream.suspend(() => Stream.fromIterable(chosen(folder, uids, since).map(marked))),
    stored: (folder, uids, { since } = {}) =>
      Stream.suspend(() => Stream.fromIterable(chosen(folder, uids, since).map(stored))),
    detailed: (folder, uids, { since } = {}) =>
      Stream.suspend(() =>
        Stream.fromIterable(
          chosen(folder, uids, since).map((one) => ({
            ...stored(one),
            snippet: `Snippet ${one.uid}`,
            raw: one.raw,
            ...detailed(Structure.make(one.raw)),
          })),
        ),
      ),
    bytes: (message, from, to) =>
      Stream.suspend(() => {
        for (const { messages } of boxes.values()) {
          const one = messages.find((each) => each.uid === message.uid && each.raw.length === message.size)
          if (one !== undefined) return Stream.succeed(new Uint8Array(one.raw.subarray(from, to)))
        }
        return Stream.empty
      }),
    search: (folder, key, numbers) =>
      Effect.sync(() => {
        const found = (boxOf(folder)?.messages ?? []).filter((one) => isPart(key, one, numbers))
        return { uids: found.map(({ uid }) => uid), modseqs: found.map((one) => one.modseq) }
      }),
    sorted: (folder, uids) => Effect.sync(() => chosen(folder, uids).map(({ uid }) => uid)),
    threadable: (folder, uids) =>
      Effect.sync(() =>
        chosen(folder, uids).map(({ uid }) => ({ uid, messageId: null, references: [], subject: `${uid}`, sent: uid })),
      ),
    change: (folder, uids, change, unchangedSince) =>
      Effect.sync(() => {
        modseq++
        const modified: Array<number> = []
        for (const one of chosen(folder, uids)) {
          if (unchangedSince !== undefined && one.modseq > unchangedSince) modified.push(one.uid)
          else {
            one.marks = changed(one.marks, change)
            one.modseq = modseq
          }
        }
        return modified
      }),
    append: (name, message, change) =>
      Effect.flatMap(message.read, (raw) => {
        const box = boxes.get(name)
        if (box === undefined) return refuse("TRYCREATE")
        modseq++
        return Effect.succeed({
          uidValidity: box.folder.uidValidity,
          uid: place(box, Buffer.from(raw), changed(fresh, change)),
        })
      }),
    copy: (folder, uids, to, move) =>
      Effect.suspend(() => {
        const [source, target] = [boxOf(folder), boxes.get(to)]
        if (source === undefined || target === undefined) return refuse("TRYCREATE")
        modseq++
        const from = chosen(folder, uids)
        const there = from.map(({ raw, marks }) => place(target, raw, marks))
        if (move)
          take(
            source,
            from.map(({ uid }) => uid),
          )
        return Effect.succeed({ uidValidity: target.folder.uidValidity, from: from.map(({ uid }) => uid), to: there })
      }),
    expunge: (folder, uids) =>
      Effect.sync(() => {
        const box = boxOf(folder)
        if (box === undefined) return
        modseq++
        const expunged = box.messages.filter(
          ({ uid, marks }) => marks.deleted && (uids === undefined || Sets.has(uids, uid)),
        )
        take(
          box,
          expunged.map(({ uid }) => uid),
        )
      }),
    create: (name, use) =>
      Effect.suspend(() => (boxes.has(name) ? refuse("ALREADYEXISTS") : Effect.sync(() => add(name, use)))),
    remove: (name) => Effect.suspend(() => (boxes.delete(name) ? Effect.void : refuse("NONEXISTENT"))),
    rename: () => refuse("CANNOT"),
    subscribe: (name, wanted) => Effect.sync(() => void (wanted ? subscribed.add(name) : subscribed.delete(name))),
    quota: Effect.succeed({ used: 1, limit: 1_000_000 }),
    watch: () => Effect.void,
  }
  return store
}
