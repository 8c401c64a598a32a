/** The sort order of SORT and THREAD (RFC 5256 sections 2 and 3). */
import { Effect } from "effect"
import { among } from "@svc/cluster/mail/folders/FolderPlacement"
import { orUnavailable, type Reads } from "@svc/cluster/store/Database"
import type { SortKey } from "../protocol/Command.ts"
import type { SearchKey } from "../protocol/SearchKeys.ts"
import * as Sets from "../protocol/Sets.ts"
import * as AddressList from "../../mime/AddressList.ts"
import * as Decode from "../../mime/Decode.ts"
import * as BaseSubject from "../session/BaseSubject.ts"
import * as CooperativeWork from "../session/CooperativeWork.ts"
import type { Folder, Threadable } from "../session/Store.ts"

type Sql = Reads["Service"]

interface Row {
  readonly uid: number
  readonly size: number
  readonly received_at: Date
  readonly date: string | null
  readonly subject: string
  /** The address fields as written. */
  readonly from: string | null
  readonly to: string | null
  readonly cc: string | null
}

const field = (sql: Sql, name: "cc" | "date" | "from" | "to", characters = 1_000) =>
  sql`(select left(one ->> 'value', ${sql.literal(String(characters))}) from jsonb_array_elements(c.headers) as h (one)
    where lower(one ->> 'name') = ${sql.literal(`'${name}'`)} limit 1)`

/** Returns the time in the Date field, or the time of arrival if it has none. */
const sentAt = (date: string | null, received: Date): number => {
  const at = date === null ? NaN : Date.parse(date.replace(/\([^()]*\)/g, " ").trim())
  return Number.isNaN(at) ? received.getTime() : at
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

/** Returns the day as written, ignoring time and zone (RFC 9051 section 6.4.4, SENTON). */
const dayOf = (date: string | null, received: Date): string => {
  const [, day, name, year] = /(\d{1,2})\s+([A-Za-z]{3})[a-z]*\.?\s+(\d{4})/.exec(date ?? "") ?? []
  const month = name === undefined ? -1 : months.indexOf(name.toLowerCase())
  if (day === undefined || year === undefined || month < 0) return received.toISOString().slice(0, 10)
  return `${year}-${String(month + 1).padStart(2, "0")}-${day.padStart(2, "0")}`
}

/** Returns the first address or group of a field: its mailbox and its display name (RFC 5957). */
const first = (field: string | null) => {
  const [entry] = AddressList.grouped(field ?? "")
  const name = Decode.words(entry?.name ?? "")
  if (entry?.group !== undefined) return { mailbox: name, shown: name }
  const address = entry?.address || name
  const at = address.lastIndexOf("@")
  return { mailbox: (at < 0 ? address : address.slice(0, at)).replaceAll('"', ""), shown: name || address }
}
const local = (field: string | null) => first(field).mailbox.toUpperCase()
const display = (field: string | null) => first(field).shown.toUpperCase()
/** The value that each key compares. */
const values: Readonly<Record<SortKey["by"], (row: Row) => string | number>> = {
  ARRIVAL: ({ received_at }) => received_at.getTime(),
  DATE: ({ date, received_at }) => sentAt(date, received_at),
  SIZE: ({ size }) => size,
  SUBJECT: ({ subject }) => BaseSubject.of(subject).text,
  FROM: ({ from }) => local(from),
  TO: ({ to }) => local(to),
  CC: ({ cc }) => local(cc),
  DISPLAYFROM: ({ from }) => display(from),
  DISPLAYTO: ({ to }) => display(to),
}

/** Sorts rows, which are ordered by UID, by the keys and returns their UIDs. */
function* ordered(
  rows: ReadonlyArray<Row>,
  keys: ReadonlyArray<SortKey>,
): CooperativeWork.CooperativeWork<ReadonlyArray<number>> {
  const keyed = yield* CooperativeWork.each(rows, (row) => ({
    uid: row.uid,
    of: keys.map(({ by }) => values[by](row)),
  }))
  const inOrder = yield* CooperativeWork.sorted(keyed, (a, b) => {
    for (let n = 0; n < keys.length; n++) {
      const [one, other] = [a.of[n]!, b.of[n]!]
      if (one !== other) return one < other === keys[n]!.reverse ? 1 : -1
    }
    return a.uid - b.uid
  })
  return yield* CooperativeWork.each(inOrder, ({ uid }) => uid)
}

type Day = Extract<SearchKey, { readonly _tag: "Day" }>

interface Sent {
  readonly uid: number
  readonly received_at: Date
  readonly date: string | null
}

/** Returns the matching UIDs of each key. */
function* onDays(
  rows: ReadonlyArray<Sent>,
  keys: ReadonlyArray<Day>,
): CooperativeWork.CooperativeWork<ReadonlyMap<Day, Sets.Ranges>> {
  const found = keys.map((key) => ({ key, uids: new Array<number>() }))
  yield* CooperativeWork.each(rows, ({ uid, date, received_at }) => {
    const day = dayOf(date, received_at)
    for (const { key, uids } of found) {
      if (key.is === "before" ? day < key.day : key.is === "since" ? day >= key.day : day === key.day) uids.push(uid)
    }
  })
  return new Map(found.map(({ key, uids }) => [key, Sets.of(uids)]))
}

export const make = (sql: Sql) => ({
  sorted: ({ id }: Folder, uids: Sets.Ranges, keys: ReadonlyArray<SortKey>) =>
    Effect.flatMap(
      orUnavailable(sql<Row>`
        select p.uid, m.size, m.received_at, m.summary ->> 'subject' as subject, ${field(sql, "from")} as from,
               ${field(sql, "to")} as to, ${field(sql, "cc")} as cc, ${field(sql, "date")} as date
        from placed p join message m on m.id = p.message_id left join message_content c on c.message_id = m.id
        where p.folder_id = ${id}::uuid and ${among(sql, uids)} order by p.uid`),
      (rows) => CooperativeWork.done(() => ordered(rows, keys)),
    ),

  threadable: ({ id }: Folder, uids: Sets.Ranges) =>
    Effect.flatMap(
      orUnavailable(sql<{
        uid: number
        message_id: string | null
        references: ReadonlyArray<string> | null
        in_reply_to: string | null
        subject: string
        received_at: Date
        date: string | null
      }>`
        select p.uid, m.message_id, m.summary -> 'references' as references, m.summary ->> 'in_reply_to' as in_reply_to,
               m.summary ->> 'subject' as subject, m.received_at, ${field(sql, "date")} as date
        from placed p join message m on m.id = p.message_id left join message_content c on c.message_id = m.id
        where p.folder_id = ${id}::uuid and ${among(sql, uids)} order by p.uid`),
      (rows) =>
        CooperativeWork.done(() =>
          CooperativeWork.each(rows, (row): Threadable => {
            const references = row.references ?? []
            return {
              uid: row.uid,
              messageId: row.message_id,
              references: references.length > 0 || row.in_reply_to === null ? references : [row.in_reply_to],
              subject: row.subject,
              sent: sentAt(row.date, row.received_at),
            }
          }),
        ),
    ),

  /** Returns the messages whose Date field is before, on or since a day. */
  sent: ({ id }: Folder, days: ReadonlyArray<Day>) =>
    Effect.flatMap(
      orUnavailable(sql<Sent>`
        select p.uid, m.received_at, ${field(sql, "date")} as date
        from placed p join message m on m.id = p.message_id left join message_content c on c.message_id = m.id
        where p.folder_id = ${id}::uuid order by p.uid`),
      (rows) =>
        CooperativeWork.exclusive(
          rows.length,
          CooperativeWork.done(() => onDays(rows, days)),
        ),
    ),
})
