/**
 * Changes the flags of messages: one commit for all of them, with one value of the Mailbox's change counter. The
 * counter does not change if no flag changes, so a repeated command wakes no subscriber. The Mailbox row is locked
 * before the counter is raised, so counter order is commit order.
 */
import { type FlagChange, type Flagged, limits } from "@svc/domain/mail/Flags"
import { Effect } from "effect"
import { commit, type Write } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import type { Sql } from "../store/Database.ts"

interface Marking {
  readonly org_id: string
  readonly message_ids: ReadonlyArray<string>
  readonly change: FlagChange
  readonly unchanged_since?: number | undefined
}

interface Row {
  readonly messages: ReadonlyArray<Flagged> | null
  readonly modified: ReadonlyArray<string>
  readonly overfull: ReadonlyArray<string>
  readonly modseq: number
}

/** Sorts labels by their bytes, so that equal sets are equal arrays. */
export const labelsAfter = (sql: Sql, { labels, add_labels = [], remove_labels = [] }: FlagChange) =>
  sql`array(
    select label from unnest(${labels ?? []}::text[] || ${add_labels}::text[]
      || case when ${labels === undefined} then m.labels else '{}' end) as wanted (label)
    where label <> all(${remove_labels}::text[])
    group by label order by label collate "C")`

export const change = Effect.fnUntraced(function* (write: Write, { message_ids, change, unchanged_since }: Marking) {
  const { sql, identity } = write
  const { seen = null, flagged = null, answered = null } = change
  const row = yield* commit<Row>(
    write,
    sql`
    requested as materialized (
      select m.id, m.uid, m.modseq, after.*,
             coalesce(m.modseq > ${unchanged_since ?? null}::bigint, false) as modified,
             cardinality(after.labels) > ${limits.labels}::int as overfull,
             (m.seen, m.flagged, m.answered, m.labels)
               is distinct from (after.seen, after.flagged, after.answered, after.labels) as differs
      from message m cross join lateral (
        select coalesce(${seen}::boolean, m.seen) as seen, coalesce(${flagged}::boolean, m.flagged) as flagged,
               coalesce(${answered}::boolean, m.answered) as answered, ${labelsAfter(sql, change)} as labels
      ) after
      where m.id = any(${message_ids}::uuid[]) and m.identity_id = ${identity.id}::uuid and not m.is_draft
        and exists (select from fence)
    ),
    granted as materialized (select * from requested where not modified and not overfull),
    differing as materialized (select * from granted where differs),
    box as (
      update mailbox set modseq = modseq + 1
      where identity_id = ${identity.id}::uuid and exists (select from differing) returning modseq
    ),
    marked as (
      update message m
      set seen = d.seen, flagged = d.flagged, answered = d.answered, labels = d.labels, modseq = box.modseq
      from differing d cross join box where m.id = d.id
    ) ${auditWriteWith(sql, write.note, "granted")}`,
    {
      columns: sql`
        (select jsonb_agg(jsonb_build_object('message_id', id, 'uid', uid, 'seen', seen, 'flagged', flagged,
           'answered', answered, 'labels', labels,
           'modseq', case when differs then (select modseq from box) else modseq end) order by uid)
         from granted) as messages,
        array(select id::text from requested where modified) as modified,
        array(select id::text from requested where overfull and not modified) as overfull,
        coalesce((select modseq from box), (select modseq from mailbox where identity_id = ${identity.id}::uuid), 0)::float8 as modseq`,
    },
  )
  const { messages, modified, overfull, modseq } = row
  return { messages: messages ?? [], modified, overfull, modseq }
})
