/** Message search: queries, their results, and the equality of both search paths. */
import { ask } from "@svc/cluster/actor/Ask"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import * as SegmentBuilder from "@svc/cluster/mail/search/SegmentBuilder"
import { Writes } from "@svc/cluster/store/Database"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fold, searchText } from "@svc/domain/mail/SearchText"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { parse } from "@svc/domain/mail/SearchQuery"
import { expect, it as plain, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"

const makeMailbox = Effect.fnUntraced(function* (stem: string) {
  const org_id = yield* makeOrg
  const { actor, id } = yield* makeIdentity(org_id, newHandle(stem))
  /** Creates a message whose snippet is its name in the test, with this body. */
  const receive = Effect.fnUntraced(function* (snippet: string, text: string, part: Partial<ReceivedMail> = {}) {
    const mail = yield* receivedMail({ subject: snippet, snippet, ...part })
    const search_text = searchText(mail, [text])
    yield* ask(actor.ReceiveMail({ ...mail, content: { ...mail.content!, text, search_text } }))
    return mail
  })
  const queries = yield* MessageQueries
  const page = (query: string, limit = 50, cursor?: string) =>
    queries.list(id as IdentityId, { limit, offset: 0, query, ...(cursor === undefined ? {} : { cursor }) })
  const find = (query: string, filter: Partial<Parameters<typeof queries.list>[1]> = {}) =>
    Effect.map(queries.list(id as IdentityId, { limit: 50, offset: 0, query, ...filter }), ({ messages }) =>
      messages.map(({ snippet }) => snippet),
    )
  return { org_id, id: id as IdentityId, actor, receive, find, page, queries }
})

const attachment = (filename: string) => ({ index: 0, filename, content_type: "application/pdf", size: 1 })

layer(actors())("A search", (it) => {
  it.effect("matches every part of a message, ignoring case and accents, and requires all words", () =>
    Effect.gen(function* () {
      const { receive, find } = yield* makeMailbox("ada")
      yield* receive("one", "Die Größe des Übergangs,\nzwei Zeilen", {
        from: { address: "Zoë.Müller@Example.org", name: "Zoë Müller" },
      })
      yield* receive("two", "size of the passage", {
        to: [{ address: "ada+bills@mail.localhost", name: null }],
        cc: [{ address: "carl@example.org", name: "Carl Gauß" }],
        attachments: [attachment("Rechnung Nr. 17.pdf")],
      })
      yield* receive("Überraschung 100%_\\", "nothing")
      expect(yield* find("GROSSE")).toEqual(["one"])
      expect(yield* find("übergang groesse")).toEqual([])
      expect(yield* find("ubergang zeile")).toEqual(["one"])
      expect(yield* find('"übergangs, zwei"')).toEqual(["one"])
      expect(yield* find('"zwei übergangs"')).toEqual([])
      expect(yield* find("zoe")).toEqual(["one"])
      expect(yield* find("rechnung 17.pdf")).toEqual(["two"])
      expect(yield* find("from:muller")).toEqual(["one"])
      expect(yield* find("to:muller")).toEqual([])
      expect(yield* find("to:gauss subject:two")).toEqual(["two"])
      expect(yield* find("subject:passage")).toEqual([])
      expect(yield* find("subject:uberraschung")).toEqual(["Überraschung 100%_\\"])
      expect(yield* find('from:"zoe muller"')).toEqual(["one"])
      for (const wild of ["0%_", "%_\\", "_\\"]) expect(yield* find(wild), wild).toEqual(["Überraschung 100%_\\"])
      for (const wild of ["%", "_", "o_e", "%one%"]) expect((yield* find(wild)).includes("one"), wild).toBe(false)
      expect(yield* find("-passage")).toEqual(["Überraschung 100%_\\", "one"])
      expect(yield* find("size -passage")).toEqual([])
      expect(yield* find("")).toHaveLength(3)
    }),
  )

  it.effect("matches tags, labels, attachments, days and flags, and combines with filters", () =>
    Effect.gen(function* () {
      const { org_id, actor, receive, find } = yield* makeMailbox("grace")
      const at = (day: string) => ({ received_at: new Date(`${day}T12:00:00.000Z`) })
      const one = yield* receive("one", "a", {
        ...at("2026-01-10"),
        tag: "bills",
        from: { address: "A@x.org", name: null },
      })
      yield* receive("two", "a", {
        ...at("2026-01-11"),
        attachments: [attachment("x")],
        from: { address: "b@y.org", name: null },
      })
      yield* receive("three", "a", { ...at("2026-01-12"), from: { address: "a@x.org.evil.example", name: null } })
      const change = { flagged: true, seen: true, labels: ["work/a"] }
      yield* ask(actor.ChangeFlags({ org_id, message_ids: [one.message_id], change }))
      expect(yield* find("tag:Bills")).toEqual(["one"])
      expect(yield* find("label:WORK/A")).toEqual(["one"])
      expect(yield* find("-label:work/a")).toEqual(["three", "two"])
      expect(yield* find("has:attachment")).toEqual(["two"])
      expect(yield* find("-has:attachment")).toEqual(["three", "one"])
      expect(yield* find("before:2026-01-11")).toEqual(["one"])
      expect(yield* find("after:2026-01-11")).toEqual(["three", "two"])
      expect(yield* find("after:2026-01-11T12:00:01Z before:2026-01-13")).toEqual(["three"])
      expect(yield* find("is:unread")).toEqual(["three", "two"])
      expect(yield* find("is:flagged a")).toEqual(["one"])
      expect(yield* find("-is:flagged -is:answered")).toEqual(["three", "two"])
      expect(yield* find("", { seen: true })).toEqual(["one"])
      expect(yield* find("", { seen: false, flagged: false })).toEqual(["three", "two"])
      expect(yield* find("before:2026-01-11T12:00:00Z")).toEqual(["one"])
      expect(yield* find("after:2026-01-11T12:00:00Z")).toEqual(["three", "two"])
      expect(yield* find("", { label: "work/a" })).toEqual(["one"])
      expect(yield* find("", { tag: "Bills", label: "Work/A" })).toEqual(["one"])
      expect(yield* find("", { from: "a@X.org" })).toEqual(["one"])
      expect(yield* find("", { from: "@y.org" })).toEqual(["two"])
      expect(yield* find("a", { from: "@x.org" })).toEqual(["one"])
    }),
  )

  it.effect("reports a query that it cannot parse", () =>
    Effect.gen(function* () {
      const { find } = yield* makeMailbox("edsger")
      const problem = yield* Effect.flip(find('a "b'))
      expect(problem).toMatchObject({
        code: "invalid_request",
        detail: 'The query cannot be read: The quote in "b is not closed.',
        errors: [{ path: "/query" }],
      })
    }),
  )

  it.effect("finds the same by both search paths, page by page, and nothing of another Mailbox", () =>
    Effect.gen(function* () {
      const { id, page, queries } = yield* makeMailbox("barbara")
      const other = yield* makeMailbox("donald")
      const writes = yield* Writes
      // Every message has "common", one in ten "seldom", and two of the oldest "hapax".
      for (const [identity, count] of [
        [id, 1_500],
        [other.id, 300],
      ] as const) {
        yield* writes`with made as (
              insert into message (id, identity_id, uid, direction, thread_id, envelope_from, recipient, sha256, size, summary, received_at)
              select gen_random_uuid(), ${identity}::uuid, n, 'inbound', gen_random_uuid(), '', '', '', 1, jsonb_build_object(
                'from', null, 'to', '[]'::jsonb, 'cc', '[]'::jsonb, 'bcc', '[]'::jsonb, 'reply_to', '[]'::jsonb, 'subject', '',
                'snippet', n::text, 'attachments', '[]'::jsonb), now()
              from generate_series(1, ${count}::int) n returning id, uid
            )
            insert into message_content (message_id, identity_id, raw, headers, search_text, created_at)
            select id, ${identity}::uuid, '', '[]', concat_ws(chr(30), '', '', '', '', 'common'
              || case when uid % 10 = 0 then ' seldom' else '' end || case when uid in (3, 7) then ' hapax' else '' end
              || case when uid = 5 then ' жук' else '' end), now() from made`
        yield* writes`update mailbox set uid_next = ${count + 1}::int where identity_id = ${identity}`
      }
      const everything = (query: string, limit: number) =>
        Effect.gen(function* () {
          const found: Array<number> = []
          let cursor: string | undefined
          do {
            const { messages, next_cursor } = yield* page(query, limit, cursor)
            found.push(...messages.map(({ snippet }) => Number(snippet)))
            cursor = next_cursor ?? undefined
          } while (cursor !== undefined)
          return found
        })
      const tens = Array.from({ length: 150 }, (_, n) => 1_500 - 10 * n)
      const expectSameResults = Effect.gen(function* () {
        expect(yield* everything("hapax", 50)).toEqual([7, 3])
        expect(yield* everything("hapax", 1)).toEqual([7, 3])
        expect(yield* everything("seldom", 40)).toEqual(tens)
        expect(yield* everything("seldom -hapax common", 200)).toEqual(tens)
        expect(yield* everything("жук", 50)).toEqual([5])
        expect(yield* everything("ap", 50)).toEqual([7, 3])
        expect((yield* everything("common", 200)).length).toBe(1_500)
        const after = (yield* page("common", 1)).messages[0]!.id
        expect((yield* queries.list(id, { limit: 50, offset: 0, query: "hapax", after })).messages).toEqual([])
        expect(
          (yield* queries.list(id, { limit: 5, offset: 3, query: "seldom" })).messages.map(({ snippet }) => snippet),
        ).toEqual(["1470", "1460", "1450", "1440", "1430"])
      })
      yield* expectSameResults
      // Five segments of the one, and one of the other.
      expect(yield* SegmentBuilder.run).toBe(6)
      yield* expectSameResults
      // A term that does not occur requires a full scan.
      yield* writes`delete from search_segment where identity_id = ${id} and segment = 0`
      expect(yield* everything("hapax", 50)).toEqual([])
      yield* writes`insert into search_due (identity_id, segment, due_at) values (${id}, 0, now() + interval '1 hour')`
      yield* expectSameResults
      // A segment that is built leaves the other one due.
      yield* writes`insert into search_due (identity_id, segment, due_at) values (${id}, 1, now())`
      expect(yield* SegmentBuilder.run).toBe(1)
      expect(yield* everything("hapax", 50)).toEqual([7, 3])
    }),
  )
})

plain("a query is read as it is written", () => {
  const terms = (query: string) => Result.getOrThrow(parse(query))
  const text = (text: string, negated = false) => ({ kind: "text", in: "any", text, negated })
  expect(terms(' a  "b  C" -d -"e f" ')).toEqual([text("a"), text("b c"), text("d", true), text("e f", true)])
  expect(terms("12:30 https://x.org/a foo:bar a-b -")).toEqual([
    text("12:30"),
    text("https://x.org/a"),
    text("foo:bar"),
    text("a-b"),
  ])
  expect(terms("FROM:Ada -to:x")).toMatchObject([
    { in: "from", text: "ada", negated: false },
    { in: "to", text: "x", negated: true },
  ])
  expect(terms(`say"hello`)).toEqual([text(`say"hello`)])
  // Words with a name that no operator has, also not one that every object has.
  expect(terms('foo:"a B" constructor:x')).toEqual([text('foo:"a b"'), text("constructor:x")])
  expect(terms('tag:" Bills " label:Work/A HAS:Attachments -is:UNREAD before:2026-01-02')).toEqual([
    { kind: "tag", text: "bills", negated: false },
    { kind: "label", text: "work/a", negated: false },
    { kind: "attachment", negated: false },
    { kind: "seen", value: false, negated: true },
    { kind: "before", at: new Date("2026-01-02T00:00:00.000Z"), negated: false },
  ])
  const states = "unread unseen read seen flagged starred unflagged answered unanswered".split(" ")
  expect(states.flatMap((state) => terms(`is:${state}`)).map((term) => Object.values(term).join())).toEqual([
    "seen,false,false",
    "seen,false,false",
    "seen,true,false",
    "seen,true,false",
    "flagged,true,false",
    "flagged,true,false",
    "flagged,false,false",
    "answered,true,false",
    "answered,false,false",
  ])
  expect(terms("a ".repeat(20))).toHaveLength(20)
  const refused = [
    'a "b',
    "from:",
    "tag:",
    'label:" "',
    'subject:""',
    "has:money",
    "is:nice",
    "before:yesterday",
    "after:2026-02-30",
    "before:2026-1-1",
    '""',
    "a ".repeat(21),
    'from:"a',
    "is:constructor",
    "from:\u200b",
  ]
  for (const query of refused) expect(Result.isFailure(parse(query)), query).toBe(true)
})

plain("text is folded the same in what is stored and what is looked for", () => {
  expect(fold("  ÅÉ\u00a0ﬁ\tStraße\r\nŁódź ΆΛΦΑ Ёж İ \x1e x")).toBe("ae fi strasse lodz αλφα еж i x")
  expect(fold("한국어 ｶﾞ")).toBe("한국어 ガ")
  expect(fold("A".repeat(10))).toBe("aaaaaaaaaa")
})
