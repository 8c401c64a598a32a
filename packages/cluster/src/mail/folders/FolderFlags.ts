/**
 * STORE (RFC 9051 section 6.4.6): changes flags of messages in one folder, in one commit with one value of the
 * Mailbox's change counter. Most flags belong to the message; `deleted` and `draft` belong to its place in the folder.
 * `unchanged_since` is compared with both.
 */
import { type FolderFlagChange, FolderRefused, type UidRanges } from "@svc/domain/mail/FolderProtocol"
import { limits } from "@svc/domain/mail/Flags"
import { Effect } from "effect"
import { commit, type Write } from "../../actor/Write.ts"
import { labelsAfter } from "../Flags.ts"
import { among } from "./FolderPlacement.ts"

interface Change {
  readonly org_id: string
  readonly folder_id: string
  readonly uids: UidRanges
  readonly change: FolderFlagChange
  readonly unchanged_since?: number | undefined
}

interface Row {
  readonly overfull: boolean
  readonly modified: ReadonlyArray<number>
  readonly modseq: number
}

export const change = Effect.fnUntraced(function* (write: Write, { folder_id, uids, change, unchanged_since }: Change) {
  const { sql, identity } = write
  const { seen = null, flagged = null, answered = null, deleted = null, draft = null } = change
  const row = yield* commit<Row>(
    write,
    sql`
    asked as materialized (
      select m.id, p.uid, after.*,
             coalesce(greatest(m.modseq, p.modseq) > ${unchanged_since ?? null}::bigint, false) as modified,
             cardinality(after.labels) > ${limits.labels}::int as overfull,
             (m.seen, m.flagged, m.answered, m.labels)
               is distinct from (after.seen, after.flagged, after.answered, after.labels) as message_differs,
             (p.deleted, p.draft) is distinct from (after.deleted, after.draft) as place_differs
      from placed p join message m on m.id = p.message_id cross join lateral (
        select coalesce(${seen}::boolean, m.seen) as seen, coalesce(${flagged}::boolean, m.flagged) as flagged,
               coalesce(${answered}::boolean, m.answered) as answered, ${labelsAfter(sql, change)} as labels,
               coalesce(${deleted}::boolean, p.deleted) as deleted, coalesce(${draft}::boolean, p.draft) as draft
      ) after
      where p.folder_id = ${folder_id}::uuid and p.identity_id = ${identity.id}::uuid
        and ${among(sql, uids)} and exists (select from fence)
    ),
    differing as materialized (
      select * from asked where (message_differs or place_differs) and not modified and not overfull
    ),
    box as (
      update mailbox set modseq = modseq + 1
      where identity_id = ${identity.id}::uuid and exists (select from differing) returning modseq
    ),
    marked as (
      update message m
      set seen = d.seen, flagged = d.flagged, answered = d.answered, labels = d.labels, modseq = box.modseq
      from (select distinct on (id) * from differing) d cross join box where m.id = d.id and d.message_differs
    ),
    replaced as (
      update placed p set deleted = d.deleted, draft = d.draft, modseq = box.modseq
      from differing d cross join box where p.folder_id = ${folder_id}::uuid and p.uid = d.uid
    )`,
    {
      columns: sql`
        exists (select from asked where overfull and not modified) as overfull,
        array(select uid from asked where modified order by uid) as modified,
        coalesce((select modseq from box), (select modseq from mailbox where identity_id = ${identity.id}::uuid), 0)::float8 as modseq`,
    },
  )
  if (row.overfull) return yield* new FolderRefused({ reason: "too_many_labels" })
  return { modified: row.modified, modseq: row.modseq }
})
