/**
 * Shows API drafts in the IMAP Drafts folder. Each draft is represented by a generated message, its picture;
 * `draft_picture` stores the message and the version it shows. Drafts are written outside the actor. When a client
 * opens the folder, the gateway adds pictures of new versions ({@link waiting}, then `AppendMail` with the draft) and
 * removes outdated ones (`HideDrafts`). If a client removes a picture from the folder, the draft is deleted.
 */
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { Write } from "../../actor/Write.ts"
import type { Sql } from "../../store/Database.ts"

/** A draft and the version that is shown. */
export interface Pictured {
  readonly id: string
  readonly version: number
}

/** Returns the message that shows the draft already. */
export const pictureOf = (sql: Sql, draft: Pictured | undefined) =>
  sql`(select shown.message_id from draft_picture shown where shown.draft_id = ${draft?.id ?? null}::uuid)`

/** CTE `pictured`: records the message of CTE `box` as the draft's picture. */
export const pictured = (sql: Sql, identityId: string, messageId: string, draft: Pictured | undefined) => sql`
    pictured as (
      insert into draft_picture (draft_id, identity_id, message_id, version)
      select ${draft?.id ?? null}::uuid, ${identityId}::uuid, ${messageId}::uuid, ${draft?.version ?? 1}::int from box
      where ${draft !== undefined}::boolean
    )`

/**
 * CTE `spent`, after CTE `box`: deletes the drafts whose pictures were removed from the Drafts folder, unless the draft
 * was changed meanwhile.
 */
export const spent = (sql: Sql, taken: Statement.Fragment, folderId: string, when: Statement.Fragment) => sql`
    unpictured as (
      delete from draft_picture shown using box, ${taken} t
      where shown.message_id = t.message_id and ${when}
        and exists (select from folder where id = ${folderId}::uuid and use = 'drafts')
      returning shown.draft_id, shown.version
    ),
    spent as (delete from draft d using unpictured u where d.id = u.draft_id and d.version = u.version)`

/** Condition on `placed p`: its message shows a draft that was changed or deleted. */
export const isStale = ({ sql, identity }: Write) => sql`p.message_id in (
  select shown.message_id from draft_picture shown
  where shown.identity_id = ${identity.id}::uuid
    and not exists (select from draft d where d.id = shown.draft_id and d.version = shown.version))`

export const folderOf = ({ sql, identity }: Write) =>
  Effect.map(
    sql<{ id: string }>`select id from folder where identity_id = ${identity.id}::uuid and use = 'drafts'`,
    ([row]) => row?.id,
  )

/** Returns up to `atMost` drafts without a picture, and whether outdated pictures exist. */
export const waiting = (sql: Sql, identityId: string, atMost: number) =>
  Effect.map(
    sql<{ id: string | null; version: number; stale: boolean }>`
      select d.id, d.version, look.stale
      from (
        select exists (
          select from draft_picture shown where shown.identity_id = ${identityId}::uuid
            and not exists (select from draft d where d.id = shown.draft_id and d.version = shown.version)) as stale
      ) look
      left join lateral (
        select d.id, d.version from draft d
        where d.identity_id = ${identityId}::uuid
          and not exists (select from draft_picture shown where shown.draft_id = d.id and shown.version = d.version)
        order by d.id limit ${atMost}
      ) d on true`,
    (rows) => ({
      stale: rows[0]?.stale === true,
      drafts: rows.flatMap(({ id, version }): ReadonlyArray<Pictured> => (id === null ? [] : [{ id, version }])),
    }),
  )

/** Returns the stored content of a draft and when it was written. */
export const contentOf = (sql: Sql, { id, version }: Pictured) =>
  Effect.map(
    sql<{ content: string; updated_at: Date }>`
      select content, updated_at from draft where id = ${id}::uuid and version = ${version}::int`,
    ([row]) => row,
  )
