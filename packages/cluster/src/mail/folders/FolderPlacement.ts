/** SQL fragments that place messages in folders and remove them from all folders. */
import type { FolderUse, UidRanges } from "@svc/domain/mail/FolderProtocol"
import type { Statement } from "effect/sql"
import type { Sql } from "../../store/Database.ts"

/**
 * CTE `placed_new`: puts the messages of CTE `from` (`id`, `uid` of the Mailbox, `modseq`) into the folder with this
 * use and assigns UIDs in order of arrival. `identityId` may be a column of `from`.
 */
export const placed = (
  sql: Sql,
  identityId: string | Statement.Fragment,
  from: Statement.Fragment,
  use: FolderUse,
): Statement.Fragment => sql`
    place_for as (
      update folder set uid_next = uid_next + added.count
      from (select ${identityId}::uuid as identity_id, count(*)::int as count from ${from} group by 1) added
      where folder.identity_id = added.identity_id and folder.use = ${use}::text
      returning folder.id, folder.identity_id, uid_next - added.count as first
    ),
    placed_new as (
      insert into placed (folder_id, uid, identity_id, message_id, draft, modseq)
      select p.id, p.first + (row_number() over (partition by p.id order by a.uid))::int - 1, p.identity_id, a.id, ${use === "drafts"}::boolean, a.modseq
      from (select ${identityId}::uuid as identity_id, id, uid, modseq from ${from}) a
      join place_for p on p.identity_id = a.identity_id
    )`

/**
 * CTE `vanished_all`: removes the messages of CTE `gone` from every folder; CTE `box` has the value of the change
 * counter.
 */
export const unplaced = (sql: Sql): Statement.Fragment => sql`
    unplaced as (delete from placed p using gone where p.message_id = gone.id returning p.folder_id, p.uid),
    vanished_all as (
      insert into vanished (folder_id, uid, modseq) select u.folder_id, u.uid, box.modseq from unplaced u cross join box
    )`

/** The highest UID ever assigned: PostgreSQL stores the exclusive end of a range, which is one more. */
const highest = 0x7ffffffe

/** Converts ranges to a parameter of type `int4multirange`. */
const multirange = (ranges: UidRanges): string =>
  `{${ranges
    .filter(([first]) => first <= highest)
    .map(([first, last]) => `[${first},${Math.min(last, highest)}]`)
    .join(",")}}`

/**
 * Condition: the UID of `placed p` is in the ranges. The lower and upper bounds are repeated so that the index can be
 * used.
 */
export const among = (sql: Sql, ranges: UidRanges): Statement.Fragment => {
  const first = ranges.reduce((least, [first]) => Math.min(least, first), highest)
  const last = ranges.reduce((most, [, last]) => Math.max(most, last), 0)
  return sql`p.uid between ${first}::int and ${Math.min(last, highest)}::int and p.uid <@ ${multirange(ranges)}::int4multirange`
}
