/** Search texts of an older version are folded again beside a live service, and found as those of new messages are. */
import { ask } from "@svc/cluster/actor/Ask"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import * as Refolding from "@svc/cluster/mail/search/Refolding"
import * as SegmentBuilder from "@svc/cluster/mail/search/SegmentBuilder"
import { Writes } from "@svc/cluster/store/Database"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fold, searchText } from "@svc/domain/mail/SearchText"
import { expect, it as plain, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { receivedMail } from "../harness/Mail.ts"

const bold = "𝗕𝗹𝗮𝗰𝗸 𝗙𝗿𝗶𝗱𝗮𝘆"

plain("folding resolves stylised letters before lower case, and takes unseen characters out of words", () => {
  for (const [text, folded] of [
    [bold, "black friday"],
    ["Ⓑⓛⓐⓒⓚ ＦＲＩＤＡＹ", "black friday"],
    ["dona\u00adtion un\u200bsub\u200dscribe\ufeff", "donation unsubscribe"],
    ["\u202eab\u2066c\u2069", "abc"],
    ["a\u00a0 \u2003b\tc", "a b c"],
    ["İSTANBUL ΟΔΟΣ Straße Œuvre ❤\ufe0f", "istanbul οδοσ strasse oeuvre ❤"],
    ["한국어", "한국어"],
  ] as const) {
    expect(fold(text), text).toBe(folded)
    expect(fold(folded)).toBe(folded)
  }
  expect(fold("οδος")).toBe(fold("ΟΔΟΣ"))
})

/** As the version before folded. */
const foldedBefore = (text: string) =>
  text
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .normalize("NFC")
    .replace(/[\s\u200b\ufeff\u00ad]+/g, " ")
    .trim()

layer(actors(), { timeout: "60 seconds" })("a store of the version before", (it) => {
  const letter = (n: number) => ({
    from: { address: "a@x.example", name: null },
    to: [],
    cc: [],
    bcc: [],
    reply_to: [],
    subject: n % 100 === 1 ? bold : "plain",
    snippet: String(n),
    in_reply_to: null,
    references: [],
    attachments: [],
    origin: { verdict: "unverified", spf: "none", dkim: "none", dmarc: "none", domain: null },
  })
  const bodies = (n: number) => ({
    text: n % 100 === 2 ? "a dona\u00adtion" : n === 3 ? `${"x".repeat(300_000)} ${bold}` : n === 4 ? null : "nothing",
    html: n === 4 ? "<p>Ⓛⓞⓣⓣⓔⓡⓨ&shy;ticket<div style='display:none'>Ⓗidden</div>" : null,
  })
  const old = Effect.fnUntraced(function* (identity: string, count: number) {
    const sql = yield* Writes
    const numbers = Array.from({ length: count }, (_, n) => n + 1)
    yield* sql`
      with made as (
        insert into message (id, identity_id, uid, direction, thread_id, envelope_from, recipient, sha256, size, summary, received_at)
        select uuidv7(), ${identity}::uuid, n, 'inbound', uuidv7(), '', '', '', 1, (${numbers.map((n) => JSON.stringify(letter(n)))}::text[])[n]::jsonb, now()
        from generate_series(1, ${count}::int) n order by n returning id, uid
      ),
      box as (update mailbox set uid_next = ${count + 1}::int where identity_id = ${identity}::uuid)
      insert into message_content (message_id, identity_id, raw, headers, text, html, search_text, created_at)
      select id, ${identity}::uuid, '', '[]', nullif((${numbers.map((n) => bodies(n).text ?? "")}::text[])[uid], ''),
        nullif((${numbers.map((n) => bodies(n).html ?? "")}::text[])[uid], ''), (${numbers.map((n) =>
          ["a@x.example", "", letter(n).subject, "", bodies(n).text ?? "Ⓛⓞⓣⓣⓔⓡⓨ ticket"].map(foldedBefore).join("\x1e"),
        )}::text[])[uid], now() from made`
    yield* sql`insert into search_refolding (after, until)
      values ('00000000-0000-0000-0000-000000000000', now() + interval '1 day') on conflict do nothing`
  })

  it.effect("finds the one changed message of a segment that was built before", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id } = yield* makeIdentity(yield* makeOrg, "grace")
      yield* old(id, 300)
      // All but one were stored by this version.
      const all = yield* sql<{ id: string; uid: number }>`select id, uid from message where identity_id = ${id}`
      for (const { id: message, uid } of all.filter(({ uid }) => uid !== 101 && uid <= 256))
        yield* sql`update message_content set text = 'plain', html = null, search_text = ${`a@x.example\x1e\x1eplain\x1e\x1e${uid}`}
          where message_id = ${message}`
      yield* sql`update message set summary = jsonb_set(summary, '{subject}', '"plain"') where identity_id = ${id} and uid <> 101`
      yield* SegmentBuilder.run
      while (yield* Refolding.batch);
      const { messages } = yield* (yield* MessageQueries).list(id as IdentityId, {
        limit: 9,
        offset: 0,
        query: "black friday",
      })
      expect(messages.map(({ snippet }) => snippet)).toEqual(["101"])
      yield* sql`delete from search_refolding`
      yield* sql`delete from message where identity_id = ${id}`
      yield* sql`delete from search_due`
    }),
  )

  it.effect("is searched by the new folding while and after it is folded again", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const { id, actor } = yield* makeIdentity(yield* makeOrg, "ada")
      yield* old(id, 600)
      yield* SegmentBuilder.run
      const queries = yield* MessageQueries
      const found = (query: string) =>
        Effect.map(queries.list(id as IdentityId, { limit: 50, offset: 0, query }), ({ messages }) =>
          messages.map(({ snippet }) => snippet),
        )
      const hundreds = (from: number) => [5, 4, 3, 2, 1, 0].map((n) => String(n * 100 + from))
      expect(yield* found("black friday")).toEqual([])
      expect(yield* found("donation")).toEqual([])

      expect(yield* Refolding.batch).toBe(true)
      // The first batch is folded, and found though its segment was built before.
      expect(yield* found('subject:"black friday"')).toEqual(["1"])
      expect(yield* found("donation")).toEqual(["2"])
      // Mail that comes in meanwhile is found too, and stays as it is.
      const mail = yield* receivedMail({ subject: bold, snippet: "new" })
      yield* ask(actor.ReceiveMail({ ...mail, content: { ...mail.content!, search_text: searchText(mail, ["x"]) } }))
      let batches = 1
      while (yield* Refolding.batch) batches++
      expect(batches).toBe(12)
      const look = Effect.gen(function* () {
        expect(yield* found('subject:"black friday"')).toEqual(["new", ...hundreds(1)])
        expect(yield* found("donation")).toEqual(hundreds(2))
        // A long text is folded as it was stored; HTML is read anew.
        expect(yield* found('"black friday" -subject:friday')).toEqual(["3"])
        expect(yield* found("lotteryticket")).toEqual(["4"])
        expect(yield* found("hidden")).toEqual([])
      })
      yield* look
      yield* SegmentBuilder.run
      expect(yield* sql`select from search_due`).toHaveLength(0)
      yield* look
      // Nothing is left to do, and the progress goes once no process of the former version can be there any more.
      expect(yield* Refolding.batch).toBe(false)
      expect(yield* sql`select from search_refolding`).toHaveLength(1)
      yield* sql`update search_refolding set until = now() - interval '1 second'`
      expect(yield* Refolding.batch).toBe(false)
      expect(yield* sql`select from search_refolding`).toHaveLength(0)
      expect(yield* Refolding.batch).toBe(false)
    }),
  )
})
