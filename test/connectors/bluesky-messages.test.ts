/** Direct messages of Bluesky over recorded responses. */
import * as Messages from "@svc/cluster/connectors/platforms/bluesky/Messages"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { connected, did, down, type Handler, refused } from "./bluesky/RecordedAgent.ts"

describe("direct messages", () => {
  const message = (n: number, sender = "did:plc:ada") => ({
    $type: "chat.bsky.convo.defs#messageView",
    id: `m${n}`,
    rev: `r${n}`,
    text: String(n),
    sender: { did: sender },
    sentAt: "2026-01-01T00:00:00.000Z",
  })
  const entry = (n: number, more: object = {}) => ({
    $type: "chat.bsky.convo.defs#logCreateMessage",
    rev: `r${n}`,
    convoId: "c",
    message: message(n),
    relatedProfiles: [{ did: "did:plc:ada", handle: "ada.example", displayName: "" }],
    ...more,
  })
  const since = (getLog: Handler, mark: string | undefined, atMost = 10, getProfile: Handler = refused) => {
    const { connection, sent } = connected({ getLog, getProfile })
    return Effect.map(Messages.since(connection, mark, atMost), ({ received, mark: next, more }) => ({
      texts: received.map(({ post }) => post.text),
      authors: [...new Set(received.map(({ post }) => post.author))],
      mark: next,
      more,
      asked: sent.filter(([name]) => name === "getLog").map(([, asked]) => asked.cursor),
    }))
  }

  it.effect("begin at the current position of the log", () =>
    Effect.gen(function* () {
      const got = yield* since(() => ({ logs: [entry(1)], cursor: "now" }), undefined)
      expect(got).toEqual({ texts: [], authors: [], mark: "now", more: false, asked: [undefined] })
    }),
  )

  it.effect("are those of others, up to the given number and at most five pages", () =>
    Effect.gen(function* () {
      const others = { $type: "chat.bsky.convo.defs#logReadMessage", rev: "r", convoId: "c" }
      const logs = [
        entry(1),
        others,
        entry(2, { message: message(2, did) }),
        entry(3, { message: { $type: "chat.bsky.convo.defs#deletedMessageView" } }),
        entry(4),
      ]
      const page: Handler = ({ cursor }) => (cursor === "a" ? { logs, cursor: "b" } : { logs: [], cursor: "b" })
      expect(yield* since(page, "a")).toEqual({
        texts: ["1", "4"],
        authors: ["ada.example"],
        mark: "b",
        more: false,
        asked: ["a", "b"],
      })
      // The rest is read at the next poll, from the last message on.
      expect(yield* since(page, "a", 1)).toEqual({
        texts: ["1"],
        authors: ["ada.example"],
        mark: "r1",
        more: true,
        asked: ["a"],
      })
      const endless: Handler = ({ cursor }) => ({ logs: [entry(Number(cursor))], cursor: String(Number(cursor) + 1) })
      const five = yield* since(endless, "0", 100)
      expect([five.texts, five.mark, five.more]).toEqual([["0", "1", "2", "3", "4"], "5", true])
      for (const cursor of ["a", undefined])
        expect(yield* since(() => ({ logs, cursor }), "a")).toMatchObject({ texts: ["1", "4"], mark: "a", more: false })
    }),
  )

  it.effect("name their sender, whose profile is read if the log does not contain it", () =>
    Effect.gen(function* () {
      const log: Handler = () => ({ logs: [entry(1, { relatedProfiles: undefined })], cursor: "a" })
      expect((yield* since(log, "a", 10, ({ actor }) => ({ did: actor, handle: "read.example" }))).authors).toEqual([
        "read.example",
      ])
      for (const failing of [refused, down])
        expect((yield* since(log, "a", 10, failing)).authors).toEqual(["did:plc:ada"])
    }),
  )

  const send = (recent: ReadonlyArray<object>, more: object = {}) => {
    const { connection, sent } = connected({
      getConvoForMembers: () => ({ convo: { id: "c", members: [] } }),
      getMessages: () => ({ messages: recent }),
      sendMessage: () => message(9, did),
    })
    const post = { text: "1", command: "018bcfe5-6800-7000-8000-000000000000", again: true, options: {}, ...more }
    const made = Messages.send(connection, "own.example", { to: "@did:plc:ada", replyTo: undefined, ...post })
    return Effect.map(made, ({ uri }) => ({ uri, last: sent.at(-1)! }))
  }

  it.effect("that were interrupted are found by sender, text and time, also after the clock was set back", () =>
    Effect.gen(function* () {
      const begun = 1_700_000_000_000
      const own = (millis: number, more: object = {}) => ({
        ...message(1, did),
        sentAt: new Date(begun + millis).toISOString(),
        ...more,
      })
      const found = (recent: object, again = true) =>
        Effect.map(send([recent], { again }), ({ uri }) => uri.split("/").at(-1))
      yield* TestClock.setTime(begun + 100_000)
      expect(yield* found(own(-60_000))).toBe("m1")
      for (const other of [own(-60_001), own(0, { sender: { did: "did:plc:ada" } }), own(0, { text: "2" })])
        expect(yield* found(other)).toBe("m9")
      expect(yield* found(own(0), false)).toBe("m9")
      // The id of the command contains a later time than the clock now shows.
      yield* TestClock.setTime(begun - 100_000)
      expect(yield* found(own(-160_000))).toBe("m1")
    }),
  )

  it.effect("answer a message of the same conversation only", () =>
    Effect.gen(function* () {
      const { last } = yield* send([], { replyTo: "chat.bsky.convo://c/m5" })
      expect(last).toEqual(["sendMessage", { convoId: "c", message: { text: "1", replyTo: { messageId: "m5" } } }])
      const other = yield* Effect.flip(send([], { replyTo: "chat.bsky.convo://d/m5" }))
      expect(other).toMatchObject({ _tag: "InputRefused", path: "/reply_to" })
    }),
  )
})
