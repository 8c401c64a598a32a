/** Sums of activity per hour, counted by every process ({@link UsageCounters}). */
import { Effect } from "effect"
import { type Capability, noHandlers } from "../Capability.ts"
import { UsageQueries } from "./UsageQueries.ts"

export const usage = {
  name: "usage",
  handlers: noHandlers,
  work: { identity: [], org: [] },
  queries: [UsageQueries.layer],
  exports: [
    {
      members: ["usage.jsonl"],
      once: Effect.fnUntraced(function* ({ org, canonical }, pieces) {
        if (canonical !== null) return
        const hours = yield* (yield* UsageQueries).hours(org, undefined)
        yield* pieces.lines(
          "usage.jsonl",
          hours.map((hour) => ({ identity: null, ...hour })),
        )
      }),
      ofIdentity: Effect.fnUntraced(function* ({ org, id, handle }, pieces) {
        const hours = yield* (yield* UsageQueries).hours(org, id)
        yield* pieces.lines(
          "usage.jsonl",
          hours.map((hour) => ({ identity: handle, ...hour })),
        )
      }),
    },
  ],
  tables: {
    usage_hour: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from usage_hour where ctid in (
            select ctid from usage_hour where identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: "usage.jsonl",
    },
  },
} satisfies Capability
