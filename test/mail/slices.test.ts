/** Very large bodies, which are stored in slices before their message. */
import { storeAhead } from "@svc/cluster/mail/MessageContent"
import { Reads, Writes } from "@svc/cluster/store/Database"
import type { IncomingMail } from "@svc/mail-gateway/mail/Reception"
import { SystemMail } from "@svc/mail-gateway/mail/SystemMail"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storesLayer } from "../harness/Stores.ts"

const [first, second] = ["0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b01", "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b02"]
const [third, fourth] = ["0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b03", "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b04"]
const raw = new Uint8Array(2_500_000).map((_, at) => (at * 7 + (at >>> 16)) % 251)
const content = { raw, text: "text", html: null, headers: [{ name: "Subject", value: "s" }], search_text: "s" }

const stored = (id: string) =>
  Effect.flatMap(
    Reads,
    (sql) => sql<{ raw: Uint8Array; text: string; headers: unknown }>`
      select raw, text, headers from message_content where message_id = ${id}::uuid`,
  )
const slices = Effect.flatMap(Reads, (sql) => sql`select 1 from message_slice`)

layer(storesLayer, { timeout: "60 seconds" })("A very large body", (it) => {
  it.effect("is stored completely, once, and leaves no slice", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      yield* storeAhead(sql, first, content, new Date())
      yield* storeAhead(sql, first, content, new Date())
      const found = yield* stored(first)
      expect(found).toHaveLength(1)
      expect(Buffer.compare(found[0]!.raw, raw)).toBe(0)
      expect(found[0]).toMatchObject({ text: "text", headers: content.headers })
      expect(yield* slices).toEqual([])
    }),
  )

  it.effect("is sent in slices together with its texts, each below a megabyte", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      // Two-byte characters, one of which is split by a slice.
      const text = `x${"ü".repeat(1_400_000)}`
      const long = {
        ...content,
        text,
        html: `<p>${text}`,
        search_text: text.slice(0, 600_000),
        structure: "s".repeat(70_000),
      }
      yield* sql`alter table message_slice add constraint small check (length(bytes) <= 1048576)`
      yield* storeAhead(sql, third, long, new Date())
      yield* storeAhead(sql, fourth, { ...long, raw: raw.subarray(0, 1_000), html: null }, new Date())
      yield* sql`alter table message_slice drop constraint small`
      const found = yield* Effect.flatMap(
        Reads,
        (reads) => reads<Record<string, unknown>>`
          select message_id, length(raw) as raw, text, html, headers, search_text, structure from message_content
          where message_id = any(${[third, fourth]}::uuid[]) order by message_id`,
      )
      const texts = { text, headers: content.headers, search_text: long.search_text, structure: long.structure }
      expect(found[0]).toEqual({ message_id: third, raw: raw.length, ...texts, html: `<p>${text}` })
      expect(found[1]).toEqual({ message_id: fourth, raw: 1_000, ...texts, html: null })
      expect(yield* slices).toEqual([])
    }),
  )

  it.effect("is not stored in part if the store has lost a slice", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      yield* sql`create function lose() returns trigger language plpgsql
        as 'begin if new.n = 1 then return null; end if; return new; end'`
      yield* sql`create trigger lose before insert on message_slice for each row execute function lose()`
      expect(yield* Effect.flip(storeAhead(sql, second, content, new Date()))).toMatchObject({ code: "unavailable" })
      yield* sql`drop trigger lose on message_slice`
      yield* sql`drop function lose`
      expect(yield* stored(second)).toEqual([])
      expect(yield* slices).toEqual([])
    }),
  )

  it.effect("is stored by a repeated request although the first one was interrupted between two slices", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      yield* sql`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`
      yield* sql`create trigger refuse before insert on message_slice for each row when (new.n = 1) execute function refuse()`
      yield* Effect.flip(storeAhead(sql, second, content, new Date()))
      yield* sql`drop trigger refuse on message_slice`
      const left = yield* slices
      expect(left).toHaveLength(1)
      yield* storeAhead(sql, second, content, new Date())
      expect(Buffer.compare((yield* stored(second))[0]!.raw, raw)).toBe(0)
      // Housekeeping removes what the first one left.
      expect(yield* slices).toEqual(left)
      yield* sql`delete from message_slice`
    }),
  )

  it.effect("for the operator is stored completely or not at all, and slices of other messages stay", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { store } = yield* Effect.provide(SystemMail, SystemMail.layer)
      const pieces = [raw.subarray(0, 1_000_000), raw.subarray(1_000_000)]
      const mail = { raw: pieces, parsed: { subject: "large" }, envelopeFrom: "", sha256: new Uint8Array(32) }
      const kept = Effect.flatMap(Reads, (sql) => sql<{ raw: Uint8Array }>`select raw from system_mail`)
      // The database has lost a slice, as after a crash.
      yield* sql`create function lose() returns trigger language plpgsql as $$ begin return null; end $$`
      yield* sql`create trigger lost before insert on message_slice for each row when (new.n = 1) execute function lose()`
      expect(yield* Effect.flip(store(mail as unknown as IncomingMail))).toMatchObject({ code: "unavailable" })
      expect(yield* kept).toEqual([])
      yield* sql`drop trigger lost on message_slice`
      const before = yield* slices
      expect(before.length).toBeGreaterThan(0)
      yield* store(mail as unknown as IncomingMail)
      const [found, ...others] = yield* kept
      expect([Buffer.compare(found!.raw, raw), others]).toEqual([0, []])
      expect(yield* slices).toEqual(before)
    }),
  )
})
