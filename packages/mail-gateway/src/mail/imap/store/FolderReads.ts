/** Queries of a Mailbox's folders. Each result comes from one statement, so it is consistent. */
import type { FolderUse } from "@svc/domain/mail/FolderProtocol"
import { among } from "@svc/cluster/mail/folders/FolderPlacement"
import { orUnavailable, type Reads } from "@svc/cluster/store/Database"
import { Effect, Option, Stream } from "effect"
import type { Ranges } from "../protocol/Sets.ts"
import type { Changes, Folder, Folders, Marked, Opened, Status, Wanted } from "../session/Store.ts"
import { type MarkRow, marked, type MessageRow, type PackedMarks, unpacked } from "./Rows.ts"

type Sql = Reads["Service"]

/** Messages per database response: only flags, with ids, with structure, with bytes. */
const pages = { marks: 10_000, stored: 2_000, structure: 500, bytes: 50 }
/** Messages up to this size (bytes) are returned with their bytes; larger ones are read in slices. */
const small = 32 * 1024

export const make = (sql: Sql, identityId: string) => {
  const marks = sql`p.uid, m.seen, m.flagged, m.answered, p.deleted, p.draft, m.labels, m.tags,
    greatest(m.modseq, p.modseq)::float8 as modseq`
  const detail = sql`m.id, m.thread_id, m.size, m.received_at, m.received_zone`

  /** Condition for the selected messages after a UID. */
  const selection = ({ id }: Folder, uids: Ranges, since: number | undefined, after: number) => sql`
    p.folder_id = ${id}::uuid and p.uid > ${after}::int
      and ${among(sql, uids)}
      ${since === undefined ? sql`` : sql`and greatest(m.modseq, p.modseq) > ${since}::bigint`}`

  return {
    folders: Effect.map(
      sql<{
        id: string | null
        name: string
        use: FolderUse | null
        uid_validity: number
        uid_next: number
        subscribed: boolean
      }>`
        select f.id, coalesce(f.name, s.name) as name, f.use, f.uid_validity, f.uid_next, s.name is not null as subscribed
        from (select * from folder where identity_id = ${identityId}::uuid) f
        full join (select * from folder_subscription where identity_id = ${identityId}::uuid) s on s.name = f.name`,
      (rows): Folders => ({
        folders: rows.flatMap((row) =>
          row.id === null
            ? []
            : [{ id: row.id, name: row.name, use: row.use, uidValidity: row.uid_validity, uidNext: row.uid_next }],
        ),
        subscribed: new Set(rows.flatMap(({ name, subscribed }) => (subscribed ? [name] : []))),
      }),
    ),

    status: ({ id }: Folder) =>
      Effect.map(
        sql<{
          messages: number
          unseen: number
          deleted: number
          size: number
          modseq: number
          uid_next: number
          recent: number
        }>`
          select count(m.id)::int as messages, (count(m.id) filter (where not m.seen))::int as unseen,
                 (count(m.id) filter (where p.deleted))::int as deleted,
                 (count(m.id) filter (where p.uid >= (select recent_from from folder where id = ${id}::uuid)))::int as recent, coalesce(sum(m.size), 0)::float8 as size,
                 (select modseq::float8 from mailbox where identity_id = ${identityId}::uuid) as modseq,
                 (select uid_next from folder where id = ${id}::uuid) as uid_next
          from placed p join message m on m.id = p.message_id where p.folder_id = ${id}::uuid`,
        ([row]): Status => ({ ...row!, uidNext: row?.uid_next ?? 1 }),
      ),

    open: ({ id }: Folder) =>
      Effect.map(
        sql<{
          modseq: number
          uid_next: number
          recent_from: number
          uids: ReadonlyArray<number> | null
          first_unseen: number | null
          keywords: ReadonlyArray<string> | null
        }>`
          select b.modseq::float8 as modseq, f.uid_next, f.recent_from, held.*
          from folder f join mailbox b on b.identity_id = f.identity_id
          cross join lateral (
            select array_agg(p.uid order by p.uid) as uids, min(p.uid) filter (where not m.seen) as first_unseen,
                   (select array_agg(distinct label) from placed q join message n on n.id = q.message_id
                    cross join unnest(n.labels) as l (label) where q.folder_id = f.id and n.labels <> '{}') as keywords
            from placed p join message m on m.id = p.message_id where p.folder_id = f.id
          ) held
          where f.id = ${id}::uuid`,
        ([row]): Opened => ({
          modseq: row?.modseq ?? 1,
          uidNext: row?.uid_next ?? 1,
          uids: row?.uids ?? [],
          recentFrom: row?.recent_from ?? 1,
          firstUnseen: row?.first_unseen ?? undefined,
          keywords: row?.keywords ?? [],
        }),
      ),

    changes: ({ id }: Folder, since: number) =>
      Effect.map(
        sql<{ kind: "now" | "vanished" | "changed"; uid_next: number; recent_from: number } & MarkRow>`
          select 'now' as kind, 0 as uid, false as seen, false as flagged, false as answered, false as deleted,
                 false as draft, '{}'::text[] as labels, '{}'::text[] as tags, b.modseq::float8 as modseq, f.uid_next, f.recent_from
          from folder f join mailbox b on b.identity_id = f.identity_id where f.id = ${id}::uuid
          union all
          select 'vanished', v.uid, false, false, false, false, false, '{}', '{}', v.modseq::float8, 0, 0
          from vanished v where v.folder_id = ${id}::uuid and v.modseq > ${since}::bigint
          union all
          select 'changed', p.uid, m.seen, m.flagged, m.answered, p.deleted, p.draft, m.labels, m.tags,
                 greatest(m.modseq, p.modseq)::float8, 0, 0
          from (
            select uid, message_id from placed where folder_id = ${id}::uuid and modseq > ${since}::bigint
            union
            select q.uid, q.message_id from message n join placed q on q.message_id = n.id and q.folder_id = ${id}::uuid
            where n.identity_id = ${identityId}::uuid and n.modseq > ${since}::bigint
          ) c join placed p on p.folder_id = ${id}::uuid and p.uid = c.uid join message m on m.id = p.message_id
          order by uid`,
        (rows): Changes => {
          let now: (typeof rows)[number] | undefined
          const changed: Array<Marked> = []
          const vanished: Array<number> = []
          for (const row of rows) {
            if (row.kind === "changed") changed.push(marked(row))
            else if (row.kind === "vanished") vanished.push(row.uid)
            else now = row
          }
          return {
            modseq: now?.modseq ?? since,
            uidNext: now?.uid_next ?? 1,
            recentFrom: now?.recent_from ?? 1,
            changed,
            vanished,
            isGone: now === undefined,
          }
        },
      ),

    /** Streams pages of flags ordered by UID, each with the change counter at the time of the read. */
    marks: (folder: Folder, uids: Ranges, { since }: Wanted) =>
      Stream.paginate(0, (after: number) =>
        Effect.map(
          orUnavailable(sql<PackedMarks & { readonly counter: number | null }>`
            select (select modseq::float8 from mailbox where identity_id = ${identityId}::uuid) as counter,
                   string_agg(int4send(uid) || int8send(modseq) || int2send(marks), ''::bytea order by uid) as packed,
                   (json_agg(json_build_array(uid, labels, tags)) filter (where labels <> '{}' or tags <> '{}'))::text as labelled
            from (
              select p.uid, greatest(m.modseq, p.modseq) as modseq, m.labels, m.tags,
                     (m.seen::int + 2 * m.flagged::int + 4 * m.answered::int + 8 * p.deleted::int + 16 * p.draft::int)::int2 as marks
              from placed p join message m on m.id = p.message_id
              where ${selection(folder, uids, since, after)}
              order by p.uid limit ${pages.marks}
            ) page`),
          ([row]) => {
            const page = row === undefined ? [] : unpacked(row)
            const last = page.at(-1)
            return [
              [{ messages: page, counter: row?.counter ?? 1 }],
              page.length < pages.marks || last === undefined ? Option.none() : Option.some(last.uid),
            ] as const
          },
        ),
      ),

    /** Streams pages of messages ordered by UID. */
    messages: (folder: Folder, uids: Ranges, { since, bytes = false }: Wanted, structure: boolean) => {
      const page = bytes ? pages.bytes : structure ? pages.structure : pages.stored
      return Stream.paginate(0, (after: number) =>
        Effect.map(
          orUnavailable(sql<MessageRow>`
            select ${marks}, ${detail}, ${structure ? sql`c.structure, m.summary ->> 'snippet' as snippet` : sql`'' as snippet`}
              ${bytes ? sql`, case when m.size <= ${small}::int then c.raw end as raw` : sql``}
            from placed p join message m on m.id = p.message_id
            ${structure || bytes ? sql`left join message_content c on c.message_id = m.id` : sql``}
            where ${selection(folder, uids, since, after)}
            order by p.uid limit ${page}`),
          (rows) => {
            const last = rows.at(-1)
            return [rows, rows.length < page || last === undefined ? Option.none() : Option.some(last.uid)] as const
          },
        ),
      )
    },
  }
}
