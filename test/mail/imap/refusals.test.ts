/**
 * Responses of IMAP commands when the store rejects them, is unavailable or fails: the response code, and whether the
 * session continues.
 */
import { Unavailable } from "@svc/domain/problems/Problem"
import { Refused, type Store } from "@svc/mail-gateway/mail/imap/session/Store"
import { Effect, Stream } from "effect"
import { expect, it } from "vitest"
import * as MemoryStore from "./MemoryStore.ts"
import { append, login, open } from "./Sessions.ts"

const streams = new Set(["marked", "stored", "detailed", "bytes"])

/** A store that works until `fails` is set and then always fails. */
const failing = () => {
  const store = MemoryStore.make()
  const state: { fails: Effect.Effect<never, Unavailable | Refused> | undefined } = { fails: undefined }
  const proxy = new Proxy(store, {
    get: (target, name: keyof Store) => {
      const { fails } = state
      if (fails === undefined || name === "watch") return target[name]
      if (streams.has(name)) return () => Stream.fromEffect(fails)
      return typeof target[name] === "function" ? () => fails : fails
    },
  })
  return { store: proxy, state }
}

const commands = [
  "SELECT Sent",
  "EXAMINE Sent",
  "STATUS INBOX (MESSAGES)",
  'LIST "" "*"',
  "CREATE more",
  "DELETE Trash",
  "RENAME Trash more",
  "SUBSCRIBE Trash",
  'GETQUOTA ""',
  "SEARCH SUBJECT hello",
  "SORT (SUBJECT) UTF-8 ALL",
  "FETCH 1 (FLAGS)",
  "STORE 1 +FLAGS (\\Seen)",
  "COPY 1 Trash",
  "MOVE 1 Trash",
  "EXPUNGE",
  "APPEND INBOX {4+}\r\nx: y",
]

const completions = async (fails: Effect.Effect<never, Unavailable | Refused>) => {
  const found: Record<string, string> = {}
  for (const command of commands) {
    const { store, state } = failing()
    const session = await open({ store })
    await session.feed(Buffer.from(`${login}${append("b")}c SELECT INBOX\r\n`))
    state.fails = fails
    session.forget()
    await session.feed(Buffer.from(`d ${command}\r\n`))
    found[command] = /^d (.*)$/m.exec(session.said().replaceAll("\r", ""))?.[1] ?? session.said()
    state.fails = undefined
    session.forget()
    await session.feed(Buffer.from("e NOOP\r\n"))
    expect(session.said(), command).toMatch(/e OK/)
  }
  return found
}

it("every command reports an unavailable store, and the session continues", async () => {
  const unavailable = Effect.fail(new Unavailable({ detail: "away", retry_after_seconds: 1 }))
  for (const [command, completion] of Object.entries(await completions(unavailable))) {
    expect(completion, command).toMatch(/^NO \[UNAVAILABLE\] /)
  }
})

it("every command reports an internal error, and the session continues", async () => {
  for (const [command, completion] of Object.entries(await completions(Effect.die(new Error("broken"))))) {
    expect(completion, command).toMatch(/^NO \[SERVERBUG\] /)
  }
})

it.each(["OVERQUOTA", "NONEXISTENT", "TRYCREATE", "ALREADYEXISTS", "LIMIT"])(
  "a rejection by the store is reported with its code %s",
  async (code) => {
    const refused = Effect.fail(new Refused({ code: code as never, message: "No." }))
    for (const [command, completion] of Object.entries(await completions(refused))) {
      expect(completion, command).toBe(`NO [${code}] No.`)
    }
  },
)
