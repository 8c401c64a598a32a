/**
 * Folds the search texts of older versions again, so that what this version searches for is found in old messages too. A
 * singleton works through all messages from the oldest to the newest, a batch a statement, beside the live service. Its
 * progress is a row (`search_refolding`), so that a batch that was cut short is repeated. A segment with a changed message
 * counts as not built until it is built again: searches walk through its messages meanwhile.
 */
import { StoredSummary } from "@svc/domain/mail/Message"
import { fold, searchText, separator } from "@svc/domain/mail/SearchText"
import { Effect, Schedule, Schema } from "effect"
import { Singleton } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { fromHtml } from "../../html/PlainText.ts"
import { type Sql, Unhurried } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"
import * as Segments from "./Segments.ts"

/** Messages of one batch, and bytes of the bodies of one message that are read again. */
const limits = { messages: 50, bytes: 256 * 1024 }
/** Characters of a long text that are folded before others have their turn. */
const turn = 64 * 1024

interface Stored {
  readonly id: string
  readonly identity_id: string
  readonly uid: number
  readonly summary: unknown
  readonly search_text: string
  /** Whether there may be anything to change: the new folding differs beyond ASCII only. */
  readonly is_plain: boolean
  /** Whether the bodies were read. */
  readonly is_read: boolean
  readonly text: string | null
  readonly html: string | null
}

const decode = Schema.decodeUnknownOption(StoredSummary)

/** Folds a long text piece by piece. What unseen characters divided in it stays divided. */
const foldedAgain = Effect.fnUntraced(function* (text: string) {
  const parts: Array<string> = []
  for (const part of text.split(separator)) {
    let folded = ""
    for (let at = 0; at < part.length;) {
      let end = Math.min(part.length, at + turn)
      // Half a pair of surrogates is no character.
      if (end < part.length && /[\ud800-\udbff]/.test(part[end - 1]!)) end--
      const piece = part.slice(at, end)
      folded += (at > 0 && piece.startsWith(" ") ? " " : "") + fold(piece)
      if (end < part.length && piece.endsWith(" ")) folded += " "
      at = end
      yield* Effect.yieldNow
    }
    parts.push(folded)
  }
  return parts.join(separator)
})

const renewed = Effect.fnUntraced(function* (stored: Stored) {
  const summary = decode(stored.summary)
  if (!stored.is_read || summary._tag === "None") return yield* foldedAgain(stored.search_text)
  yield* Effect.yieldNow
  const spoken = stored.html === null ? [] : [fromHtml(stored.html)]
  return searchText(summary.value, [stored.text ?? "", ...spoken.filter((one) => one !== stored.text)])
})

const store = (sql: Sql, { id, identity_id, uid, search_text }: Stored, changed: string) => sql`
  with box as materialized (
    select identity_id, uid_next from mailbox where identity_id = ${identity_id}::uuid for key share
  ),
  stored as (
    update message_content set search_text = ${changed}::text
    where message_id = ${id}::uuid and search_text = ${search_text}::text and exists (select from box)
    returning message_id
  )
  insert into search_due as due (identity_id, segment)
  select box.identity_id, ${Segments.of(uid)}::int from box, stored
  where ${Segments.of(uid)}::int < (box.uid_next - 1) / ${sql.literal(String(Segments.size))}
  on conflict (identity_id, segment) do update set built = false, due_at = now(), changes = due.changes + 1`

/** Folds a batch. Returns whether more messages are there to be folded now. */
export const batch: Effect.Effect<boolean, SqlError.SqlError, Unhurried> = Effect.gen(function* () {
  const sql = yield* Unhurried
  const [progress] = yield* sql<{ after: string; is_late: boolean }>`
    select after, now() > until as is_late from search_refolding`
  if (progress === undefined) return false
  const messages = yield* sql<Stored>`
    select id, identity_id, uid, summary, search_text, is_plain, is_read,
           case when is_read and not is_plain then text end as text, case when is_read and not is_plain then html end as html
    from (
      select m.id, m.identity_id, m.uid, m.summary, c.search_text, c.text, c.html,
        coalesce(octet_length(c.text), 0) + coalesce(octet_length(c.html), 0) <= ${limits.bytes}::int as is_read,
        octet_length(m.summary::text) = char_length(m.summary::text)
          and octet_length(c.search_text) = char_length(c.search_text)
          and coalesce(octet_length(c.text) = char_length(c.text), true)
          and coalesce(octet_length(c.html) = char_length(c.html), true) as is_plain
      from message m join message_content c on c.message_id = m.id
      where m.id > ${progress.after}::uuid order by m.id limit ${sql.literal(String(limits.messages))} offset 0
    ) m order by id`
  for (const message of messages) {
    if (message.is_plain) continue
    const changed = yield* renewed(message)
    if (changed !== message.search_text) yield* store(sql, message, changed)
  }
  const last = messages.at(-1)?.id
  if (last !== undefined) yield* sql`update search_refolding set after = ${last}::uuid`
  else if (progress.is_late) yield* sql`delete from search_refolding`
  return messages.length === limits.messages
})

export const layer = Singleton.make(
  "Refolding",
  batch.pipe(
    Effect.repeat({ while: (more) => more, schedule: Schedule.spaced(Timing.refoldingPause) }),
    Effect.catchCause((cause) => Effect.logWarning("Search texts of older versions were not folded again", cause)),
    Effect.repeat(Schedule.spaced(Timing.refolding)),
    Effect.asVoid,
  ),
)
