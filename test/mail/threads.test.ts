/** Threads of messages, and the list of conversations. */
import { ask } from "@svc/cluster/actor/Ask"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { ThreadQueries } from "@svc/cluster/mail/ThreadQueries"
import { fromPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import * as Subject from "@svc/domain/mail/Subject"
import { expect, it as plain, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { rows } from "../harness/Stores.ts"

const grace = { address: "grace@example.org", name: "Grace" }
const edsger = { address: "edsger@example.org", name: null }
const ada = { address: "ada@mail.localhost", name: null }

const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const handle = newHandle(stem)
  const { actor, id } = yield* makeIdentity(org_id, handle)
  const receive = (part: Partial<ReceivedMail>) =>
    Effect.gen(function* () {
      const mail = yield* receivedMail(part)
      yield* ask(actor.ReceiveMail(mail))
      const [stored] = yield* rows(
        (sql) => sql<{ thread_id: string }>`select thread_id from message where id = ${mail.message_id}`,
      )
      return { ...mail, thread: stored!.thread_id }
    })
  const queries = yield* ThreadQueries
  const list = (limit = 50, cursor?: string) => queries.list(id as IdentityId, { limit, cursor })
  const read = (thread: string, limit = 50, cursor?: string) =>
    queries.read(id as IdentityId, thread, { limit, cursor })
  return { org_id, id: id as IdentityId, actor, receive, list, read }
})

layer(actors())("Messages form one conversation", (it) => {
  it.effect("if one replies to another, or both reply to a missing one", () =>
    Effect.gen(function* () {
      const { receive } = yield* makeMailbox("ada")
      const first = yield* receive({ message_id_header: "<1@x>", subject: "a" })
      const second = yield* receive({ message_id_header: "<2@x>", subject: "b", references: ["<1@x>"] })
      const third = yield* receive({ message_id_header: "<3@x>", subject: "c", in_reply_to: "<2@x>" })
      expect([second.thread, third.thread]).toEqual([first.thread, first.thread])
      const leftReply = yield* receive({ message_id_header: "<8@x>", subject: "d", references: ["<7@x>"] })
      const right = yield* receive({ message_id_header: "<9@x>", subject: "e", in_reply_to: "<7@x>" })
      expect(leftReply.thread).not.toBe(first.thread)
      expect(right.thread).toBe(leftReply.thread)
      // The parent arrives after its replies.
      expect((yield* receive({ message_id_header: "<7@x>", subject: "f" })).thread).toBe(leftReply.thread)
      expect((yield* receive({ message_id_header: "<10@x>", subject: "g" })).thread).not.toBe(leftReply.thread)
    }),
  )

  it.effect("with the newest of several conversations that they refer to", () =>
    Effect.gen(function* () {
      const { org_id, actor, id, receive } = yield* makeMailbox("newest")
      yield* receive({ message_id_header: "<a@n>", subject: "a" })
      const newer = yield* receive({ message_id_header: "<b@n>", subject: "b" })
      for (const references of [
        ["<a@n>", "<b@n>"],
        ["<b@n>", "<a@n>"],
      ]) {
        expect((yield* receive({ subject: "c", references })).thread).toBe(newer.thread)
        const mail = yield* receivedMail({ subject: "c", references })
        yield* ask(actor.AppendMail({ org_id, folder: "INBOX", mail, change: {} }))
        const [last] = yield* rows(
          (sql) => sql<{ thread_id: string }>`
            select thread_id from message where identity_id = ${id} order by uid desc limit 1`,
        )
        expect(last!.thread_id).toBe(newer.thread)
      }
      // The same for references to messages that never arrived.
      yield* receive({ subject: "d", references: ["<x@n>"] })
      yield* TestClock.adjust("1 minute")
      const later = yield* receive({ subject: "e", references: ["<y@n>"] })
      for (const references of [
        ["<x@n>", "<y@n>"],
        ["<y@n>", "<x@n>"],
      ]) {
        expect((yield* receive({ subject: "f", references })).thread).toBe(later.thread)
      }
      // Those who referred to the message itself come first.
      const asked = yield* receive({ subject: "g", references: ["<own@n>"] })
      yield* TestClock.adjust("1 minute")
      yield* receive({ subject: "h", references: ["<z@n>"] })
      const own = yield* receive({ message_id_header: "<own@n>", subject: "i", references: ["<z@n>"] })
      expect(own.thread).toBe(asked.thread)
    }),
  )

  it.effect("even if they arrive at the same time", () =>
    Effect.gen(function* () {
      const { id, actor } = yield* makeMailbox("linus")
      const mails = [
        yield* receivedMail({ message_id_header: "<5@x>", subject: "x", references: ["<4@x>"] }),
        yield* receivedMail({ message_id_header: "<6@x>", subject: "y", references: ["<4@x>"] }),
        yield* receivedMail({ message_id_header: "<4@x>", subject: "z" }),
        yield* receivedMail({ subject: "Plans", from: grace }),
        yield* receivedMail({ subject: "Re: Plans", from: grace }),
      ]
      yield* Effect.all(
        mails.map((mail) => ask(actor.ReceiveMail(mail))),
        { concurrency: "unbounded" },
      )
      const found = yield* rows(
        (sql) =>
          sql<{
            n: number
          }>`select count(*)::int as n from message where identity_id = ${id} group by thread_id order by n`,
      )
      expect(found).toEqual([{ n: 2 }, { n: 3 }])
    }),
  )

  it.effect("by the first and the nine last of the references of a message whose others are missing", () =>
    Effect.gen(function* () {
      const { receive } = yield* makeMailbox("many")
      const references = Array.from({ length: 12 }, (_, n) => `<${n + 1}@m>`)
      const { thread } = yield* receive({ subject: "a", references })
      const joined: Array<number> = []
      for (let n = 1; n <= 12; n++) {
        if ((yield* receive({ subject: `b${n}`, in_reply_to: `<${n}@m>` })).thread === thread) joined.push(n)
      }
      expect(joined).toEqual([1, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    }),
  )

  it.effect("with truncated references, by subject and a common participant, for 30 days", () =>
    Effect.gen(function* () {
      const { receive } = yield* makeMailbox("grace")
      const base = { from: grace, to: [ada, edsger] }
      const first = yield* receive({ ...base, subject: "Thursday's  plan" })
      expect((yield* receive({ from: edsger, subject: "AW: Re: thursday's plan" })).thread).toBe(first.thread)
      // The same subject starts a new conversation if it is not a reply.
      expect((yield* receive({ ...base, subject: "Thursday's plan" })).thread).not.toBe(first.thread)
      const stranger = { address: "mallory@example.org", name: "Grace" }
      const alone = yield* receive({ from: stranger, subject: "Re: Thursday's plan" })
      expect(alone.thread).toBe(alone.message_id)
      const forged = { verdict: "failed", spf: "fail", dkim: "none", dmarc: "fail", domain: "example.org" } as const
      const failed = yield* receive({ from: edsger, subject: "Re: Thursday's plan", origin: forged })
      expect(failed.thread).toBe(failed.message_id)
      const copied = yield* receive({ from: grace, to: [ada], cc: [edsger], subject: "Dinner" })
      expect((yield* receive({ from: edsger, subject: "Re: Dinner" })).thread).toBe(copied.thread)
      const other = yield* receive({ from: grace, subject: "Lunch" })
      yield* TestClock.adjust("29 days")
      expect((yield* receive({ from: grace, subject: "Fwd: Lunch" })).thread).toBe(other.thread)
      yield* TestClock.adjust("31 days")
      expect((yield* receive({ from: grace, subject: "Re: Lunch" })).thread).not.toBe(other.thread)
    }),
  )

  it.effect("only within their own Mailbox", () =>
    Effect.gen(function* () {
      const one = yield* makeMailbox("barbara")
      const two = yield* makeMailbox("donald")
      const first = yield* one.receive({ message_id_header: "<1@y>", subject: "Thursday", from: grace })
      const answer = { references: ["<1@y>"], subject: "Re: Thursday", from: grace }
      expect((yield* two.receive(answer)).thread).not.toBe(first.thread)
      expect((yield* one.receive(answer)).thread).toBe(first.thread)
    }),
  )
})

layer(actors())("The list of conversations", (it) => {
  it.effect("starts with the newest message, and shows participants and unread messages", () =>
    Effect.gen(function* () {
      const { org_id, actor, receive, list, read } = yield* makeMailbox("ada")
      const first = yield* receive({
        from: grace,
        to: [ada],
        subject: "Re: One",
        snippet: "a",
        message_id_header: "<1@z>",
      })
      // A message without a From field.
      yield* receive({ from: null, to: [ada], subject: "Two", snippet: "b" })
      yield* receive({ from: edsger, to: [ada, grace], subject: "AW: One", snippet: "c", references: ["<1@z>"] })
      const { entries } = yield* list()
      expect(entries).toMatchObject([
        { subject: "One", messages: 2, unread: 2, snippet: "c", participants: [grace, ada, edsger] },
        { subject: "Two", messages: 1, unread: 1, snippet: "b", participants: [ada] },
      ])
      const change = { message_ids: [first.message_id], change: { seen: true } }
      yield* ask(actor.ChangeFlags({ org_id, ...change }))
      yield* ask(actor.ChangeFlags({ org_id, ...change }))
      expect((yield* list()).entries).toMatchObject([{ unread: 1 }, { unread: 1 }])
      const { messages } = yield* read(entries[0]!.id)
      expect(messages.map(({ snippet, seen, text_reply }) => [snippet, seen, text_reply])).toEqual([
        ["a", true, "hello"],
        ["c", false, "hello"],
      ])
      expect((yield* Effect.flip(read(entries[0]!.id.replace(/.$/, (last) => (last === "0" ? "1" : "0"))))).code).toBe(
        "not_found",
      )
    }),
  )

  it.effect("omits what is removed, and falls back to the message before", () =>
    Effect.gen(function* () {
      const { org_id, actor, receive, list } = yield* makeMailbox("grace")
      const first = yield* receive({ subject: "One", snippet: "a", message_id_header: "<1@z>" })
      yield* receive({ subject: "Two", snippet: "b" })
      const last = yield* receive({ subject: "Re: One", snippet: "c", references: ["<1@z>"] })
      yield* ask(actor.RemoveMessage({ org_id, message_id: last.message_id }))
      expect((yield* list()).entries).toMatchObject([{ snippet: "b" }, { snippet: "a", messages: 1, unread: 1 }])
      yield* ask(actor.RemoveMessage({ org_id, message_id: first.message_id }))
      expect((yield* list()).entries).toMatchObject([{ snippet: "b" }])
    }),
  )

  it.effect("is paged, and so are the messages of a conversation", () =>
    Effect.gen(function* () {
      const { receive, list, read, id } = yield* makeMailbox("edsger")
      for (let n = 1; n <= 5; n++) yield* receive({ subject: `s${n}`, message_id_header: `<${n}@p>` })
      for (let n = 6; n <= 9; n++) yield* receive({ subject: `s${n}`, references: ["<3@p>"], snippet: `m${n}` })
      const seen: Array<string> = []
      let cursor: string | undefined
      do {
        const page = yield* list(2, cursor)
        seen.push(...page.entries.map(({ subject }) => subject))
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(seen).toEqual(["s9", "s5", "s4", "s2", "s1"])
      const thread = (yield* list(1)).entries[0]!.id
      const one = yield* read(thread, 3)
      expect(one.messages).toHaveLength(3)
      const two = yield* read(thread, 3, one.next_cursor!)
      expect([...one.messages, ...two.messages].map(({ subject }) => subject)).toEqual(["s3", "s6", "s7", "s8", "s9"])
      expect(two.next_cursor).toBe(null)
      const queries = yield* MessageQueries
      const listed = yield* queries.list(id, { limit: 50, offset: 0, thread_id: thread })
      expect(listed.messages).toHaveLength(5)
      expect(fromPublic("thr_", thread)).toBeDefined()
      expect((yield* Effect.flip(list(2, one.next_cursor!))).code).toBe("invalid_cursor")
    }),
  )
})

plain("a subject is read without what mail programs put in front of it", () => {
  const prefixed = [
    "Re: a b",
    "RE: AW: a b",
    "Re[2]: a  B",
    "Fwd: a b",
    "WG: A b",
    "Sv: a b",
    "Odp.: a b",
    "回复：a b",
    "R: I: a b",
    "[list] Re: a b",
    "Re: [list] a b",
    "Antw: a b",
    "VS: a b",
    "a b (fwd)",
    "Re: a b (fwd) (FWD) ",
    "Отв: a b",
  ]
  for (const subject of prefixed) expect(Subject.read(subject), subject).toMatchObject({ key: "a b", continues: true })
  for (const subject of ["a b", " A  b ", "[list] a b", "\uff21 b"]) {
    expect(Subject.read(subject), subject).toMatchObject({ key: "a b", continues: false })
  }
  expect(Subject.read("Re: ")).toEqual({ base: "", continues: true, key: null })
  expect(Subject.read("Report: a b")).toMatchObject({ base: "Report: a b", continues: false })
  expect(Subject.read("[x]")).toMatchObject({ base: "[x]", key: "[x]" })
  expect(Subject.read(`${"x".repeat(199)} y`).key).toBe("x".repeat(199))
  expect(Subject.read("re: ".repeat(100_000)).key?.length ?? 0).toBeLessThanOrEqual(200)
})
