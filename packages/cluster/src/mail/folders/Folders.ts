/**
 * Actor commands that create, rename, delete and subscribe to folders. Each command is one commit; none raises an
 * Event.
 */
import {
  type FolderFlagChange,
  FolderRefused,
  type FolderUse,
  limits,
  type UidRanges,
} from "@svc/domain/mail/FolderProtocol"
import { limits as flagLimits } from "@svc/domain/mail/Flags"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { type ActorHandlers, onceElse } from "../../actor/ActorHandlers.ts"
import { commit, type Write } from "../../actor/Write.ts"
import type { Sql } from "../../store/Database.ts"
import * as FolderContents from "./FolderContents.ts"
import { made } from "./FolderCreation.ts"
import * as TagFolders from "./TagFolders.ts"
import { labelsAfter } from "../Flags.ts"
import { among } from "./FolderPlacement.ts"

interface Named {
  readonly org_id: string
  readonly name: string
}

export const handlers = (
  { onReady }: ActorHandlers,
  /** Capacity of a Mailbox in bytes. */
  quota: { readonly mailboxBytes: number },
) => ({
  CreateFolder: onReady(create),
  DeleteFolder: onReady(remove),
  RenameFolder: onReady(rename),
  SubscribeFolder: onReady(subscribe),
  ChangeFolderFlags: onReady(changeFlags),
  AppendMail: onReady((write, appended: FolderContents.Appended) =>
    FolderContents.append(write, appended, quota.mailboxBytes),
  ),
  CopyMessages: onReady(onceElse("CopyMessages", FolderContents.copy, FolderContents.copied)),
  ExpungeFolder: onReady(FolderContents.expunge),
  FileTags: onReady(TagFolders.file),
  HideDrafts: onReady(FolderContents.hideDrafts),
})

const own: ReadonlyArray<readonly [name: string, use: FolderUse]> = [
  ["INBOX", "inbox"],
  ["Sent", "sent"],
  ["Drafts", "drafts"],
  ["Junk", "junk"],
  ["Trash", "trash"],
]

/**
 * CTEs that create the standard folders for the Mailbox of CTE `box` (`identity_id`, `uid_validity`) and subscribe to
 * them.
 */
export const provisioned = (sql: Sql, at: Date | Statement.Fragment): Statement.Fragment => sql`
  folders as (
    insert into folder (id, identity_id, name, use, uid_validity, created_at)
    select gen_random_uuid(), box.identity_id, own.name, own.use, box.uid_validity - ${own.length}::int + own.n::int, ${at}::timestamptz
    from box cross join unnest(${own.map(([name]) => name)}::text[], ${own.map(([, use]) => use)}::text[])
      with ordinality as own (name, use, n)
    on conflict do nothing
    returning identity_id, name
  ),
  subscribed as (
    insert into folder_subscription (identity_id, name) select identity_id, name from folders on conflict do nothing
  )`

/** Number of UID validities that {@link provisioned} assigns. */
export const ownFolders = own.length

/** Returns the names of a folder's ancestors, followed by its own name. */
const lineage = (name: string): ReadonlyArray<string> => {
  const levels = name.split("/")
  return levels.map((_, at) => levels.slice(0, at + 1).join("/"))
}

/** `count` is the number of all folders, `present` how many of the folders that a command needs exist. */
interface Counts {
  readonly count: number
  readonly present: number
}

const counts = (sql: Sql, wanted: ReadonlyArray<string>) => sql`
  count(*)::int as count, (count(*) filter (where name = any(${[...wanted]}::text[])))::int as present`

/** Fails if the folders that a command creates exceed the limit. */
const assertRoom = ({ count, present }: Counts, wanted: number) =>
  wanted > present && count + wanted - present > limits.folders
    ? Effect.fail(new FolderRefused({ reason: "too_many" }))
    : Effect.void

const create = Effect.fnUntraced(function* (write: Write, { name, use }: Named & { readonly use: FolderUse | null }) {
  const { sql, identity } = write
  const levels = lineage(name)
  const [known] = yield* sql<Counts & { exists: boolean; taken: boolean }>`
    select ${counts(sql, levels)}, coalesce(bool_or(name = ${name}::text), false) as exists,
           coalesce(bool_or(use = ${use}::text), false) as taken
    from folder where identity_id = ${identity.id}::uuid`
  if (known!.exists) return yield* new FolderRefused({ reason: "exists" })
  if (known!.taken) return yield* new FolderRefused({ reason: "taken" })
  yield* assertRoom(known!, levels.length)
  yield* commit(
    write,
    made(
      write,
      levels.map((level) => ({ name: level, use: level === name ? use : null })),
    ),
  )
})

const needed = new Set(["inbox", "sent", "drafts"])

const remove = Effect.fnUntraced(function* (write: Write, { name }: Named) {
  const { sql, identity } = write
  const [known] = yield* sql<{ id: string; use: string | null }>`
    select id, use from folder where identity_id = ${identity.id}::uuid and name = ${name}::text`
  if (known === undefined) return yield* new FolderRefused({ reason: "missing" })
  // Incoming and sent mail and drafts need their folders.
  if (known.use !== null && needed.has(known.use)) return yield* new FolderRefused({ reason: "inbox" })
  while (yield* FolderContents.removeFromFolder(write, known.id, sql`true`));
  yield* commit(write, sql`gone as (delete from folder where id = ${known.id}::uuid and exists (select from fence))`)
})

const rename = Effect.fnUntraced(function* (
  write: Write,
  { from, to }: { readonly org_id: string; readonly from: string; readonly to: string },
) {
  const { sql, identity, at } = write
  const above = lineage(to).slice(0, -1)
  const isInbox = from === "INBOX"
  const [known] = yield* sql<Counts & { exists: boolean; taken: boolean }>`
    select ${counts(sql, above)},
           coalesce(bool_or(name = ${from}::text or starts_with(name, ${from}::text || '/')), false) as exists,
           coalesce(bool_or(name = ${to}::text or starts_with(name, ${to}::text || '/')), false) as taken
    from folder where identity_id = ${identity.id}::uuid`
  if (!known!.exists) return yield* new FolderRefused({ reason: "missing" })
  if (known!.taken || to.startsWith(`${from}/`)) return yield* new FolderRefused({ reason: "exists" })
  // Renaming INBOX creates another one.
  yield* assertRoom(known!, above.length + (isInbox ? 1 : 0))
  yield* commit(
    write,
    sql`
    box as (
      update mailbox set uid_validity = uid_validity + ${above.length + 1}::int
      where identity_id = ${identity.id}::uuid and exists (select from fence) returning uid_validity
    ),
    renamed as (
      update folder f
      set name = ${to}::text || substr(f.name, length(${from}::text) + 1),
          use = case when f.use = 'inbox' then null else f.use end
      where f.identity_id = ${identity.id}::uuid and exists (select from box)
        and (f.name = ${from}::text or (${!isInbox}::boolean and starts_with(f.name, ${from}::text || '/')))
      returning f.id
    ),
    -- Runs after the rename, which frees the name.
    made as (
      insert into folder (id, identity_id, name, use, uid_validity, created_at)
      select gen_random_uuid(), ${identity.id}::uuid, level.name, case when level.name = 'INBOX' then 'inbox' end,
             box.uid_validity - level.n::int + 1, ${at}::timestamptz
      from box cross join unnest(${isInbox ? ["INBOX", ...above] : above}::text[]) with ordinality as level (name, n)
      where (select count(*) from renamed) > 0
      on conflict do nothing
    )`,
  )
})

const subscribe = Effect.fnUntraced(function* (
  write: Write,
  { name, subscribed }: Named & { readonly subscribed: boolean },
) {
  const { sql, identity } = write
  if (!subscribed) {
    yield* commit(
      write,
      sql`gone as (
        delete from folder_subscription where identity_id = ${identity.id}::uuid and name = ${name}::text and exists (select from fence)
      )`,
    )
    return
  }
  const [known] = yield* sql<{ count: number }>`
    select count(*)::int as count from folder_subscription where identity_id = ${identity.id}::uuid`
  if (known!.count >= 2 * limits.folders) return yield* new FolderRefused({ reason: "too_many" })
  yield* commit(
    write,
    sql`added as (
      insert into folder_subscription (identity_id, name) select ${identity.id}::uuid, ${name}::text from fence on conflict do nothing
    )`,
  )
})

interface FlagChange {
  readonly org_id: string
  readonly folder_id: string
  readonly uids: UidRanges
  readonly change: FolderFlagChange
  readonly unchanged_since?: number | undefined
}

interface FlagRow {
  readonly overfull: boolean
  readonly modified: ReadonlyArray<number>
  readonly modseq: number
}

/**
 * STORE (RFC 9051 section 6.4.6): changes flags of messages in one folder, in one commit with one value of the
 * Mailbox's change counter. Most flags belong to the message; `deleted` and `draft` belong to its place in the folder.
 * `unchanged_since` is compared with both.
 */
const changeFlags = Effect.fnUntraced(function* (
  write: Write,
  { folder_id, uids, change, unchanged_since }: FlagChange,
) {
  const { sql, identity } = write
  const { seen = null, flagged = null, answered = null, deleted = null, draft = null } = change
  const row = yield* commit<FlagRow>(
    write,
    sql`
    requested as materialized (
      select m.id, p.uid, after.*,
             coalesce(greatest(m.modseq, p.modseq) > ${unchanged_since ?? null}::bigint, false) as modified,
             cardinality(after.labels) > ${flagLimits.labels}::int as overfull,
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
      select * from requested where (message_differs or place_differs) and not modified and not overfull
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
        exists (select from requested where overfull and not modified) as overfull,
        array(select uid from requested where modified order by uid) as modified,
        coalesce((select modseq from box), (select modseq from mailbox where identity_id = ${identity.id}::uuid), 0)::float8 as modseq`,
    },
  )
  if (row.overfull) return yield* new FolderRefused({ reason: "too_many_labels" })
  return { modified: row.modified, modseq: row.modseq }
})
