/** Exports and deletions of accounts whose process died in the middle (docs/crash-matrix.md). */
import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { awaitFiber, makeOrg, waitUntil } from "../harness/Actors.ts"
import { actorProcess, sharedServices } from "../harness/Processes.ts"

const one = <A extends object>(row: Effect.Effect<ReadonlyArray<A>, unknown>) => Effect.map(row, ([first]) => first)

const exported = (id: string) =>
  Effect.flatMap(Reads, (sql) =>
    one(
      sql<{ status: string; size: number; members: ReadonlyArray<string> }>`
        select status, size::int, (select array_agg(member order by member) from export_piece where export_id = id) as members
        from export where id = ${id}`,
    ),
  )

const makeIdentity = Effect.fnUntraced(function* (org_id: string, handle: string) {
  yield* ask((yield* Identities).of(handle).Create({ org_id, identity_id: yield* makeUuidV7, handle }))
  yield* waitUntil(
    Effect.flatMap(Reads, (sql) =>
      one(sql<{ status: string }>`select status from identity where canonical = ${handle}`),
    ),
    (row) => row?.status === "ready",
  )
})

layer(sharedServices, { timeout: "60 seconds" })("an account after a crash of its process", (it) => {
  it.effect("has its export started over by another process, without the partial pieces", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const export_id = yield* makeUuidV7
      const request = { export_id, identity_id: null, handle: null }
      yield* Effect.gen(function* () {
        yield* makeIdentity(org_id, "ada")
        const actor = (yield* Orgs).of(org_id)
        yield* ask(actor.Export(request))
        yield* waitUntil(exported(export_id), (row) => row?.status === "ready")
        // A duplicate of the message, as after a lost response, refers to the same export.
        yield* ask(actor.Export(request))
      }).pipe(Effect.provide(actorProcess()))
      const first = yield* exported(export_id)
      const sql = yield* Writes
      expect(yield* sql`select 1 from export where org_id = ${org_id}`).toHaveLength(1)
      yield* sql`update export set status = 'running', size = null where id = ${export_id}`
      yield* sql`delete from export_piece where export_id = ${export_id} and member <> 'events.jsonl'`
      yield* sql`insert into export_piece (export_id, member, number, sealed) values (${export_id}, 'half.jsonl', 7, '')`

      const repeated = yield* waitUntil(exported(export_id), (row) => row?.status === "ready", "1 second").pipe(
        Effect.provide(actorProcess()),
      )
      expect(repeated.value).toEqual(first)
      expect(repeated.value!.members).toContain("identities.jsonl")
    }),
  )

  it.effect("is completely deleted by another process, and its Handle stays taken", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      yield* makeIdentity(org_id, "grace").pipe(Effect.provide(actorProcess()))
      const sql = yield* Writes
      // The state after the first commit of a deletion.
      yield* sql`update org set status = 'deleting', deletion_requested_at = now() where id = ${org_id}`
      const remaining = one(
        sql<{ n: number }>`
          select ((select count(*) from org where id = ${org_id}) + (select count(*) from identity where org_id = ${org_id})
                  + (select count(*) from event where org_id = ${org_id}))::int as n`,
      )
      yield* waitUntil(remaining, (row) => row?.n === 0, "500 millis").pipe(Effect.provide(actorProcess()))
      expect(yield* sql`select 1 from handle where canonical = 'grace'`).toHaveLength(1)
    }),
  )

  it.effect("returns the same response to a repeated deletion", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const actor = (yield* Orgs).of(org_id)
      const sql = yield* Writes
      // An Identity that cannot be deleted keeps the account in this state.
      yield* makeIdentity(org_id, "joan")
      const [first, second] = [yield* ask(actor.Delete()), yield* ask(actor.Delete())]
      expect(second).toEqual(first)
      expect(
        yield* sql`select 1 from event where org_id = ${org_id} and type = 'account.deletion_started'`,
      ).toHaveLength(1)
    }).pipe(Effect.provide(actorProcess())),
  )

  it.effect("counts the report of an edge once if another process has replaced its actor", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const sql = yield* Writes
      const [first, second] = [yield* Layer.build(actorProcess()), yield* Layer.build(actorProcess())]
      const lease = Effect.fnUntraced(function* (process: typeof first, used: number) {
        const asked = ask(Context.get(process, Orgs).of(org_id).LeaseTransfer({ edge: "one", used }))
        return yield* yield* awaitFiber(yield* Effect.forkChild(Effect.exit(asked)), "1 second")
      })
      yield* lease(first, 0)
      yield* lease(second, 0)
      // The replaced actor notices, and the report is counted by an actor that owns the Org.
      yield* lease(first, 1_000)
      expect(yield* sql`select bytes::int as bytes from tunnel_transfer where org_id = ${org_id}`).toEqual([
        { bytes: 1_000 },
      ])
    }).pipe(Effect.scoped),
  )

  it.effect("keeps its transferred bytes: the next actor leases the rest and raises each Event once", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const sql = yield* Writes
      const lease = (edge: string, used: number) =>
        Effect.flatMap(Orgs, (orgs) => ask(orgs.of(org_id).LeaseTransfer({ edge, used })))
      const events = sql<{ type: string }>`select type from event where org_id = ${org_id} order by seq`
      // The daily budget is 1,000,000.
      yield* lease("one", 900_000).pipe(Effect.provide(actorProcess()))
      yield* Effect.gen(function* () {
        const { granted } = yield* lease("two", 0)
        expect(granted).toBeGreaterThan(0)
        expect(granted).toBeLessThanOrEqual(100_000)
        yield* lease("two", 50_000)
        expect((yield* lease("two", 50_000)).granted).toBe(0)
        expect((yield* lease("one", 10)).granted).toBe(0)
      }).pipe(Effect.provide(actorProcess()))
      expect((yield* events).map(({ type }) => type)).toEqual(["limit.near", "tunnel.transfer_blocked"])
    }),
  )
})
