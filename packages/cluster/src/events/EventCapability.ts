/** Events of an Org and its Identities. */
import { Effect } from "effect"
import { type Capability, type ExportScope, type ExportWriter, noHandlers } from "../Capability.ts"
import { EventQueries } from "./EventQueries.ts"

const page = 200

const exported = Effect.fnUntraced(function* ({ org, canonical }: ExportScope, pieces: ExportWriter) {
  const queries = yield* EventQueries
  let cursor: string | undefined
  do {
    const { events: found, next_cursor }: Effect.Success<ReturnType<typeof queries.list>> = yield* queries.list(org, {
      limit: page,
      cursor,
      ...(canonical === null ? {} : { handle: canonical }),
    })
    yield* pieces.lines("events.jsonl", found)
    cursor = next_cursor ?? undefined
  } while (cursor !== undefined)
})

export const event = {
  name: "event",
  handlers: noHandlers,
  work: { identity: [], org: [] },
  queries: [EventQueries.layer],
  exports: [{ members: ["events.jsonl"], once: exported }],
  tables: {
    event: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from event where seq in (select seq from event where identity_id = ${id} limit ${limit}) returning seq)
          select count(*)::int as n from gone`,
      },
      exported: "events.jsonl",
    },
  },
} satisfies Capability
