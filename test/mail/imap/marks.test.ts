/**
 * The cache of folder flags compared with a changing folder, and sets and views compared with simple implementations.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import * as Sets from "@svc/mail-gateway/mail/imap/protocol/Sets"
import * as Flags from "@svc/mail-gateway/mail/imap/session/Flags"
import type { Changes, Marked } from "@svc/mail-gateway/mail/imap/session/Store"
import { View } from "@svc/mail-gateway/mail/imap/session/View"
import * as Copying from "@svc/mail-gateway/mail/imap/store/Copying"
import { unpacked } from "@svc/mail-gateway/mail/imap/store/Rows"
import * as FolderFlagCache from "@svc/mail-gateway/mail/imap/store/FolderFlagCache"
import { random } from "./Sessions.ts"

const folder = { id: "f", name: "INBOX", use: null, uidValidity: 1, uidNext: 1 } as const

it("flags are those of the message, its labels, and its tags that are keywords, each once", () => {
  const marks = { seen: true, flagged: false, answered: true, deleted: false, draft: false }
  const flags = Flags.shown({ ...marks, labels: ["a", "$forwarded"], tags: ["a", "b", "c d"] })
  expect(flags).toEqual(["\\Answered", "\\Seen", "a", "$Forwarded", "b"])
})

it("messages are moved a thousand at a time, and copied together with their UIDs in order", async () => {
  const asked: Array<readonly [sizes: number, whole: boolean]> = []
  const copy = (move: boolean, first: number | null) =>
    Effect.runPromise(
      Copying.copy(
        (uids, whole) => {
          asked.push([Sets.count(uids), whole])
          const placement = { uid_validity: 7, from: [], to: [] }
          return Effect.succeed(
            whole
              ? {
                  ...placement,
                  whole: {
                    first,
                    from: [
                      [1, 2],
                      [5, 5],
                    ],
                  },
                }
              : placement,
          )
        },
        [
          [1, 900],
          [1_000, 2_599],
        ],
        move,
      ),
    )
  expect(await copy(false, 10)).toEqual({ uidValidity: 7, from: [1, 2, 5], to: [10, 11, 12] })
  expect(await copy(false, null)).toMatchObject({ from: [1, 2, 5], to: [] })
  await copy(true, null)
  expect(asked).toEqual([
    [2_500, true],
    [2_500, true],
    [1_000, false],
    [1_000, false],
    [500, false],
  ])
})

it("flags are unpacked with the whole change counter, and with the labels of the messages that have any", () => {
  const packed = Buffer.alloc(28)
  packed.writeInt32BE(7, 0)
  packed.writeBigInt64BE(2n ** 32n + 5n, 4)
  packed.writeInt16BE(0b00011, 12)
  packed.writeInt32BE(9, 14)
  packed.writeBigInt64BE(6n, 18)
  expect(unpacked({ packed, labelled: JSON.stringify([[9, ["work"], ["bills"]]]) })).toEqual([
    { uid: 7, modseq: 2 ** 32 + 5, flags: ["\\Flagged", "\\Seen"] },
    { uid: 9, modseq: 6, flags: ["work", "bills"] },
  ])
  expect(unpacked({ packed: null, labelled: null })).toEqual([])
})

it("the flag cache returns current flags and reads the whole folder once", async () => {
  const next = random(11)
  const marks = FolderFlagCache.make()
  let held: ReadonlyArray<Marked> = []
  const removals: Array<{ readonly uid: number; readonly modseq: number }> = []
  let modseq = 1
  let uid = 1
  let reads = 0
  const complete = Effect.sync(() => {
    reads++
    return { modseq, messages: held }
  })
  const changes = (since: number) =>
    Effect.sync((): Changes => ({
      modseq,
      uidNext: uid,
      changed: held.filter((one) => one.modseq > since),
      vanished: removals.filter((one) => one.modseq > since).map((one) => one.uid),
      isGone: false,
      recentFrom: 1,
    }))
  const change = () => {
    modseq++
    const pick = held[Math.floor(next() * held.length)]
    const kind = next()
    if (kind < 0.5 || pick === undefined) held = [...held, { uid: uid++, modseq, flags: [] }]
    else if (kind < 0.75) held = held.map((one) => (one === pick ? { ...one, modseq, flags: [`f${modseq}`] } : one))
    else {
      held = held.filter((one) => one !== pick)
      removals.push({ uid: pick.uid, modseq })
    }
  }
  change()
  for (let round = 0; round < 300; round++) {
    expect(await Effect.runPromise(marks.of(folder, complete, changes))).toEqual(held)
    for (let n = Math.floor(next() * 4); n > 0 && held.length > 0; n--) change()
    if (held.length === 0) change()
  }
  expect(reads).toBe(1)
})

it("the flag cache keeps the later of two concurrent reads and drops deleted folders", async () => {
  const marks = FolderFlagCache.make()
  const message = (modseq: number): Marked => ({ uid: 1, modseq, flags: [`f${modseq}`] })
  const nothing = { changed: [], vanished: [], uidNext: 2, isGone: false, recentFrom: 1 }
  const marksAt = (modseq: number) =>
    marks.of(folder, Effect.succeed({ modseq, messages: [message(modseq)] }), (since) =>
      Effect.succeed({ ...nothing, modseq: since }),
    )
  // The earlier read finishes after the later one.
  const slow = marks.of(
    folder,
    Effect.delay(Effect.succeed({ modseq: 3, messages: [message(3)] }), 20),
    () => Effect.never,
  )
  const first = Effect.runPromise(slow)
  await Effect.runPromise(marksAt(5))
  await first
  expect(await Effect.runPromise(marksAt(9))).toEqual([message(5)])
  const removed = marks.of(folder, Effect.never, () => Effect.succeed({ ...nothing, modseq: 6, isGone: true }))
  expect(await Effect.runPromise(removed)).toEqual([])
  expect(await Effect.runPromise(marksAt(7))).toEqual([message(7)])
})

it("sets and views match simple implementations", () => {
  const next = random(5)
  for (let round = 0; round < 300; round++) {
    const uids = Array.from({ length: 60 }, (_, n) => n + 1).filter(() => next() < 0.6)
    const view = new View(uids)
    const named = Array.from({ length: 1 + Math.floor(next() * 8) }, () => {
      const [a, b] = [1 + Math.floor(next() * 70), 1 + Math.floor(next() * 70)]
      return next() < 0.5 ? [a, a] : [a, b]
    })
    const text = named.map(([a, b]) => (a === b ? `${a}` : `${a}:${b}`)).join(",")
    const isNamed = (n: number) => named.some(([a, b]) => n >= Math.min(a!, b!) && n <= Math.max(a!, b!))
    const set = Sets.read(text)!
    expect(Sets.write(view.ofUids(set))).toBe(Sets.write(Sets.of(uids.filter(isNamed))))
    expect(Sets.write(view.uidsAt(Sets.resolve(set, uids.length)))).toBe(
      Sets.write(Sets.of(uids.filter((_, at) => isNamed(at + 1)))),
    )
  }
  expect(Sets.read("1:*,*:3,4294967295")).toEqual([
    [1, "*"],
    ["*", 3],
    [4294967295, 4294967295],
  ])
  const none = ["", ",", "1,", ",1", "0", "1:", ":1", "1:2:3", "4294967296", "12345678901", "1 ", "a", "-1", "1;2"]
  for (const text of none) expect(Sets.read(text), text).toBeUndefined()
  expect(Sets.read(Array.from({ length: Sets.limit + 1 }, () => "1").join(","))).toBeUndefined()
})
