/**
 * Translates a search into a condition on `placed p`, `message m` and `message_content c`. Keys that SQL cannot
 * evaluate (the day in a message's Date field) are resolved to UIDs before.
 */
import { fromPublic } from "@svc/domain/Ids"
import { fold, separator } from "@svc/domain/mail/SearchText"
import { among } from "@svc/cluster/mail/folders/FolderPlacement"
import type { Reads } from "@svc/cluster/store/Database"
import type { Statement, SqlError } from "effect/sql"
import * as Grams from "@svc/cluster/mail/search/Grams"
import * as Segments from "@svc/cluster/mail/search/Segments"
import { Effect } from "effect"
import type { NumbersKey, SearchKey } from "../protocol/SearchKeys.ts"
import type { Ranges } from "../protocol/Sets.ts"

type Sql = Reads["Service"]

/** Index of the bodies in the search text. */
const bodies = 5

interface Resolved {
  readonly numbers: (set: NumbersKey) => Ranges
  readonly sent: (day: Extract<SearchKey, { readonly _tag: "Day" }>) => Ranges
  readonly now: Date
  readonly identityId: string
  /** Condition on the messages (`m`) that may contain a folded text; undefined if segments cannot tell. */
  readonly mayHave: (text: string) => Statement.Fragment | undefined
}

const marks: Readonly<Record<string, string>> = {
  "\\answered": "m.answered",
  "\\flagged": "m.flagged",
  "\\seen": "m.seen",
  "\\deleted": "p.deleted",
  "\\draft": "p.draft",
}

/** Whether the key needs the bodies or headers, which are in their own table. */
export const needsContent = (key: SearchKey, { mayHave }: Pick<Resolved, "mayHave">): boolean =>
  key._tag === "Header" || (key._tag === "Text" && !(key.in === "body" && mayHave(fold(key.text)) !== undefined))

export const condition = (sql: Sql, key: SearchKey, resolved: Resolved): Statement.Fragment => {
  const inside = (ranges: Ranges) => (ranges.length === 0 ? sql`false` : sql`(${among(sql, ranges)})`)
  const has = (text: Statement.Fragment, wanted: string) =>
    sql`strpos(lower(${text}), ${wanted.toLowerCase()}::text) > 0`
  /** Matches decoded names and addresses. */
  const people = (field: string, wanted: string) =>
    sql`exists (
      select from jsonb_array_elements(case jsonb_typeof(m.summary -> ${field}::text)
        when 'array' then m.summary -> ${field}::text when 'object' then jsonb_build_array(m.summary -> ${field}::text) else '[]' end) as a (one)
      where strpos(lower(concat_ws(' ', one ->> 'name', '<' || (one ->> 'address') || '>')), ${wanted.toLowerCase()}::text) > 0)`

  /** Matches a header field as written. */
  const field = (name: string, wanted: string) =>
    sql`exists (
      select from jsonb_array_elements(c.headers) as h (one) where lower(one ->> 'name') = ${name}::text
        and strpos(lower(one ->> 'value'), ${wanted.toLowerCase()}::text) > 0)`

  /** The day of INTERNALDATE. */
  const day = sql`((m.received_at at time zone 'UTC') + coalesce(m.received_zone, 0) * interval '1 minute')::date`
  /** Restricts to candidates in a subquery; in a join, each message would be checked. */
  const inBodies = (text: string) => {
    const mayHave = resolved.mayHave(text)
    return mayHave === undefined
      ? sql`strpos(split_part(c.search_text, ${separator}::text, ${bodies}::int), ${text}::text) > 0`
      : sql`m.id in (
          select b.message_id from message m join message_content b on b.message_id = m.id
          where m.identity_id = ${resolved.identityId}::uuid and ${mayHave}
            and strpos(split_part(b.search_text, ${separator}::text, ${bodies}::int), ${text}::text) > 0 offset 0)`
  }

  const of = (key: SearchKey): Statement.Fragment => {
    switch (key._tag) {
      case "All":
        return sql`true`
      case "And":
        return key.keys.map(of).reduce((all, one) => sql`${all} and ${one}`)
      case "Or":
        return sql`((${of(key.either)}) or (${of(key.or)}))`
      case "Not":
        return sql`not (${of(key.key)})`
      case "Flag": {
        const mark = Object.hasOwn(marks, key.flag) ? marks[key.flag] : undefined
        if (mark !== undefined) return sql.literal(mark)
        return sql`(m.labels @> array[${key.flag}::text] or m.tags @> array[${key.flag}::text])`
      }
      case "Numbers":
      case "Saved":
      case "Recent":
        return inside(resolved.numbers(key))
      case "Day":
        if (key.of === "sent") return inside(resolved.sent(key))
        switch (key.is) {
          case "before":
            return sql`${day} < ${key.day}::date`
          case "since":
            return sql`${day} >= ${key.day}::date`
          case "on":
            return sql`${day} = ${key.day}::date`
        }
        break
      case "Age": {
        const edge = new Date(resolved.now.getTime() - key.seconds * 1000)
        return key.is === "older"
          ? sql`m.received_at <= ${edge}::timestamptz`
          : sql`m.received_at >= ${edge}::timestamptz`
      }
      case "Size":
        return key.is === "larger" ? sql`m.size > ${key.bytes}::bigint` : sql`m.size < ${key.bytes}::bigint`
      case "Modseq":
        return sql`greatest(m.modseq, p.modseq) >= ${key.atLeast}::bigint`
      case "Id": {
        const uuid = fromPublic(key.of === "email" ? "msg_" : "thr_", key.id)
        if (uuid === undefined) return sql`false`
        return key.of === "email" ? sql`m.id = ${uuid}::uuid` : sql`m.thread_id = ${uuid}::uuid`
      }
      case "Header":
        return field(key.name, key.text)
      case "Text":
        if (key.text === "") return sql`true`
        switch (key.in) {
          case "subject":
            return sql`(${has(sql`m.summary ->> 'subject'`, key.text)} or ${field("subject", key.text)})`
          case "body":
            return inBodies(fold(key.text))
          case "text":
            return sql`(strpos(c.search_text, ${fold(key.text)}::text) > 0 or exists (
              select from jsonb_array_elements(c.headers) as h (one)
              where strpos(lower((one ->> 'name') || ': ' || (one ->> 'value')), ${key.text.toLowerCase()}::text) > 0))`
          default:
            return sql`(${people(key.in, key.text)} or ${field(key.in, key.text)})`
        }
    }
  }
  return of(key)
}

/** Segments per query. */
const atOnce = 64

/** Above every possible UID. */
const end = 0x7fffffff

/** Narrows body searches with the search segments of the Mailbox (`cluster/mail/search`). */
export const candidates = (sql: Reads["Service"]) => {
  const segments = Segments.make(sql)

  /** Returns a condition on `message m` for each of the folded texts that has a gram. */
  return Effect.fnUntraced(function* (
    identityId: string,
    texts: ReadonlyArray<string>,
  ): Effect.fn.Return<(text: string) => Statement.Fragment | undefined, SqlError.SqlError> {
    const conditions = new Map<string, Statement.Fragment>()
    const narrowing = texts.filter((text) => Grams.gramsOf([text]).length > 0)
    if (narrowing.length === 0) return () => undefined
    const built = yield* segments.built(identityId)
    for (const text of new Set(narrowing)) {
      const wanted = Grams.gramsOf([text])
      const uids: Array<number> = []
      const parts: Array<Statement.Fragment> = []
      for (const { first, last, isBuilt } of Segments.spans(built, 0, end)) {
        if (!isBuilt) {
          parts.push(sql`(m.uid >= ${first}::int and m.uid <= ${last}::int)`)
          continue
        }
        for (let next = last; next >= first;) {
          const to = Math.max(first, Segments.firstUid(Segments.of(next) - atOnce + 1))
          uids.push(...(yield* segments.candidates(identityId, wanted, to, next)))
          next = to - 1
        }
      }
      conditions.set(text, sql`(${sql.or([sql`m.uid = any(${uids}::int[])`, ...parts])})`)
    }
    return (text: string) => conditions.get(text)
  })
}
