/**
 * Shows subaddress tags as folders, if the Mailbox's setting enables it: a message sent to a tag is in `Tags/<tag>` in
 * addition to INBOX. Messages are filed when a client lists its folders (`FileTags`), so receiving mail costs nothing
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
  /** Messages filed per statement. */
  messages: 1_000,
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

/** Creates the missing folders for the tags of the next messages. */
const makeFolders = Effect.fnUntraced(function* (write: Write, filed: number) {
  const { sql, identity } = write
  const rows = yield* sql<{ name: string }>`
    select ${`${above}/`}::text || t.tag as name from (
      select tag, min(uid) as uid from (
        select tag, uid from message
        where identity_id = ${identity.id}::uuid and tag is not null and uid > ${filed}::int
        order by uid limit ${limits.messages}
      ) next where tag ~ ${plain}::text group by tag
    ) t
    where not exists (
      select from folder f where f.identity_id = ${identity.id}::uuid and f.name = ${`${above}/`}::text || t.tag)
    order by t.uid
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
  const [box] = yield* sql<{ filed: number }>`
    select tags_filed_uid as filed from mailbox where identity_id = ${identity.id}::uuid and tag_folders`
  if (box === undefined) return { left: false }
  yield* makeFolders(write, box.filed)
  const { count } = yield* commit<{ count: number }>(
    write,
    sql`
    next as materialized (
      select id, uid, tag from message
      where identity_id = ${identity.id}::uuid and tag is not null and uid > ${box.filed}::int and exists (select from fence)
      order by uid limit ${limits.messages}
    ),
    chosen as materialized (
      select next.id, f.id as folder_id, row_number() over (partition by f.id order by next.uid)::int as n
      from next join folder f on f.identity_id = ${identity.id}::uuid and f.name = ${`${above}/`}::text || next.tag
      where not exists (select from placed p where p.message_id = next.id and p.folder_id = f.id)
    ),
    box as (
      update mailbox set modseq = modseq + 1, tags_filed_uid = (select max(uid) from next)
      where identity_id = ${identity.id}::uuid and exists (select from next) returning modseq
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
    { columns: sql`(select count(*)::int from next) as count` },
  )
  return { left: count === limits.messages }
})
