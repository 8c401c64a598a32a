/** Permits to send: their time in the memory of a process, and their rows, which a new owner of the actor waits for. */
import { system } from "@svc/domain/account/Initiator"
import * as Ownership from "@svc/cluster/actor/Ownership"
import * as Permit from "@svc/cluster/actor/Permit"
import { commit } from "@svc/cluster/actor/Write"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { newHandle } from "../harness/Client.ts"
import { databaseLayer } from "../harness/Database.ts"

describe("a permit", () => {
  let time = 0
  /** Runs a test with a permit and the clock that it reads. */
  const withPermit = (
    test: (
      permit: Permit.Permit,
      /** Renews the permit by a statement that takes `millis`, and calls `during` before it ends. */
      renew: (options?: { millis?: number; isGranted?: boolean; during?: () => void }) => void,
    ) => void,
  ) => {
    time = 10_000
    const clock = vi.spyOn(performance, "now").mockImplementation(() => time)
    const permit = Permit.make()
    try {
      test(permit, ({ millis = 0, isGranted = true, during = () => {} } = {}) => {
        const statement = Effect.sync(() => {
          time += millis
          during()
          return isGranted
        })
        const owner = { claim: { kind: "Identity", id: "ada", epoch: 1 } }
        Effect.runSync(permit.renewedBy(owner, statement, (granted) => granted))
      })
    } finally {
      clock.mockRestore()
    }
  }

  it("lasts from before its statement was sent, and is short after half of its time", () =>
    withPermit((permit, renew) => {
      expect([permit.holds(), permit.isShort(), permit.held()]).toEqual([false, true, undefined])
      renew({ millis: 300 })
      const end = 10_000 + Timing.permitMillis
      expect([permit.until(), permit.holds(), permit.held()?.epoch]).toEqual([end, true, 1])
      time = end - Timing.permitMillis / 2
      expect(permit.isShort()).toBe(false)
      time++
      expect(permit.isShort()).toBe(true)
      time = end - 1
      expect(permit.holds()).toBe(true)
      time = end
      expect([permit.holds(), permit.held()]).toEqual([false, undefined])
    }))

  it("is not given by a statement that grants none, and is not shortened by an earlier statement that ends late", () =>
    withPermit((permit, renew) => {
      renew({ isGranted: false })
      expect(permit.holds()).toBe(false)
      renew({ millis: 500, during: () => renew() })
      expect(permit.until()).toBe(10_500 + Timing.permitMillis)
    }))

  it("ends at a stop, which a statement in flight does not undo", () =>
    withPermit((permit, renew) => {
      renew({ during: () => permit.end() })
      expect(permit.holds()).toBe(false)
      renew()
      expect(permit.holds()).toBe(true)
      permit.end()
      expect([permit.holds(), permit.isShort(), permit.held()]).toEqual([false, true, undefined])
    }))
})

/** Activates the actor of a new entity or of the given one. */
const activate = (id = newHandle("permitted"), kind = "Identity") =>
  Effect.map(Ownership.make({ kind, id, load: Effect.void }), (ownership) => ({
    id,
    grant: ownership.write(system, (write) =>
      Effect.as(commit(write, Permit.permitted(write.sql, Permit.owner(write))), write.claim),
    ),
    formerEnded: ownership.write(system, Permit.formerEnded),
  }))

const permitsOf = (id: string) =>
  Effect.flatMap(
    Writes,
    (sql) => sql<{ kind: string; epoch: number; until: Date; isOver: boolean }>`
      select kind, epoch, until, until <= now() as "isOver" from actor_permit where id = ${id} order by kind, epoch`,
  )
const setEnd = (id: string, kind: string, epoch: number, millis: number) =>
  Effect.flatMap(
    Writes,
    (sql) => sql`
      insert into actor_permit (kind, id, epoch, until) values (${kind}, ${id}, ${epoch}, now() + make_interval(secs => ${millis / 1000}))
      on conflict (kind, id, epoch) do update set until = excluded.until`,
  )

layer(databaseLayer)("the row of a permit", (it) => {
  it.effect("is granted and renewed by the owner only, and returned by its claim", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const former = yield* activate()
      const { id } = former
      const time = Effect.map(sql<{ at: Date }>`select clock_timestamp() as at`, ([row]) => row!.at.getTime())
      for (const isRenewed of [false, true]) {
        if (isRenewed) yield* sql`update actor_permit set until = now() where id = ${id}`
        const before = yield* time
        const { epoch } = yield* former.grant
        const [granted] = yield* permitsOf(id)
        expect(granted).toMatchObject({ kind: "Identity", epoch })
        const sent = granted!.until.getTime() - Timing.permitMillis
        expect([before <= sent, sent <= (yield* time)]).toEqual([true, true])
      }
      const claim = yield* former.grant
      const owner = yield* activate(id)
      const later = yield* owner.grant
      yield* sql`update actor_permit set until = now() where id = ${id}`
      expect((yield* Effect.flip(former.grant))._tag).toBe("Moved")
      expect((yield* permitsOf(id)).map(({ isOver }) => isOver)).toEqual([true, true])
      yield* Permit.handBack(sql, { ...claim, kind: "Org" })
      yield* Permit.handBack(sql, { ...claim, id: `${id}-other` })
      yield* Permit.handBack(sql, claim)
      expect((yield* permitsOf(id)).map(({ epoch }) => epoch)).toEqual([later.epoch])
    }),
  )

  it.effect("of a former owner delays a stop until it expires, and no other row does", () =>
    Effect.gen(function* () {
      const hour = 3_600_000
      const former = yield* activate()
      const { id } = former
      const claim = yield* former.grant
      yield* setEnd(id, "Identity", claim.epoch, hour)
      const owner = yield* activate(id)
      const { epoch } = yield* owner.grant
      yield* setEnd(id, "Identity", epoch, hour)
      yield* setEnd(id, "Org", 7, hour)
      yield* setEnd(`${id}-other`, "Identity", 7, hour)
      // Several permits of former owners: the last one decides.
      yield* setEnd(id, "Identity", epoch + 7, 50)
      yield* setEnd(id, "Identity", claim.epoch, 250)
      yield* owner.formerEnded
      expect((yield* permitsOf(id)).filter((one) => one.epoch === claim.epoch)[0]!.isOver).toBe(true)
      // Nothing is waited for any more. An actor that was replaced is told so.
      yield* owner.formerEnded
      expect((yield* Effect.flip(former.formerEnded))._tag).toBe("Moved")
    }),
  )
})
