/** Segments of a Mailbox's search: they find what looking at each message finds, and keep nothing of what is gone. */
import { ask } from "@svc/cluster/actor/Ask"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import * as FreshTexts from "@svc/cluster/mail/search/FreshTexts"
import * as Grams from "@svc/cluster/mail/search/Grams"
import * as Postings from "@svc/cluster/mail/search/Postings"
import * as Segmenting from "@svc/cluster/mail/search/Segmenting"
import * as Segments from "@svc/cluster/mail/search/Segments"
import { Reads, Writes } from "@svc/cluster/store/Database"
import * as Candidates from "@svc/mail-gateway/mail/imap/store/Candidates"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fold } from "@svc/domain/mail/SearchText"
import { describe, expect, it as plain, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"

/** The same numbers at every run. */
const drawn = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const alphabet = [..."abcd .жук日本é", "😀", "\u{10ffff}"]
const written = (draw: (below: number) => number, length: number) =>
  fold(Array.from({ length }, () => alphabet[draw(alphabet.length)]).join(""))

/** Places that may have what is wanted, as one segment of these texts tells, and how large its buckets are. */
const segment = (texts: ReadonlyArray<string>) => {
  const postings = Postings.make()
  for (const [place, text] of texts.entries()) postings.add(place, text)
  const buckets = new Map([...postings.buckets()].map(({ bucket, entries }) => [bucket, entries]))
  const told = (part: string) => {
    const found = Postings.everywhere()
    for (const one of Grams.wanted([part])) {
      const entries = buckets.get(one.bucket)
      if (entries === undefined) return []
      Postings.narrow(found, entries, one)
    }
    return Postings.placesOf(found).filter((place) => place < texts.length)
  }
  return { told, sizes: [...buckets.values()].map(({ length }) => length) }
}

const having = (texts: ReadonlyArray<string>, part: string) =>
  texts.flatMap((text, place) => (text.includes(part) ? [place] : [])).toReversed()

describe("a segment", () => {
  plain("leaves out no text that has what is looked for, from two characters on, at its end too", () => {
    const draw = drawn(1)
    for (let round = 0; round < 3; round++) {
      const texts = Array.from({ length: Postings.places }, () => written(draw, 2 + draw(120)))
      const { told } = segment(texts)
      for (let n = 0; n < 40; n++) {
        const text = [...texts[draw(texts.length)]!]
        const length = 2 + draw(8)
        const from = n % 3 === 0 ? Math.max(0, text.length - length) : draw(text.length)
        const part = text.slice(from, from + length).join("")
        expect(Grams.wanted([part]).length > 0, JSON.stringify(part)).toBe(part.length > 1)
        const found = new Set(told(part))
        expect(
          having(texts, part).filter((place) => !found.has(place)),
          JSON.stringify(part),
        ).toEqual([])
      }
    }
  })

  plain("of a text that goes in piece by piece is the same", () => {
    const text = written(drawn(5), 1_000)
    const bucketsOf = (pieces: number) => {
      const postings = Postings.make()
      for (let at = 0; at < text.length; at += pieces) postings.add(7, text, at, at + pieces)
      return [...postings.buckets()].map(({ bucket, entries }) => [bucket, [...entries].toSorted()])
    }
    const whole = bucketsOf(text.length)
    for (const pieces of [1, 2, 3, 64, 999]) expect(bucketsOf(pieces), `${pieces}`).toEqual(whole)
  })

  plain("has nothing of the one that was made before it", () => {
    const draw = drawn(6)
    const [one, other] = [written(draw, 400), written(draw, 400)]
    const postings = Postings.make()
    const bucketsOf = (place: number, text: string) => {
      postings.clear()
      postings.add(place, text)
      return [...postings.buckets()]
    }
    const first = bucketsOf(3, one)
    expect(bucketsOf(9, other)).not.toEqual(first)
    expect(bucketsOf(3, one)).toEqual(first)
  })

  plain("tells exactly who has two or three characters of ASCII", () => {
    const draw = drawn(2)
    const texts = Array.from({ length: Postings.places }, () =>
      Array.from({ length: draw(60) }, () => String.fromCharCode(97 + draw(20))).join(""),
    )
    for (const part of ["ab", "qr", "xyz", "abc", "kml", "tss", "gh"]) {
      expect(segment(texts).told(part), part).toEqual(having(texts, part))
    }
  })

  plain("of texts that have too many grams says less, and never too little", () => {
    const draw = drawn(3)
    const texts = Array.from({ length: 3 }, () =>
      Array.from({ length: 150_000 }, () => String.fromCharCode(32 + draw(0xa000))).join(""),
    )
    const { told, sizes } = segment(texts)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(32 * 1024)
    expect(sizes).toContain(0)
    for (const [place, text] of texts.entries()) {
      expect(told(text.slice(149_000, 149_008))).toContain(place)
    }
  })
})

describe("texts of messages that were just stored", () => {
  plain("are kept up to so many characters, the newest of them, and none that is large", () => {
    const fresh = FreshTexts.make({ inAll: 10, inOne: 6 })
    for (const [id, text] of Object.entries({ a: "1234", b: "1234567", c: "12\ud8004", d: "123" })) fresh.keep(id, text)
    expect(["a", "b", "c", "d"].map(fresh.take)).toEqual([undefined, undefined, "12\ufffd4", "123"])
    expect(fresh.take("d")).toBeUndefined()
    for (const text of ["123456", "1234"]) fresh.keep("e", text)
    fresh.keep("f", "123456")
    expect(["e", "f"].map(fresh.take)).toEqual(["1234", "123456"])
  })
})

describe("the spans of a Mailbox", () => {
  plain("are what has segments and what has none, newest first, without a gap", () => {
    const spans = (low: number, high: number) =>
      [...Segments.spans({ complete: 4, missing: new Set([2]) }, low, high)].map(({ first, last, isBuilt }) => [
        first,
        last,
        isBuilt,
      ])
    expect(spans(0, 1_100)).toEqual([
      [1_025, 1_099, false],
      [769, 1_024, true],
      [513, 768, false],
      [1, 512, true],
    ])
    expect(spans(0, 0x7fffffff)[0]).toEqual([1_025, 0x7ffffffe, false])
    expect(spans(300, 310)).toEqual([[301, 309, true]])
    expect(spans(511, 514)).toEqual([
      [513, 513, false],
      [512, 512, true],
    ])
    expect(spans(7, 8)).toEqual([])
  })
})

layer(actors(), { timeout: "60 seconds" })("a Mailbox of several segments", (it) => {
  const letters = Effect.fnUntraced(function* (identity: string, texts: ReadonlyArray<string>) {
    const sql = yield* Writes
    yield* sql`
      with made as (
        insert into message (id, identity_id, uid, direction, thread_id, envelope_from, recipient, sha256, size, summary, received_at)
        select gen_random_uuid(), ${identity}::uuid, n, 'inbound', gen_random_uuid(), '', '', '', 1, jsonb_build_object(
          'from', null, 'to', '[]'::jsonb, 'cc', '[]'::jsonb, 'bcc', '[]'::jsonb, 'reply_to', '[]'::jsonb, 'subject', '',
          'snippet', n::text, 'attachments', '[]'::jsonb), now()
        from generate_series(1, ${texts.length}::int) n returning id, uid
      ),
      box as (update mailbox set uid_next = ${texts.length + 1}::int where identity_id = ${identity})
      insert into message_content (message_id, identity_id, raw, headers, search_text, created_at)
      select id, ${identity}::uuid, '', '[]', (${texts}::text[])[uid], now() from made`
  })
  const reader = (id: IdentityId) =>
    Effect.map(MessageQueries, (queries) =>
      Effect.fnUntraced(function* (query: string, limit: number) {
        const found: Array<number> = []
        let cursor: string | undefined
        do {
          const page = yield* queries.list(id, {
            limit,
            offset: 0,
            query,
            ...(cursor === undefined ? {} : { cursor }),
          })
          found.push(...page.messages.map(({ snippet }) => Number(snippet)))
          cursor = page.next_cursor ?? undefined
        } while (cursor !== undefined)
        return found
      }),
    )

  it.effect(
    "is searched as if each message was looked at, whatever has segments",
    () =>
      Effect.gen(function* () {
        const sql = yield* Writes
        const identity = yield* makeIdentity(yield* makeOrg, "ada")
        const draw = drawn(4)
        // Words of which the n-th is as seldom as it is late.
        const words = Array.from({ length: 300 }, () => written(draw, 3 + draw(9)).replaceAll(" ", "") || "x")
        const word = () => words[Math.floor(words.length ** (draw(1_000) / 1_000))]!
        const texts = Array.from({ length: 600 }, () =>
          ["a@x.org", "", "", "", Array.from({ length: 12 }, word).join(" ")].join("\x1e"),
        )
        yield* letters(identity.id, texts)
        const all = yield* reader(identity.id as IdentityId)
        const gone = new Set<number>()
        const naive = (...parts: ReadonlyArray<string>) =>
          having(texts, "")
            .filter((place) => !gone.has(place + 1) && parts.every((part) => texts[place]!.includes(part)))
            .map((place) => place + 1)
        const look = Effect.gen(function* () {
          for (let n = 0; n < 8; n++) {
            const [one, other] = [word(), word()]
            const part = [...one].slice(draw(2), 2 + draw(4)).join("")
            expect(yield* all(`"${one}"`, 20 + draw(60)), one).toEqual(naive(one))
            if (part !== "") expect(yield* all(`"${part}"`, 50), part).toEqual(naive(part))
            expect(yield* all(`"${one}" "${other}"`, 20), `${one} ${other}`).toEqual(naive(one, other))
            expect(yield* all(`"${one}" -"${other}"`, 50), `${one} -${other}`).toEqual(
              naive(one).filter((uid) => !texts[uid - 1]!.includes(other)),
            )
          }
        })
        yield* look
        expect(yield* Segmenting.run).toBe(2)
        yield* look
        // As mail programs are told.
        const searched = words.slice(0, 20).filter((text) => text.length > 1)
        const mayHave = yield* Candidates.make(yield* Reads)(identity.id, searched)
        for (const text of searched) {
          const rows = yield* sql<{ uid: number }>`
            select m.uid from message m join message_content c on c.message_id = m.id
            where m.identity_id = ${identity.id} and ${mayHave(text)!} and strpos(c.search_text, ${text}::text) > 0 order by m.uid desc`
          expect(
            rows.map(({ uid }) => uid),
            text,
          ).toEqual(naive(text))
        }
        expect(mayHave("never asked")).toBeUndefined()
        // Again without one of them, and with messages that went.
        yield* sql`delete from search_segment where identity_id = ${identity.id} and segment = 1`
        yield* sql`insert into search_due (identity_id, segment, due_at) values (${identity.id}, 1, now() + interval '1 hour')`
        for (const uid of [3, 255, 256, 257, 500, 600]) gone.add(uid)
        yield* sql`delete from message where identity_id = ${identity.id} and uid = any(${[...gone]}::int[])`
        yield* look
        yield* sql`update search_due set due_at = now() where identity_id = ${identity.id}`
        expect(yield* Segmenting.run).toBe(2)
        yield* look
      }),
    { timeout: 120_000 },
  )

  it.effect("has each segment once its last UID is given, and nothing of what was removed", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const org_id = yield* makeOrg
      const { actor, id } = yield* makeIdentity(org_id, "grace")
      const due = sql<{ segment: number; built: boolean; later: boolean }>`
        select segment, built, due_at > now() as later from search_due where identity_id = ${id} order by segment`
      const held = Segments.make(sql).candidates(id, Grams.wanted(["hapax"]), 1, 256)
      yield* letters(
        id,
        Array.from({ length: 256 }, (_, n) => (n === 9 ? "hapax" : "common")),
      )
      expect(yield* due).toEqual([{ segment: 0, built: false, later: false }])
      yield* Segmenting.run
      expect(yield* due).toEqual([])
      expect(yield* held).toEqual([10])
      const [message] = yield* sql<{ id: string }>`select id from message where identity_id = ${id} and uid = 10`
      yield* ask(actor.RemoveMessages({ org_id, message_ids: [message!.id] }))
      expect(yield* due).toEqual([{ segment: 0, built: true, later: true }])
      // Not due yet, so what was made is searched on.
      yield* Segmenting.run
      expect(yield* held).toEqual([10])
      yield* sql`update search_due set due_at = now() where identity_id = ${id}`
      yield* Segmenting.run
      expect(yield* due).toEqual([])
      expect(yield* held).toEqual([])
      // The last ones of it: no bucket is left.
      yield* sql`delete from message where identity_id = ${id}`
      yield* sql`update search_due set due_at = now() where identity_id = ${id}`
      yield* Segmenting.run
      const [rows] = yield* sql<{ n: number }>`select count(*)::int as n from search_segment where identity_id = ${id}`
      expect(rows!.n).toBe(0)
    }),
  )

  it.effect("is made of what is kept in memory, and of what is read where that is not there", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, "edsger")
      yield* letters(
        id,
        Array.from({ length: 256 }, (_, n) => (n === 10 ? "legomenon" : "common")),
      )
      const [kept] = yield* sql<{ id: string }>`select id from message where identity_id = ${id} and uid = 10`
      const fresh = yield* FreshTexts.FreshTexts
      fresh.keep(kept!.id, "hapax")
      expect(yield* Segmenting.run).toBe(1)
      const { candidates } = Segments.make(sql)
      const holding = (text: string) => candidates(id, Grams.wanted([text]), 1, 256)
      expect(yield* holding("hapax")).toEqual([10])
      expect(yield* holding("legomenon")).toEqual([11])
      expect(yield* holding("common")).toHaveLength(254)
      expect(fresh.take(kept!.id)).toBeUndefined()
    }),
  )

  it.effect("is made again where a message went while it was made", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, "barbara")
      yield* letters(
        id,
        Array.from({ length: 256 }, () => "common"),
      )
      const waits = sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%search_segment%'
          and datname = current_database()`
      const making = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`delete from message where identity_id = ${id} and uid = 7`
          const fiber = yield* Effect.forkChild(Segmenting.run)
          // It has read the messages that are there still, and waits for what was noted.
          // In a transaction its first look would be kept.
          yield* Effect.repeat(Effect.andThen(sql`select pg_stat_clear_snapshot()`, waits), {
            until: ([row]) => row!.n === 1,
          })
          return fiber
        }),
      )
      expect(yield* Fiber.join(making)).toBe(1)
      const due = sql<{
        changes: number
        built: boolean
      }>`select changes, built from search_due where identity_id = ${id}`
      expect(yield* due).toEqual([{ changes: 1, built: false }])
      expect(yield* Segmenting.run).toBe(1)
      expect(yield* due).toEqual([])
    }),
  )

  it.effect("takes the place of the index of an older version once there is nothing left to make", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, "donald")
      yield* sql`create index message_search on message_content (created_at)`
      const isThere = Effect.map(
        sql<{ found: boolean }>`select to_regclass('message_search') is not null as found`,
        ([row]) => row!.found,
      )
      yield* letters(
        id,
        Array.from({ length: 256 }, () => "common"),
      )
      yield* Segmenting.removeFormer
      expect(yield* isThere).toBe(true)
      yield* Segmenting.run
      yield* Segmenting.removeFormer
      expect(yield* isThere).toBe(false)
    }),
  )
})
