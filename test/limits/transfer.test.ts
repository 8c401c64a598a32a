/** The daily transfer limit of an Org, leased to edges. */
import { ask } from "@svc/cluster/actor/Ask"
import * as TransferBudget from "@svc/cluster/account/TransferBudget"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { system } from "@svc/domain/account/Initiator"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeOrg } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"

const MiB = 1024 * 1024
const quota = 16 * MiB
const day = Timing.transferWindowMillis

/** Advances the clock to `hours` after the beginning of the next day (UTC). */
const nextDay = (hours: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    TestClock.setTime((Math.floor(now / day) + 1) * day + hours * 3_600_000),
  )

const eventsOf = (org: string) =>
  rows((sql) => sql<{ type: string; data: unknown }>`select type, data from event where org_id = ${org} order by seq`)

const orgAtNoon = Effect.gen(function* () {
  yield* nextDay(12)
  const org = yield* makeOrg
  const actor = (yield* Orgs).of(org)
  return {
    org,
    lease: (edge: string, used: number, report?: number) =>
      ask(actor.LeaseTransfer({ edge, used, ...(report === undefined ? {} : { report }) })),
  }
})

layer(actors({ quotas: { tunnel_transfer: quota } }))("an Org's transfer budget", (it) => {
  it.effect("is leased to edges for a minute, never more than the rest in total", () =>
    Effect.gen(function* () {
      const { lease } = yield* orgAtNoon
      const first = yield* lease("one", 0)
      expect(first.granted).toBeGreaterThan(0)
      expect(first.ends_in).toBe(60_000)
      const second = yield* lease("two", 0)
      expect(second.granted).toBeGreaterThan(0)
      expect(first.granted + second.granted).toBeLessThanOrEqual(quota)
      // Bytes that one edge has used are no longer available to the other edge.
      const remaining = quota - 15 * MiB
      expect((yield* lease("one", 15 * MiB)).granted).toBeLessThanOrEqual(remaining)
      expect((yield* lease("two", 0)).granted).toBeLessThanOrEqual(remaining)
    }),
  )

  it.effect("is leased without what others hold, until their leases expire", () =>
    Effect.gen(function* () {
      const { lease } = yield* orgAtNoon
      const first = yield* lease("one", 0)
      expect(first.granted).toBe(quota / 8)
      const second = yield* lease("two", 0)
      expect(second.granted).toBe((quota - first.granted) / 16)
      yield* TestClock.adjust(Timing.transferLeaseMillis - 1)
      expect((yield* lease("three", 0)).granted).toBe(Math.floor((quota - first.granted - second.granted) / 24))
      // The edges one and two have crashed.
      yield* TestClock.adjust(1)
      const third = quota / 8
      expect((yield* lease("three", 0)).granted).toBe(third)
      expect((yield* lease("four", 0)).granted).toBe((quota - third) / 16)
    }),
  )

  it.effect("is leased up to its last byte, and no longer than the day", () =>
    Effect.gen(function* () {
      const { lease } = yield* orgAtNoon
      expect((yield* lease("one", quota - 1_000)).granted).toBe(1_000)
      expect((yield* lease("one", 999)).granted).toBe(1)
      yield* nextDay(0)
      yield* TestClock.adjust(day - 30_000)
      expect((yield* lease("one", 0)).ends_in).toBe(30_000)
    }),
  )

  it.effect("is leased in parts of at most 64 MiB", () =>
    Effect.gen(function* () {
      const { org } = yield* orgAtNoon
      const sql = yield* Writes
      const fence = sql`fence as (select 1)`
      const claim = { kind: "Org", id: org, epoch: 1 }
      const at = new Date(yield* Clock.currentTimeMillis)
      const write = { sql, claim, fence, at, by: system, due: () => {}, memory: new Map<string, unknown>() }
      const budget = TransferBudget.make(org, 513 * MiB)
      expect((yield* budget.lease(write, { edge: "one", used: MiB + 8 })).granted).toBe(64 * MiB - 1)
      expect((yield* TransferBudget.make(org, 514 * MiB).lease(write, { edge: "one", used: 0 })).granted).toBe(64 * MiB)
    }),
  )

  it.effect("counts each numbered report of an edge once, also after midnight", () =>
    Effect.gen(function* () {
      const { org, lease } = yield* orgAtNoon
      const days = rows(
        (sql) => sql<{ bytes: number }>`
          select bytes::int from tunnel_transfer where org_id = ${org} order by day`,
      )
      yield* lease("one", 5, 1)
      yield* lease("one", 5, 1)
      yield* lease("two", 20, 1)
      yield* lease("one", 100, 2)
      yield* lease("one", 5, 1)
      expect(yield* days).toEqual([{ bytes: 125 }])
      yield* nextDay(0)
      yield* lease("one", 100, 2)
      yield* lease("one", 7, 3)
      yield* lease("two", 20, 1)
      yield* lease("three", 1)
      yield* lease("three", 1)
      expect(yield* days).toEqual([{ bytes: 125 }, { bytes: 9 }])
    }),
  )

  it.effect("raises Events at 80 % and 100 % once a day, and then grants nothing until the next day", () =>
    Effect.gen(function* () {
      const { org, lease } = yield* orgAtNoon
      const near = Math.ceil(quota * 0.8)
      yield* lease("one", near - 1)
      expect(yield* eventsOf(org)).toEqual([])
      yield* lease("two", 1)
      yield* lease("one", 1)
      const limit = { limit: "tunnel_transfer", quota, window: "day" }
      const toldNear = { type: "limit.near", data: { ...limit, used: near } }
      expect(yield* eventsOf(org)).toEqual([toldNear])
      yield* lease("two", quota - near - 2)
      const blocked = yield* lease("one", 1)
      expect(blocked).toEqual({ granted: 0, ends_in: day / 2 })
      expect(yield* lease("two", 100)).toMatchObject({ granted: 0 })
      const toldBlocked = { type: "tunnel.transfer_blocked", data: { ...limit, used: quota } }
      expect(yield* eventsOf(org)).toEqual([toldNear, toldBlocked])
      yield* nextDay(0)
      expect((yield* lease("one", 0)).granted).toBeGreaterThan(0)
      yield* lease("one", near)
      expect(yield* eventsOf(org)).toEqual([toldNear, toldBlocked, toldNear])
    }),
  )
})
