/**
 * Shows subaddress tags as folders, if the Mailbox's setting enables it: a message is in `Tags/<tag>` for each of its
 * tags, in addition to INBOX. Messages are filed when a client lists its folders (`FileTags`), so receiving mail costs nothing
 * extra. The last filed UID is remembered, and messages that a client removed stay removed. Senders choose the tag, so
 * the number of tag folders is limited; mail for further tags is only in INBOX.
 */
import { Effect } from "effect"
import { commit, type Write } from "../../actor/Write.ts"
import type { Sql } from "../../store/Database.ts"
import { made } from "./FolderCreation.ts"

export const limits = {
  /** Maximum number of tag folders. */
  folders: 200,
  /** Messages filed per statement, each counted once per tag. The last message may exceed it. */
  places: 1_000,
}

const above = "Tags"
/** Tags that can be folder names unchanged. */
const plain = "^[a-z0-9][a-z0-9._=-]{0,63}$"

/** Returns whether messages wait to be filed. */
export const isWaiting = (sql: Sql, identityId: string) =>
  Effect.map(
    sql<{ waiting: boolean }>`
      select exists (
        select from message m where m.identity_id = b.identity_id and m.tag is not null and m.uid > b.tags_filed_uid
      ) as waiting
      from mailbox b where b.identity_id = ${identityId}::uuid and b.tag_folders`,
    ([row]) => row?.waiting === true,
  )

/** A range of UIDs, without the first and with the last. */
interface Batch {
  readonly after: number
  readonly last: number
}

/**
 * Returns the next messages to file, undefined if there are none. Mail that arrives from here on is left to the next
 * batch, since folders are made for the tags of this one only.
 */
const nextBatch = ({ sql, identity }: Write) =>
  Effect.map(
    sql<{ after: number; last: number | null }>`
      select b.tags_filed_uid as after, (
        select max(uid) from (
          select uid, sum(tags) over (order by uid) - tags as earlier from (
            select m.uid, cardinality(m.tags) as tags from message m
            where m.identity_id = b.identity_id and m.tag is not null and m.uid > b.tags_filed_uid
            order by m.uid limit ${limits.places}
          ) next
        ) next where earlier < ${limits.places}
      ) as last
      from mailbox b where b.identity_id = ${identity.id}::uuid and b.tag_folders`,
    ([row]): Batch | undefined => (row === undefined || row.last === null ? undefined : { ...row, last: row.last }),
  )

/** Rows of `message m` with each `tag` of a batch. */
const tagged = ({ sql, identity }: Write, { after, last }: Batch) => sql`
  message m cross join unnest(m.tags) with ordinality as t (tag, place)
  where m.identity_id = ${identity.id}::uuid and m.tag is not null and m.uid > ${after}::int and m.uid <= ${last}::int`

/** Creates the missing folders for the tags of a batch. */
const makeFolders = Effect.fnUntraced(function* (write: Write, batch: Batch) {
  const { sql, identity } = write
  const rows = yield* sql<{ name: string }>`
    select ${`${above}/`}::text || t.tag as name from (
      select t.tag, min(array[m.uid, t.place]) as first from ${tagged(write, batch)} and t.tag ~ ${plain}::text group by t.tag
    ) t
    where not exists (
      select from folder f where f.identity_id = ${identity.id}::uuid and f.name = ${`${above}/`}::text || t.tag)
    order by t.first
    limit greatest(0, ${limits.folders} - (
      select count(*) from folder f where f.identity_id = ${identity.id}::uuid and starts_with(f.name, ${`${above}/`}::text)))`
  if (rows.length === 0) return
  const folders = [above, ...rows.map(({ name }) => name)].map((name) => ({ name, use: null }))
  yield* commit(
    write,
    sql`
    ${made(write, folders)},
    subscribed as (
      insert into folder_subscription (identity_id, name) select ${identity.id}::uuid, name from made on conflict do nothing
    )`,
  )
})

/** Files a batch; `left` says whether more messages wait. */
export const file = Effect.fnUntraced(function* (write: Write) {
  const { sql, identity } = write
  const batch = yield* nextBatch(write)
  if (batch === undefined) return { left: false }
  yield* makeFolders(write, batch)
  yield* commit(
    write,
    sql`
    chosen as materialized (
      select next.id, f.id as folder_id, row_number() over (partition by f.id order by next.uid)::int as n
      from (select m.id, m.uid, t.tag from ${tagged(write, batch)} and exists (select from fence)) next
      join folder f on f.identity_id = ${identity.id}::uuid and f.name = ${`${above}/`}::text || next.tag
      where not exists (select from placed p where p.message_id = next.id and p.folder_id = f.id)
    ),
    box as (
      update mailbox set modseq = modseq + 1, tags_filed_uid = ${batch.last}::int
      where identity_id = ${identity.id}::uuid and exists (select from fence) returning modseq
    ),
    raised as (
      update folder f set uid_next = f.uid_next + c.count
      from box, (select folder_id, count(*)::int as count from chosen group by folder_id) c where f.id = c.folder_id
      returning f.id, f.uid_next - c.count as first
    ),
    put as (
      insert into placed (folder_id, uid, identity_id, message_id, modseq)
      select r.id, r.first + c.n - 1, ${identity.id}::uuid, c.id, box.modseq
      from chosen c join raised r on r.id = c.folder_id cross join box
    )`,
  )
  return { left: yield* isWaiting(sql, identity.id) }
})
