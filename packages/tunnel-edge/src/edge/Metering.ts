/**
 * Counts bytes at the public edge, per Identity for its owner and per Org against the daily transfer limit. The edge
 * takes the limit in leases from the Org's actor. An empty lease pauses the Org's streams until the next lease arrives,
 * and an exhausted day closes them. A report without a reply is repeated under the same number, so that the actor
 * counts it once.
 */
import type { TransferLease, TransferReport } from "@svc/cluster/account/TransferBudget"
import type { Usage } from "@svc/cluster/tunnel/TunnelUsage"
import { bucketOf } from "@svc/cluster/usage/UsageCounters"
import { Effect } from "effect"
import * as EdgeMetrics from "./EdgeMetrics.ts"
import { Timing } from "./Timing.ts"

/** The meter of one connection. */
export interface ConnectionMeter {
  /** Counts bytes. Returns false if no more may pass until {@link onRoom} is called. */
  readonly count: (direction: "in" | "out", bytes: number) => boolean
  readonly countRequest: () => void
  /** Counts the first byte of the response to the last request, or its failure. */
  readonly countResponse: (isError: boolean) => void
  /** Called when the Org has budget again. Set by the module that carries the bytes. */
  onRoom: () => void
  readonly close: () => void
}

/** Bytes that may pass before the first lease arrives. */
const graceBytes = 64 * 1024

/** A usage report. The edge numbers its reports in ascending order. */
type Report = Required<Pick<TransferReport, "used" | "report">>

class OrgMeter {
  left = graceBytes
  granted = graceBytes
  used = 0
  /** The report that was sent and has no reply yet. */
  told: Report | undefined
  asking = false
  blockedUntil = 0
  readonly passages = new Set<ConnectionMeter & { readonly cut: () => void }>()
}

type Counter = { -readonly [K in keyof Usage]: Usage[K] } & { readonly durations: Map<number, number> }

const countDuration = ({ durations }: Counter, bucket: number, count: number) =>
  durations.set(bucket, (durations.get(bucket) ?? 0) + count)

interface Leasing<R> {
  readonly lease: (org: string, report: Report) => Effect.Effect<TransferLease, unknown, R>
  readonly record: (usage: ReadonlyArray<Usage>) => Effect.Effect<unknown, unknown, R>
  readonly run: (effect: Effect.Effect<void, never, R>) => unknown
  /** Returns monotonic milliseconds. */
  readonly now: () => number
}

export const make = <R>({ lease, record, run, now }: Leasing<R>) => {
  const orgs = new Map<string, OrgMeter>()
  const counters = new Map<string, Counter>()
  let reports = 0

  const meterOf = (org: string): OrgMeter => {
    const present = orgs.get(org)
    if (present !== undefined) return present
    const fresh = new OrgMeter()
    orgs.set(org, fresh)
    return fresh
  }
  const counterOf = (identity: string): Counter => {
    const present = counters.get(identity)
    if (present !== undefined) return present
    const fresh = { identity_id: identity, bytes_in: 0, bytes_out: 0, requests: 0, errors: 0, durations: new Map() }
    counters.set(identity, fresh)
    return fresh
  }

  /** Reports the usage and takes the next lease. Retries while streams wait for budget. */
  const renew = (org: string, meter: OrgMeter): Effect.Effect<void, never, R> =>
    Effect.gen(function* () {
      if (meter.asking) return
      meter.asking = true
      const told = (meter.told ??= { used: meter.used, report: ++reports })
      const { granted, ends_in } = yield* lease(org, told)
      meter.told = undefined
      meter.used -= told.used
      meter.granted = granted
      // Bytes that passed during the request are charged to the new lease.
      meter.left = granted - meter.used
      meter.asking = false
      if (granted > 0) return meter.passages.forEach((passage) => passage.onRoom())
      meter.blockedUntil = now() + ends_in
      for (const passage of meter.passages) passage.cut()
    }).pipe(
      Effect.catch(() =>
        Effect.gen(function* () {
          yield* Effect.sleep(Timing.leaseAgainMillis)
          meter.asking = false
          if (meter.left <= 0) yield* renew(org, meter)
        }),
      ),
    )

  return {
    /** Returns the milliseconds until the Org may transfer again, or 0 if it may now. */
    blockedFor: (org: string): number => {
      const meter = orgs.get(org)
      return meter === undefined ? 0 : Math.max(0, meter.blockedUntil - now())
    },

    /** Counts a request that reached no agent. */
    countOffline: (identity: string): void => {
      const counter = counterOf(identity)
      counter.requests++
      counter.errors++
    },

    /** Opens the meter of a connection; `cut` is called when the daily budget is exhausted. */
    open: (org: string, identity: string, cut: () => void): ConnectionMeter => {
      const meter = meterOf(org)
      let waitsSince: number | undefined
      const passage = {
        cut,
        onRoom: () => {},
        count: (direction: "in" | "out", bytes: number): boolean => {
          const counter = counterOf(identity)
          if (direction === "in") counter.bytes_in += bytes
          else counter.bytes_out += bytes
          EdgeMetrics.passed[direction].n += bytes
          meter.used += bytes
          meter.left -= bytes
          if (meter.left < meter.granted >> 1 && !meter.asking) run(renew(org, meter))
          return meter.left > 0
        },
        countRequest: () => {
          counterOf(identity).requests++
          waitsSince = now()
        },
        countResponse: (isError: boolean) => {
          if (waitsSince === undefined) return
          const counter = counterOf(identity)
          if (isError) counter.errors++
          else countDuration(counter, bucketOf(now() - waitsSince), 1)
          waitsSince = undefined
        },
        close: () => void meter.passages.delete(passage),
      }
      meter.passages.add(passage)
      return passage
    },

    /** Stores the counted usage, reports every lease and drops the meters of idle Orgs. */
    flush: Effect.gen(function* () {
      const counted = [...counters.values()]
      counters.clear()
      const untold = record(counted).pipe(
        Effect.catch(() =>
          Effect.sync(() => {
            for (const usage of counted) {
              const counter = counterOf(usage.identity_id)
              counter.bytes_in += usage.bytes_in
              counter.bytes_out += usage.bytes_out
              counter.requests += usage.requests
              counter.errors += usage.errors
              for (const [bucket, count] of usage.durations) countDuration(counter, bucket, count)
            }
          }),
        ),
      )
      if (counted.length > 0) yield* untold
      const at = now()
      const due = [...orgs].filter(([, { used, blockedUntil }]) => used > 0 && blockedUntil <= at)
      yield* Effect.forEach(due, ([org, meter]) => renew(org, meter), { concurrency: 8, discard: true })
      for (const [org, meter] of orgs) {
        if (meter.used === 0 && meter.passages.size === 0 && !meter.asking && meter.blockedUntil <= at) orgs.delete(org)
      }
    }),
  }
}

export type Metering = ReturnType<typeof make<never>>
