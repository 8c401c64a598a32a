/** Where messages stand: common table expressions that place them in a folder, and that take them out of all. */
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import type { Statement } from "effect/sql"
import type { Sql } from "../../store/Database.ts"

/**
 * CTE `placed_new`: puts the messages of CTE `from` (`id`, `uid` of the Mailbox, `modseq`) into the folder of the use,
 * with UIDs in the order they arrived. An Identity of before folders gets them with its first session.
 */
export const placed = (
  sql: Sql,
  identityId: string,
  from: Statement.Fragment,
  use: FolderUse,
): Statement.Fragment => sql`
    place_for as (
      update folder set uid_next = uid_next + added.count
      from (select count(*)::int as count from ${from}) added
      where identity_id = ${identityId}::uuid and use = ${use}::text and added.count > 0
      returning folder.id, uid_next - added.count as first
    ),
    placed_new as (
      insert into placed (folder_id, uid, identity_id, message_id, draft, modseq)
      select p.id, p.first + (row_number() over (order by a.uid))::int - 1, ${identityId}::uuid, a.id, ${use === "drafts"}::boolean, a.modseq
      from ${from} a cross join place_for p
    )`

/** CTE `vanished_all`: takes the messages of CTE `gone` out of every folder; CTE `box` has the change's number. */
export const unplaced = (sql: Sql): Statement.Fragment => sql`
    unplaced as (delete from placed p using gone where p.message_id = gone.id returning p.folder_id, p.uid),
    vanished_all as (
      insert into vanished (folder_id, uid, modseq) select u.folder_id, u.uid, box.modseq from unplaced u cross join box
    )`

/** The highest UID that is ever given: the end of a range of the store's is one more. */
const highest = 0x7ffffffe

/** Ranges as a parameter of type `int4multirange`. */
export const multirange = (ranges: ReadonlyArray<readonly [number, number]>): string =>
  `{${ranges
    .filter(([first]) => first <= highest)
    .map(([first, last]) => `[${first},${Math.min(last, highest)}]`)
    .join(",")}}`
