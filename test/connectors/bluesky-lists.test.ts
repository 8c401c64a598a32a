/** Notifications and direct messages on Bluesky at their edges: equal times, odd ids, and a chat that is refused. */
import { Resolver } from "node:dns/promises"
import * as Messages from "@svc/cluster/connectors/platforms/bluesky/Messages"
import * as Network from "@svc/cluster/connectors/platforms/bluesky/Network"
import * as Notifications from "@svc/cluster/connectors/platforms/bluesky/Notifications"
import {
  PlatformRateLimited,
  PlatformRefused,
  PlatformUnreachable,
  Unsupported,
} from "@svc/cluster/connectors/platforms/Failure"
import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()

/** A session with notes in memory. */
const sessionOf = (notes: Map<string, string>) =>
  ({
    notes: {
      read: (name: string) => Effect.sync(() => notes.get(name)),
      write: (name: string, value: string) => Effect.sync(() => void notes.set(name, value)),
    },
  }) as never

const notification = (key: string, second: number) => ({
  uri: `at://did:plc:grace/app.bsky.feed.post/${key}`,
  cid: "c",
  author: { did: "did:plc:grace", handle: "grace.example" },
  reason: "mention",
  record: { $type: "app.bsky.feed.post", text: key, createdAt: at(second) },
  indexedAt: at(second),
  isRead: false,
})

const convo = (id: string, message: string, second: number) => ({
  id,
  members: [{ did: "did:plc:grace", handle: "grace.example" }],
  lastMessage: {
    $type: "chat.bsky.convo.defs#messageView",
    id: message,
    rev: "r",
    text: message,
    sender: { did: "did:plc:grace" },
    sentAt: at(second),
  },
})

/** A connection to a server with these notifications and conversations, in pages of two. */
const connectionOf = (notifications: ReadonlyArray<object>, convos: ReadonlyArray<object>, refusal?: object) => {
  const asked: Array<string> = []
  const chatCall = (name: string, data: object) => async () => {
    asked.push(name)
    if (refusal !== undefined) throw refusal
    return { data }
  }
  const connection = {
    did: "did:plc:ada",
    agent: {
      app: {
        bsky: {
          notification: {
            listNotifications: async ({ cursor = "0" }: { readonly cursor?: string }) => {
              const from = Number(cursor)
              const some = notifications.slice(from, from + 2)
              return {
                data: { notifications: some, ...(from + 2 < notifications.length && { cursor: String(from + 2) }) },
              }
            },
          },
        },
      },
    },
    chat: {
      chat: {
        bsky: {
          convo: { listConvos: chatCall("list", { convos }), getLog: chatCall("log", { logs: [], cursor: "1" }) },
        },
      },
    },
    call: (run: () => Promise<unknown>) => Effect.tryPromise({ try: run, catch: (cause) => cause }),
    quietUntil: () => undefined,
  }
  return { connection: connection as never, asked }
}

describe("Notifications", () => {
  it("have every entry once, page by page, also if many are of the same time", async () => {
    const mentions = ["f", "e", "d", "c", "b", "a"].map((key, n) => notification(key, n < 1 ? 9 : 5))
    const convos = [convo("c1", "m1", 5), convo("c2", "m2", 5), convo("c3", "m3", 1)]
    for (const limit of [1, 2, 3, 20]) {
      const { connection } = connectionOf(mentions, convos)
      const texts: Array<string> = []
      let cursor: string | null | undefined
      while (cursor !== null) {
        const given = { limit, cursor }
        const page = await Effect.runPromise(Notifications.list(sessionOf(new Map()), connection, given))
        texts.push(...page.entries.map(({ post }) => post.text))
        cursor = page.cursor
        expect(texts.length).toBeLessThan(20)
      }
      expect(texts.toSorted(), String(limit)).toEqual(["a", "b", "c", "d", "e", "f", "m1", "m2", "m3"])
      expect([texts[0], texts.at(-1)]).toEqual(["f", "m3"])
    }
  })

  it("are reported from the first poll on, also if a server returns likes before them", async () => {
    const like = (key: string, second: number) => ({ ...notification(key, second), reason: "like" })
    const before = [like("l2", 9), like("l1", 8), notification("old", 5)]
    const poll = (notifications: ReadonlyArray<object>, mark?: string) =>
      Effect.runPromise(
        Notifications.poll(sessionOf(new Map([["dm", "false"]])), connectionOf(notifications, []).connection, mark),
      )
    const first = await poll(before)
    expect(first.received).toEqual([])
    const second = await poll([notification("new", 10), ...before], first.mark)
    expect(second.received.map(({ post }) => post.text)).toEqual(["new"])
    expect((await poll([notification("new", 10), ...before], second.mark)).received).toEqual([])
  })

  it("end at an empty page, whatever cursor it has", async () => {
    let asked = 0
    const listNotifications = async () => ({
      data: { notifications: ++asked === 1 ? [notification("a", 5)] : [], cursor: String(asked) },
    })
    const connection = {
      ...(connectionOf([], []).connection as object),
      agent: { app: { bsky: { notification: { listNotifications } } } },
    } as never
    const given = { limit: 20, cursor: undefined }
    const page = await Effect.runPromise(Notifications.list(sessionOf(new Map()), connection, given))
    expect([page.entries.length, page.cursor, asked]).toEqual([1, null, 2])
  })

  const message = { message: "no" }
  it.each([
    ["is not known", undefined, undefined, true, undefined],
    ["may send messages", "true", undefined, true, "true"],
    ["may not send messages", "false", undefined, false, "false"],
    ["may not any more", "true", new Unsupported(message), true, "false"],
    ["may, but the chat refuses", "true", new PlatformRefused(message), true, "true"],
    ["may, but the chat is down", "true", new PlatformUnreachable(message), true, "true"],
    ["may, but the chat is busy", undefined, new PlatformRateLimited({ ...message, until: null }), true, undefined],
  ])(
    "ask the chat only if the account may use it, and remember that it may not: %s",
    async (_, note, refusal, asks, then) => {
      for (const read of ["list", "poll"] as const) {
        const notes = new Map(note === undefined ? [] : [["dm", note]])
        const { connection, asked } = connectionOf([notification("a", 5)], [convo("c1", "m1", 4)], refusal)
        const work =
          read === "list"
            ? Effect.map(
                Notifications.list(sessionOf(notes), connection, { limit: 20, cursor: undefined }),
                ({ entries }) => entries.length,
              )
            : Effect.as(Notifications.poll(sessionOf(notes), connection, undefined), undefined)
        const count = await Effect.runPromise(work as Effect.Effect<number | undefined>)
        expect([asked.length > 0, notes.get("dm")], read).toEqual([asks, then])
        if (read === "list") expect(count).toBe(asks && refusal === undefined ? 2 : 1)
      }
    },
  )
})

describe("The URI of a direct message", () => {
  it("names a conversation and a message whatever their ids contain", async () => {
    const asked: Array<object> = []
    const [one] = await Effect.runPromise(Messages.received(connectionOf([], [convo("a/b %c~", "m/1", 1)]).connection))
    expect(Messages.isMessage(one!.key)).toBe(true)
    const bsky = {
      convo: {
        getMessages: async (given: object) => {
          asked.push(given)
          return { data: { messages: [] } }
        },
        getConvo: async (given: object) => {
          asked.push(given)
          return { data: { convo: convo("a/b %c~", "m/1", 1) } }
        },
      },
    }
    const connection = { ...(connectionOf([], []).connection as object), chat: { chat: { bsky } } } as never
    await Effect.runPromise(Messages.conversation(connection, "ada", one!.key))
    expect(asked.map((given) => (given as { convoId: string }).convoId)).toEqual(["a/b %c~", "a/b %c~"])
    for (const uri of ["chat.bsky.convo://a", "chat.bsky.convo://a/b/c", "chat.bsky.convo://%/b", "at://a/b"])
      expect(await Effect.runPromise(Effect.flip(Messages.conversation(connection, "ada", uri)))).toMatchObject({
        path: "/uri",
      })
  })
})

it("A handle whose DNS record consists of several strings is resolved", async () => {
  const resolveTxt = vi
    .spyOn(Resolver.prototype, "resolveTxt")
    .mockResolvedValue([["did=did:plc:", "abcdefghijklmnopqrstuvwx"]])
  try {
    expect(await Network.resolveTxt("_atproto.ada.example")).toEqual(["did=did:plc:abcdefghijklmnopqrstuvwx"])
    resolveTxt.mockRejectedValue(new Error("ENOTFOUND"))
    expect(await Network.resolveTxt("_atproto.ada.example")).toBeNull()
  } finally {
    resolveTxt.mockRestore()
  }
})
