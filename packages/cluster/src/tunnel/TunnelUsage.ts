/** Counts the traffic of Tunnels per Identity. */
import { Context, Effect, Layer } from "effect"
import { orUnavailable, Writes } from "../store/Database.ts"
import { UsageCounters } from "../usage/UsageCounters.ts"

/** The traffic that an edge counted since its last report. `bytes_in` are bytes to the agent. */
export interface Usage {
  readonly identity_id: string
  readonly bytes_in: number
  readonly bytes_out: number
  /** Number of HTTP requests and TCP connections. */
  readonly requests: number
  /** Number of HTTP responses that were errors. */
  readonly errors: number
  /** How many of the other HTTP responses took how long until their first byte, by the bucket of the duration (`bucketOf`). */
  readonly durations: ReadonlyMap<number, number>
}

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const counters = yield* UsageCounters
  const count = (usage: ReadonlyArray<Usage>) =>
    Effect.sync(() => {
      for (const { identity_id, bytes_in, bytes_out, requests, errors, durations } of usage) {
        const of = { identity: identity_id }
        counters.add(of, "tunnel", { count: requests, bytes_in, bytes_out })
        if (errors > 0) counters.add(of, "tunnel_http", { count: errors, failed: errors })
        for (const [bucket, count] of durations) counters.add(of, "tunnel_http", { count, bucket })
      }
    })
  return {
    add: (usage: ReadonlyArray<Usage>) =>
      Effect.tap(
        orUnavailable(sql`
          insert into tunnel_usage as u (identity_id, bytes_in, bytes_out, requests)
          select a.identity_id, a.bytes_in, a.bytes_out, a.requests
          from jsonb_to_recordset(${JSON.stringify(usage)}::jsonb)
            as a (identity_id uuid, bytes_in bigint, bytes_out bigint, requests bigint)
          join identity i on i.id = a.identity_id
          order by a.identity_id
          on conflict (identity_id) do update
          set bytes_in = u.bytes_in + excluded.bytes_in, bytes_out = u.bytes_out + excluded.bytes_out,
              requests = u.requests + excluded.requests`),
        () => count(usage),
      ),
  }
})

export class TunnelUsage extends Context.Service<TunnelUsage, Effect.Success<typeof make>>()(
  "@svc/cluster/tunnel/TunnelUsage",
) {
  static readonly layer = Layer.effect(TunnelUsage, make)
}
