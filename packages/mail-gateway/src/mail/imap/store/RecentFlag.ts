/**
 * Assigns `\Recent` to the first session that reports a message (RFC 3501 section 2.3.2). Sessions write it without the
 * Mailbox's actor, since nothing else depends on it.
 */
import { orUnavailable, type Writes } from "@svc/cluster/store/Database"
import { Effect } from "effect"
import type { Folder } from "../session/Store.ts"

/** Claims the messages below `upTo`. Returns the first UID that no session has reported yet, or `upTo`. */
export const claim = (sql: Writes["Service"], { id }: Folder, upTo: number) =>
  orUnavailable(
    Effect.map(
      sql<{ first: number }>`
        with before as (select recent_from from folder where id = ${id}::uuid for update),
        told as (
          update folder f set recent_from = ${upTo}::int from before
          where f.id = ${id}::uuid and before.recent_from < ${upTo}::int
        )
        select least(recent_from, ${upTo}::int) as first from before`,
      ([row]) => row?.first ?? upTo,
    ),
  )
