/** Segments of a Mailbox's search: they find the same as a full scan, and keep nothing of removed messages. */
import { ask } from "@svc/cluster/actor/Ask"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { RecentTexts } from "@svc/cluster/mail/search/RecentTexts"
import * as Grams from "@svc/cluster/mail/search/Grams"
import * as SegmentBuilder from "@svc/cluster/mail/search/SegmentBuilder"
import * as Segments from "@svc/cluster/mail/search/Segments"
import { Reads, Writes } from "@svc/cluster/store/Database"
import * as SearchStatement from "@svc/mail-gateway/mail/imap/store/SearchStatement"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { randomBelow, positionsOf, randomText } from "./RandomTexts.ts"

layer(actors(), { timeout: "60 seconds" })("A Mailbox of several segments", (it) => {
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
  /** Runs the effect with a clock on which a thousand seconds pass between two looks. */
  const hurried = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Clock.clockWith((clock) => {
      let looks = 0n
      const value = () => clock.monotonicTimeNanosUnsafe() + ++looks * 10n ** 12n
      return Effect.provideService(effect, Clock.Clock, Object.create(clock, { monotonicTimeNanosUnsafe: { value } }))
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

  it.effect("is searched with the same result as a full scan, whatever has segments", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const identity = yield* makeIdentity(yield* makeOrg, newHandle("ada"))
      const draw = randomBelow(4)
      // The n-th word is rarer the larger n is.
      const words = Array.from({ length: 300 }, () => randomText(draw, 3 + draw(9)).replaceAll(" ", "") || "x")
      const word = () => words[Math.floor(words.length ** (draw(1_000) / 1_000))]!
      const texts = Array.from({ length: 600 }, () =>
        ["a@x.org", "", "", "", Array.from({ length: 12 }, word).join(" ")].join("\x1e"),
      )
      yield* letters(identity.id, texts)
      const all = yield* reader(identity.id as IdentityId)
      const removed = new Set<number>()
      const naive = (...parts: ReadonlyArray<string>) =>
        positionsOf(texts, "")
          .filter((place) => !removed.has(place + 1) && parts.every((part) => texts[place]!.includes(part)))
          .map((place) => place + 1)
      const expectSameResults = Effect.gen(function* () {
        // A search whose time is always over continues where it ended: most candidates of a frequent word are excluded by another one.
        const [frequent, excluded] = [words[2]!, words[1]!]
        expect(yield* hurried(all(`"${frequent}" -"${excluded}"`, 5))).toEqual(
          naive(frequent).filter((uid) => !texts[uid - 1]!.includes(excluded)),
        )
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
      yield* expectSameResults
      expect(yield* SegmentBuilder.run).toBe(2)
      yield* expectSameResults
      // In the form that mail programs get.
      const searched = words.slice(0, 20).filter((text) => text.length > 1)
      const mayHave = yield* SearchStatement.candidates(yield* Reads)(identity.id, searched)
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
      // Repeated without one segment, and after removals.
      yield* sql`delete from search_segment where identity_id = ${identity.id} and segment = 1`
      yield* sql`insert into search_due (identity_id, segment, due_at) values (${identity.id}, 1, now() + interval '1 hour')`
      for (const uid of [3, 255, 256, 257, 500, 600]) removed.add(uid)
      yield* sql`delete from message where identity_id = ${identity.id} and uid = any(${[...removed]}::int[])`
      yield* expectSameResults
      yield* sql`update search_due set due_at = now() where identity_id = ${identity.id}`
      expect(yield* SegmentBuilder.run).toBe(2)
      yield* expectSameResults
    }),
  )

  it.effect("gets the segment that has been due for longest first", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const org_id = yield* makeOrg
      const made = [yield* makeIdentity(org_id, newHandle("one")), yield* makeIdentity(org_id, newHandle("two"))]
      const [first, second] = made.map(({ id }) => id).toSorted()
      for (const [id, hours] of [
        [first, 1],
        [second, 2],
      ] as const) {
        yield* letters(id!, ["common"])
        yield* sql`insert into search_due (identity_id, segment, due_at) values (${id}, 0, now() - ${hours}::int * interval '1 hour')`
      }
      yield* SegmentBuilder.run
      // Each segment has its own transaction.
      const built = yield* sql<{ id: string }>`
        select identity_id as id from search_segment where identity_id in (${first}, ${second})
        group by identity_id order by min(xmin::text::bigint)`
      expect(built.map(({ id }) => id)).toEqual([second, first])
    }),
  )

  it.effect("has each segment after its last UID was assigned, and nothing of removed messages", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const org_id = yield* makeOrg
      const { actor, id } = yield* makeIdentity(org_id, newHandle("grace"))
      const due = sql<{ segment: number; built: boolean; later: boolean }>`
        select segment, built, due_at > now() as later from search_due where identity_id = ${id} order by segment`
      const held = Segments.make(sql).candidates(id, Grams.gramsOf(["hapax"]), 1, 256)
      yield* letters(
        id,
        Array.from({ length: 256 }, (_, n) => (n === 9 ? "hapax" : "common")),
      )
      expect(yield* due).toEqual([{ segment: 0, built: false, later: false }])
      yield* SegmentBuilder.run
      expect(yield* due).toEqual([])
      expect(yield* held).toEqual([10])
      // The first message of the next segment changes nothing in this one.
      const next = yield* makeIdentity(org_id, newHandle("next"))
      yield* letters(
        next.id,
        Array.from({ length: 257 }, (_, n) => (n === 9 ? "hapax" : n < 256 ? "common" : "stranger")),
      )
      yield* SegmentBuilder.run
      const entries = (identity: string) =>
        sql`select bucket, entries from search_segment where identity_id = ${identity} and segment = 0 order by bucket`
      expect(yield* entries(next.id)).toEqual(yield* entries(id))
      const [message] = yield* sql<{ id: string }>`select id from message where identity_id = ${id} and uid = 10`
      yield* ask(actor.RemoveMessages({ org_id, message_ids: [message!.id] }))
      expect(yield* due).toEqual([{ segment: 0, built: true, later: true }])
      // The rebuild is not due yet, so the existing segment is used.
      yield* SegmentBuilder.run
      expect(yield* held).toEqual([10])
      yield* sql`update search_due set due_at = now() where identity_id = ${id}`
      yield* SegmentBuilder.run
      expect(yield* due).toEqual([])
      expect(yield* held).toEqual([])
      // The last messages of the segment: no bucket is left.
      yield* sql`delete from message where identity_id = ${id}`
      yield* sql`update search_due set due_at = now() where identity_id = ${id}`
      yield* SegmentBuilder.run
      const [rows] = yield* sql<{ n: number }>`select count(*)::int as n from search_segment where identity_id = ${id}`
      expect(rows!.n).toBe(0)
    }),
  )

  it.effect("builds segments from cached texts, and reads the others", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, newHandle("edsger"))
      yield* letters(
        id,
        Array.from({ length: 256 }, (_, n) => (n === 10 ? "legomenon" : "common")),
      )
      const [stored] = yield* sql<{ id: string }>`select id from message where identity_id = ${id} and uid = 10`
      const fresh = yield* RecentTexts
      fresh.keep(stored!.id, "hapax")
      expect(yield* SegmentBuilder.run).toBe(1)
      const { candidates } = Segments.make(sql)
      const holding = (text: string) => candidates(id, Grams.gramsOf([text]), 1, 256)
      expect(yield* holding("hapax")).toEqual([10])
      expect(yield* holding("legomenon")).toEqual([11])
      expect(yield* holding("common")).toHaveLength(254)
      expect(fresh.take(stored!.id)).toBeUndefined()
    }),
  )

  it.effect("builds the other segments if one fails, and tries that one later", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, newHandle("tony"))
      yield* letters(
        id,
        Array.from({ length: 512 }, () => "common"),
      )
      yield* sql`insert into search_due (identity_id, segment, due_at) values (${id}, 2, now() + interval '1 hour')`
      yield* sql`alter table search_segment add constraint fails check (segment <> 0) not valid`
      yield* Effect.ensuring(SegmentBuilder.run, Effect.orDie(sql`alter table search_segment drop constraint fails`))
      const due = sql`
        select segment, due_at between now() + interval '9 minutes' and now() + interval '11 minutes' as postponed
        from search_due where identity_id = ${id} order by segment`
      expect(yield* due).toEqual([
        { segment: 0, postponed: true },
        { segment: 2, postponed: false },
      ])
    }),
  )

  it.effect("excludes rendered drafts, whatever has segments", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, newHandle("dorothy"))
      yield* letters(
        id,
        Array.from({ length: 300 }, (_, n) => (n % 100 === 9 ? "hapax" : "common")),
      )
      yield* sql`update message set is_draft = true where identity_id = ${id} and uid in (10, 210)`
      const all = yield* reader(id as IdentityId)
      expect(yield* all("hapax", 10)).toEqual([110])
      expect(yield* SegmentBuilder.run).toBe(1)
      expect(yield* all("hapax", 10)).toEqual([110])
    }),
  )

  it.effect("builds a segment again if a message was removed meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, newHandle("barbara"))
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
          const fiber = yield* Effect.forkChild(SegmentBuilder.run)
          // It has read the remaining messages, and waits for the list of removals.
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
      expect(yield* SegmentBuilder.run).toBe(1)
      expect(yield* due).toEqual([])
    }),
  )
})
