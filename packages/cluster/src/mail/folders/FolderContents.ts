/**
 * Adds messages to folders, copies, moves and expunges them for mail clients. A message that is in no folder any more
 * is deleted, as over REST: its UIDs are never reused, and its position is remembered.
 */
import {
  type FolderFlagChange,
  FolderRefused,
  limits,
  type Placement,
  type UidRanges,
} from "@svc/domain/mail/FolderProtocol"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { commit, type Write } from "../../actor/Write.ts"
import * as NearlyFull from "../NearlyFull.ts"
import { summaryOf } from "../Summary.ts"
import * as Threading from "../Threading.ts"
import * as DraftRenditions from "./DraftRenditions.ts"
import { among } from "./FolderPlacement.ts"

interface InFolder {
  readonly org_id: string
  readonly folder_id: string
}

export interface Appended {
  readonly org_id: string
  readonly folder: string
  readonly mail: ReceivedMail
  readonly change: FolderFlagChange
  /** The draft that the message shows. */
  readonly draft?: DraftRenditions.Pictured | undefined
}

/** Removes up to {@link limits} messages from the folder. Returns whether the limit was reached. */
export const removeFromFolder = (write: Write, folderId: string, which: Statement.Fragment) => {
  const { sql, identity, at } = write
  return Effect.map(
    commit<{ taken: number }>(
      write,
      sql`
      taken as materialized (
        select p.uid, p.message_id from placed p
        where p.folder_id = ${folderId}::uuid and p.identity_id = ${identity.id}::uuid and (${which}) and exists (select from fence)
        order by p.uid limit ${limits.messages}
      ),
      -- Messages in no other folder. The statement does not see its own deletions.
      homeless as materialized (
        select m.id, m.uid, m.size from message m
        where m.id in (select message_id from taken) and not exists (
          select from placed other where other.message_id = m.id
            and not (other.folder_id = ${folderId}::uuid and other.uid in (select uid from taken)))
      ),
      box as (
        update mailbox set modseq = modseq + 1, bytes_used = bytes_used - coalesce((select sum(size) from homeless), 0)
        where identity_id = ${identity.id}::uuid and exists (select from taken) returning modseq
      ),
      ${DraftRenditions.spent(sql, sql`taken`, folderId, sql`true`)},
      unplaced as (delete from placed p using taken t where p.folder_id = ${folderId}::uuid and p.uid = t.uid),
      vanished_all as (
        insert into vanished (folder_id, uid, modseq) select ${folderId}::uuid, t.uid, box.modseq from taken t cross join box
      ),
      removed as (delete from message m using homeless h, box where m.id = h.id),
      place as (
        insert into removed_message (id, identity_id, uid, removed_at, modseq)
        select h.id, ${identity.id}::uuid, h.uid, ${at}::timestamptz, box.modseq from homeless h cross join box
      ),
      contents as (delete from message_content c using homeless h where c.message_id = h.id)`,
      { columns: sql`(select count(*)::int from taken) as taken` },
    ),
    ({ taken }) => taken === limits.messages,
  )
}

export const expunge = (write: Write, { folder_id, uids }: InFolder & { readonly uids: UidRanges | null }) => {
  const { sql } = write
  const named = uids === null ? sql`true` : among(sql, uids)
  return Effect.map(removeFromFolder(write, folder_id, sql`p.deleted and ${named}`), (left) => ({ left }))
}

/** Removes pictures of deleted drafts and of outdated versions. The next client to open the folder adds new ones. */
export const hideDrafts = Effect.fnUntraced(function* (write: Write) {
  const folder = yield* DraftRenditions.folderOf(write)
  if (folder === undefined) return { left: false }
  return { left: yield* removeFromFolder(write, folder, DraftRenditions.isStale(write)) }
})

interface Copying extends InFolder {
  readonly uids: UidRanges
  readonly to: string
  readonly move: boolean
  readonly whole?: boolean | undefined
}

/** Returns the result of a repeated copy command: it is complete, but the new UIDs were not stored. */
export const copied = ({ sql, identity }: Write, { uids, to, whole }: Copying) =>
  Effect.map(
    sql<{ uid_validity: number }>`
      select uid_validity from folder where identity_id = ${identity.id}::uuid and name = ${to}::text`,
    ([row]): Placement => {
      const uid_validity = row?.uid_validity ?? 0
      if (whole === true) return { uid_validity, from: [], to: [], whole: { from: uids, first: null } }
      const from = uids.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, n) => first + n))
      return { uid_validity, from, to: [] }
    },
  )

export const copy = Effect.fnUntraced(function* (write: Write, { folder_id, uids, to, move, whole }: Copying) {
  const { sql, identity } = write
  const row = yield* commit<{
    uid_validity: number | null
    first: number | null
    uids: ReadonlyArray<number>
    ranges: string | null
  }>(
    write,
    sql`
    target as materialized (
      select id, uid_validity from folder where identity_id = ${identity.id}::uuid and name = ${to}::text
    ),
    chosen as materialized (
      select p.uid, p.message_id, p.draft, p.deleted, row_number() over (order by p.uid)::int as n from placed p, target
      where p.folder_id = ${folder_id}::uuid and p.identity_id = ${identity.id}::uuid
        and ${among(sql, uids)} and exists (select from fence)
      order by p.uid limit ${whole === true ? null : limits.messages}::int
    ),
    box as (
      update mailbox set modseq = modseq + 1
      where identity_id = ${identity.id}::uuid and exists (select from chosen) returning modseq
    ),
    raised as (
      update folder f set uid_next = f.uid_next + c.count from target, box, (select count(*)::int as count from chosen) c
      where f.id = target.id returning f.id, f.uid_next - c.count as first
    ),
    put as (
      insert into placed (folder_id, uid, identity_id, message_id, draft, deleted, modseq)
      select r.id, r.first + c.n - 1, ${identity.id}::uuid, c.message_id, c.draft, c.deleted, box.modseq
      from chosen c cross join raised r cross join box
    ),
    unplaced as (
      delete from placed p using chosen c where ${move}::boolean and p.folder_id = ${folder_id}::uuid and p.uid = c.uid
    ),
    vanished_all as (
      insert into vanished (folder_id, uid, modseq)
      select ${folder_id}::uuid, c.uid, box.modseq from chosen c cross join box where ${move}::boolean
    ),
    ${DraftRenditions.spent(sql, sql`chosen`, folder_id, sql`${move}::boolean`)}`,
    {
      columns: sql`
        (select uid_validity from target) as uid_validity, (select first from raised) as first,
        array(select uid from chosen where not ${whole === true}::boolean order by uid) as uids,
        (select range_agg(int4range(uid, uid, '[]'))::text from chosen where ${whole === true}::boolean) as ranges`,
    },
  )
  if (row.uid_validity === null) return yield* new FolderRefused({ reason: "missing" })
  if (whole === true) {
    const from = [...(row.ranges ?? "").matchAll(/\[(\d+),(\d+)\)/g)].map(([, first, end]): [number, number] => [
      Number(first),
      Number(end) - 1,
    ])
    const placed: Placement = { uid_validity: row.uid_validity, from: [], to: [], whole: { from, first: row.first } }
    return placed
  }
  const placed: Placement = {
    uid_validity: row.uid_validity,
    from: row.uids,
    to: row.uids.map((_, n) => (row.first ?? 0) + n),
  }
  return placed
})

/** Appends a message to a folder. A repeated command returns the UID that was assigned before. */
export const append = Effect.fnUntraced(function* (
  write: Write,
  { folder, mail, change, draft }: Appended,
  quotaBytes: number,
) {
  const { sql, identity } = write
  const { related, subject_key } = Threading.threadKeys(mail)
  const labels = [...new Set(change.labels ?? [])].sort()
  const row = yield* commit<{ uid_validity: number | null; uid: number | null; again: number | null; used: number }>(
    write,
    sql`
    target as materialized (
      select id, uid_validity, use from folder where identity_id = ${identity.id}::uuid and name = ${folder}::text
    ),
    -- The same message again, or the client's own copy of a message that we sent.
    earlier as materialized (
      select p.uid from placed p join target on target.id = p.folder_id join message m on m.id = p.message_id
      where m.id = ${mail.message_id}::uuid or m.id = ${DraftRenditions.pictureOf(sql, draft)} or (
        target.use = 'sent' and m.identity_id = ${identity.id}::uuid and m.message_id = ${mail.message_id_header}::text
        and m.direction = 'outbound')
      limit 1
    ),
    box as (
      update mailbox set uid_next = uid_next + 1, bytes_used = bytes_used + ${mail.size}::bigint, modseq = modseq + 1
      where identity_id = ${identity.id}::uuid and bytes_used + ${mail.size}::bigint <= ${quotaBytes}::bigint
        and exists (select from target) and not exists (select from earlier) and exists (select from fence)
      returning uid_next - 1 as uid, modseq, bytes_used
    ),
    stored as (
      insert into message (id, identity_id, uid, direction, thread_id, subject_key, message_id, envelope_from, recipient, sha256, size,
                           summary, received_at, received_zone, seen, flagged, answered, labels, modseq, is_draft)
      select ${mail.message_id}::uuid, ${identity.id}::uuid, box.uid,
             case when target.use in ('sent', 'drafts') then 'outbound' else 'inbound' end,
             coalesce((
               select before.thread_id from message before
               where before.identity_id = ${identity.id}::uuid and before.message_id = any(${related}::text[])
               order by before.uid desc limit 1), ${mail.message_id}::uuid),
             ${subject_key}::text,
             ${mail.message_id_header}::text, ${mail.envelope_from}::text, ${mail.recipient}::text, ${mail.sha256}::bytea,
             ${mail.size}::int, ${JSON.stringify(summaryOf(mail, mail.origin))}::jsonb, ${mail.received_at}::timestamptz, ${mail.received_zone ?? null}::smallint,
             ${change.seen ?? false}::boolean, ${change.flagged ?? false}::boolean, ${change.answered ?? false}::boolean,
             ${labels}::text[], box.modseq, ${draft !== undefined}::boolean
      from box cross join target
    ),
    ${DraftRenditions.pictured(sql, identity.id, mail.message_id, draft)},
    contents as (
      insert into message_content (message_id, identity_id, raw, text, html, headers, search_text, structure, created_at)
      select ${mail.message_id}::uuid, ${identity.id}::uuid, ${mail.content?.raw ?? new Uint8Array(0)}::bytea, ${mail.content?.text ?? null}::text,
             ${mail.content?.html ?? null}::text, ${JSON.stringify(mail.content?.headers ?? [])}::jsonb,
             ${mail.content?.search_text ?? ""}::text, ${mail.content?.structure ?? null}::text, ${write.at}::timestamptz
      from box where ${mail.content !== null}::boolean
      on conflict (message_id) do nothing
    ),
    -- Claiming a body that was stored in advance makes it searchable.
    claimed as (
      update message_content c set identity_id = ${identity.id}::uuid
      from box where ${mail.content === null}::boolean and c.message_id = ${mail.message_id}::uuid
    ),
    raised as (
      update folder f set uid_next = f.uid_next + 1 from target cross join box where f.id = target.id
      returning f.id, f.uid_next - 1 as uid
    ),
    put as (
      insert into placed (folder_id, uid, identity_id, message_id, deleted, draft, modseq)
      select r.id, r.uid, ${identity.id}::uuid, ${mail.message_id}::uuid, ${change.deleted ?? false}::boolean,
             ${change.draft ?? false}::boolean, box.modseq
      from raised r cross join box
    )`,
    {
      columns: sql`
        (select uid_validity from target) as uid_validity, (select uid from raised) as uid, (select uid from earlier) as again,
        coalesce((select bytes_used from box), 0)::float8 as used`,
    },
  )
  if (row.uid_validity === null) return yield* new FolderRefused({ reason: "missing" })
  const uid = row.uid ?? row.again
  if (uid === null) return yield* new FolderRefused({ reason: "full" })
  yield* NearlyFull.warn(write, row.used, quotaBytes)
  return { uid_validity: row.uid_validity, uid }
})
