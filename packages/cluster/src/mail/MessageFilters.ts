/**
 * Builds the SQL conditions of message lists: on `message m`, and on `message_content c` for body searches. The
 * statement text depends on which filters are set and not on their values, so the database can reuse its plan.
 */
import { fromPublic } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { parse, type SearchTerm } from "@svc/domain/mail/SearchQuery"
import { fold, parts } from "@svc/domain/mail/SearchText"
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { Effect, Result } from "effect"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

export interface MessageFilter {
  readonly limit: number
  readonly offset: number
  readonly query?: string
  readonly direction?: "inbound" | "outbound"
  readonly tag?: string
  readonly thread_id?: string
  readonly seen?: boolean
  readonly flagged?: boolean
  readonly label?: string
  /** An address, or `@` and a domain. */
  readonly from?: string
  /** Only messages newer than this one. */
  readonly after?: string
  /** `next_cursor` of the page before. */
  readonly cursor?: string
}

export interface Conditions {
  readonly onMessage: ReadonlyArray<Statement.Fragment>
  readonly onContent: ReadonlyArray<Statement.Fragment>
  /** Folded texts that every match contains. */
  readonly texts: ReadonlyArray<string>
}

/** Uses strpos instead of LIKE, which is several times slower and which the planner estimates to match nothing. */
const has = (sql: Sql, where: Statement.Fragment, text: string) => sql`strpos(${where}, ${text}::text) > 0`

/**
 * Returns the position (UID) of a message, also after it was removed. For an unknown id the position is before all
 * messages that may be newer.
 */
export const placeOf = (sql: Sql, identityId: IdentityId, publicId: string) => {
  const id = fromPublic("msg_", publicId) ?? null
  return sql`coalesce(
  (select uid from message where id = ${id}::uuid and identity_id = ${identityId}),
  (select uid from removed_message where id = ${id}::uuid and identity_id = ${identityId}),
  (select min(uid) - 1 from message where id > ${id}::uuid and identity_id = ${identityId}))`
}

const textOf = (sql: Sql, { in: where, text }: Extract<SearchTerm, { kind: "text" }>) =>
  where === "any"
    ? has(sql, sql`c.search_text`, text)
    : has(sql, sql`split_part(c.search_text, chr(30), ${sql.literal(String(parts[where]))})`, text)

const onMessage = (sql: Sql, term: Exclude<SearchTerm, { kind: "text" }>): Statement.Fragment => {
  switch (term.kind) {
    case "tag":
      return sql`${term.text}::text = any(m.tags)`
    case "label":
      return sql`${term.text}::text = any(m.labels)`
    case "attachment":
      return sql`m.summary -> 'attachments' <> '[]'`
    case "before":
      return sql`m.received_at < ${term.at}::timestamptz`
    case "after":
      return sql`m.received_at >= ${term.at}::timestamptz`
    case "seen":
    case "flagged":
    case "answered": {
      const mark = sql.literal(`m.${term.kind}`)
      return term.value ? mark : sql`not ${mark}`
    }
  }
}

/** Names the tag in a form that each of two indexes answers: by first tag, and the few messages with several. */
const hasTag = (sql: Sql, tag: string) =>
  sql`(m.tag = ${tag}::text or (cardinality(m.tags) > 1 and ${tag}::text = any(m.tags)))`

const address = (sql: Sql) => sql`lower(m.summary -> 'from' ->> 'address')`

export const of = (sql: Sql, filter: MessageFilter): Effect.Effect<Conditions, InvalidRequest> => {
  const parsed = parse(filter.query ?? "")
  if (Result.isFailure(parsed)) {
    const errors = [{ path: "/query", message: parsed.failure }]
    return Effect.fail(new InvalidRequest({ detail: `The query cannot be read: ${parsed.failure}`, errors }))
  }
  const messages: Array<Statement.Fragment> = []
  const contents: Array<Statement.Fragment> = []
  const texts: Array<string> = []
  const { direction, tag, thread_id, seen, flagged, label, from } = filter
  if (direction !== undefined) messages.push(sql`m.direction = ${direction}`)
  if (tag !== undefined) messages.push(hasTag(sql, tag.toLowerCase()))
  if (thread_id !== undefined) messages.push(sql`m.thread_id = ${fromPublic("thr_", thread_id) ?? null}::uuid`)
  if (seen !== undefined) messages.push(seen ? sql`m.seen` : sql`not m.seen`)
  if (flagged !== undefined) messages.push(flagged ? sql`m.flagged` : sql`not m.flagged`)
  if (label !== undefined) messages.push(sql`${label.toLowerCase()}::text = any(m.labels)`)
  if (from !== undefined) {
    const wanted = from.toLowerCase()
    messages.push(
      wanted.startsWith("@")
        ? sql`right(${address(sql)}, ${wanted.length}::int) = ${wanted}`
        : sql`${address(sql)} = ${wanted}`,
    )
    const text = fold(wanted)
    contents.push(has(sql, sql`c.search_text`, text))
    texts.push(text)
  }
  for (const term of parsed.success) {
    const [list, condition] =
      term.kind === "text" ? ([contents, textOf(sql, term)] as const) : ([messages, onMessage(sql, term)] as const)
    list.push(term.negated ? sql`not (${condition})` : condition)
    if (term.kind === "text" && !term.negated) texts.push(term.text)
  }
  return Effect.succeed({ onMessage: messages, onContent: contents, texts })
}

export const all = (sql: Sql, conditions: ReadonlyArray<Statement.Fragment>): Statement.Fragment =>
  conditions.length === 0 ? sql`` : sql`and ${sql.and(conditions)}`
