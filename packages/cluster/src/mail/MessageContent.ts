/**
 * The bodies of messages. Small ones travel with the message to its actor; a large one is stored by the gateway
 * beforehand, so that it does not cross processes, and counts only once its message's commit claims it.
 */
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** Raw messages above this size (bytes) are stored before the actor is asked. */
export const carriedAtMost = 256 * 1024

/** CTE `contents`: the bodies, where `gate` has a row. */
export const insertContent = (
  sql: Sql,
  gate: string,
  messageId: string,
  content: Content,
  at: Date,
): Statement.Fragment => sql`
  contents as (
    insert into message_content (message_id, raw, text, html, headers, search_text, created_at)
    select ${messageId}::uuid, ${content.raw}::bytea, ${content.text}::text, ${content.html}::text,
           ${JSON.stringify(content.headers)}::jsonb, ${content.search_text}::text, ${at}::timestamptz
    from ${sql(gate)}
    on conflict (message_id) do nothing
  )`

/** Stores a large body ahead of its message. */
export const storeAhead = (sql: Sql, messageId: string, content: Content, at: Date) =>
  sql`with always as (select 1), ${insertContent(sql, "always", messageId, content, at)} select 1`
