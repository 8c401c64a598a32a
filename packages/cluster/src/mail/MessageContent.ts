/**
 * The bodies of messages. Small ones travel with the message to its actor; a large one is stored by the gateway
 * beforehand, so that it does not cross processes, and counts only once its message's commit claims it.
 */
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** Raw messages above this size (bytes) are stored before the actor is asked. */
export const carriedAtMost = 256 * 1024

/** Stores a large body ahead of its message. */
export const storeAhead = (sql: Sql, messageId: string, content: Content, at: Date) => sql`
  insert into message_content (message_id, raw, text, html, headers, search_text, structure, created_at)
  values (${messageId}::uuid, ${content.raw}::bytea, ${content.text}::text, ${content.html}::text,
          ${JSON.stringify(content.headers)}::jsonb, ${content.search_text}::text, ${content.structure ?? null}::text,
          ${at}::timestamptz)
  on conflict (message_id) do nothing`

/** Read in slices: the driver gives up a connection on an answer over 16 MiB. */
const sliceBytes = 8 * 1024 * 1024

/** A column of so many bytes, read by `slice(from, count)`, `from` being 1 for the first; undefined when it went meanwhile. */
export const inSlices = Effect.fnUntraced(function* (
  bytes: number,
  slice: (from: number, count: number) => Effect.Effect<ReadonlyArray<{ slice: Uint8Array }>, SqlError.SqlError>,
) {
  const slices: Array<Uint8Array> = []
  for (let at = 0; at < bytes; at += sliceBytes) {
    const [row] = yield* slice(at + 1, sliceBytes)
    if (row === undefined) return undefined
    slices.push(row.slice)
  }
  return new Uint8Array(Buffer.concat(slices))
})
