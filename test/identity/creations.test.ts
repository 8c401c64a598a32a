/** Concurrent creations of Identities in one statement: each succeeds or fails independently. */
import { ask } from "@svc/cluster/actor/Ask"
import * as CreationBatch from "@svc/cluster/identity/CreationBatch"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads, Writes } from "@svc/cluster/store/Database"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { actors, makeOrg, waitUntil } from "../harness/Actors.ts"
import { act, noKey } from "../audit/Acts.ts"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const saga = JSON.stringify({ kind: "provisioning", status: "completed", steps: [], started_at: 0, finished_at: null })

/** Makes a creation as the actor of the handle would, `epochs` after the latest claim. */
const creation = Effect.fnUntraced(function* (orgId: string, handle: string, quota = 10, epochs = 0) {
  const sql = yield* Writes
  yield* sql`insert into actor (kind, id, epoch) values ('Identity', ${handle}, 1) on conflict do nothing`
  const at = new Date()
  const made: CreationBatch.Creation = {
    fenced: {
      sql,
      claim: { kind: "Identity", id: handle, epoch: 1 + epochs },
      fence: sql``,
      at,
      by: accountHolder,
      due: () => {},
      memory: new Map(),
    },
    id: yield* makeUuidV7,
    canonical: handle,
    handle,
    orgId,
    quota,
    saga,
    sagaDueAt: at,
  }
  return made
})

/** Runs the creations in one turn of the event loop, so that they share a statement. */
const together = (...creations: ReadonlyArray<CreationBatch.Creation>) =>
  Effect.flatMap(Effect.service(CreationBatch.CreationBatch), ({ make }) =>
    Effect.forEach(creations, (one) => Effect.exit(make(one)), { concurrency: "unbounded" }),
  )

const outcome = (exit: Exit.Exit<CreationBatch.Created, { readonly _tag: string }>) =>
  Exit.match(exit, {
    onSuccess: ({ made }) => (made ? "made" : "refused"),
    onFailure: (cause) => {
      const [reason] = cause.reasons
      return reason?._tag === "Fail" ? reason.error._tag : "defect"
    },
  })

/** Returns the handles of the Org, the number of transactions that created them, and how many Identities the Org has ever created. */
const made = (orgId: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ names: ReadonlyArray<string> | null; commits: number; count: number }>`
        select array_agg(i.canonical order by i.canonical) as names, count(distinct i.xmin::text)::int as commits,
               (select identities_created from org where id = ${orgId}) as count
        from identity i join handle h on h.canonical = i.canonical where i.org_id = ${orgId}`,
      ([row]) => row!,
    ),
  )

layer(actors({ limits: { identityQuota: 10 } }), { timeout: "60 seconds" })("the quota of Identities", (it) => {
  it.effect("is exact for 40 concurrent creations in two Orgs", () =>
    Effect.gen(function* () {
      const orgs = [yield* makeOrg, yield* makeOrg]
      const names = Array.from({ length: 40 }, () => newHandle("racer"))
      const of = (yield* Identities).of
      const exits = yield* Effect.forEach(
        Array.from({ length: 40 }, (_, index) => index),
        (index) =>
          Effect.gen(function* () {
            const org_id = orgs[index % 2]!
            return yield* Effect.exit(
              ask(of(names[index]!).Create({ org_id, identity_id: yield* makeUuidV7, handle: names[index]! })),
            )
          }),
        { concurrency: "unbounded" },
      )
      const refused = exits.filter(Exit.isFailure)
      expect(refused).toHaveLength(20)
      for (const { cause } of refused) {
        expect(cause.reasons[0]).toMatchObject({ error: { code: "identity_quota_exhausted" } })
      }
      for (const org of orgs) {
        const { names, count } = yield* made(org)
        expect([names?.length, count]).toEqual([10, 10])
      }
      // A handle whose creation was rejected is available again.
      const [{ n }] = (yield* rows(
        (sql) => sql<{ n: number }>`select count(*)::int as n from handle where canonical = any(${names})`,
      )) as [{ n: number }]
      expect(n).toBe(20)
      yield* waitUntil(
        rows(
          (sql) =>
            sql<{
              n: number
            }>`select count(*)::int as n from identity where status = 'ready' and canonical = any(${names})`,
        ),
        ([row]) => row!.n === 20,
        0,
      )
      // Identities that were created in shared commits are also provisioned in shared commits.
      const [{ n: commits }] = (yield* rows(
        (sql) =>
          sql<{ n: number }>`select count(distinct xmin::text)::int as n from identity where canonical = any(${names})`,
      )) as [{ n: number }]
      expect(commits).toBeLessThan(20)
    }),
  )

  it.effect("is not the reason for a refusal while the account is deleted or the store fails", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const org_id = yield* makeOrg
      const actor = Effect.fnUntraced(function* () {
        const handle = newHandle("late")
        return { handle, actor: (yield* Identities).of(handle), identity_id: yield* makeUuidV7 }
      })
      const { handle, identity_id, actor: late } = yield* actor()
      // An error of the store does not mean that the Handle is taken: the same command succeeds later.
      yield* sql.unsafe(`
        create or replace function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$`)
      yield* sql.unsafe(`
        create or replace trigger refuse before insert on handle for each row
        when (new.canonical = '${handle}') execute function refuse()`)
      const create = ask(late.Create({ org_id, identity_id, handle }))
      expect(JSON.stringify(yield* Effect.exit(create))).not.toContain("handle_taken")
      yield* sql.unsafe(`drop function refuse cascade`)
      yield* create
      expect(yield* made(org_id)).toMatchObject({ names: [handle], count: 1 })
      yield* sql`update org set status = 'deleting' where id = ${org_id}`
      const other = yield* actor()
      const refused = ask(other.actor.Create({ org_id, identity_id: other.identity_id, handle: other.handle }))
      expect(yield* Effect.flip(refused)).toMatchObject({ code: "account_deleting" })
      expect(yield* made(org_id)).toMatchObject({ names: [handle], count: 1 })
    }),
  )
})

layer(Layer.provideMerge(CreationBatch.layer, actors()), { timeout: "60 seconds" })(
  "Identities that are created at the same time",
  (it) => {
    it.effect("share one commit, up to each Org's quota in order of arrival", () =>
      Effect.gen(function* () {
        const [a1, a2, a3, b1] = [newHandle("a1"), newHandle("a2"), newHandle("a3"), newHandle("b1")]
        const [one, other] = [yield* makeOrg, yield* makeOrg]
        const exits = yield* together(
          yield* creation(one, a1, 2),
          yield* creation(other, b1, 2),
          yield* creation(one, a2, 2),
          yield* creation(one, a3, 2),
        )
        expect(exits.map(outcome)).toEqual(["made", "made", "made", "refused"])
        expect(yield* made(one)).toEqual({ names: [a1, a2], commits: 1, count: 2 })
        expect(yield* made(other)).toEqual({ names: [b1], commits: 1, count: 1 })
        const commits = yield* rows(
          (sql) =>
            sql<{
              n: number
            }>`select count(distinct xmin::text)::int as n from identity where canonical in (${a1}, ${b1})`,
        )
        expect(commits).toEqual([{ n: 1 }])
      }),
    )

    it.effect("warn once of an Org's quota, name who reached it, and are recorded if they are created", () =>
      Effect.gen(function* () {
        const org = yield* makeOrg
        const handles = ["n1", "n2", "n3", "n4", "n5", "n6"].map((stem) => newHandle(stem))
        const noted = Effect.fnUntraced(function* (handle: string) {
          const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org, { requestId: handle })))
          return { ...(yield* creation(org, handle, 5)), note }
        })
        const exits = yield* together(...(yield* Effect.forEach(handles, noted)))
        expect(exits.map(outcome)).toEqual([...Array(5).fill("made"), "refused"])
        const near = { limit: "identity_quota", used: 4, quota: 5, window: null }
        expect(
          yield* rows(
            (sql) => sql`
              select data, caused_by ->> 'credential_id' as by from event where org_id = ${org} and type = 'limit.near'`,
          ),
        ).toEqual([{ data: near, by: accountHolder.credentialId }])
        const recorded = yield* rows(
          (sql) => sql<{ id: string }>`select request_id as id from audit where org_id = ${org} order by 1`,
        )
        expect(recorded.map(({ id }) => id)).toEqual(handles.slice(0, 5).toSorted())
      }),
    )

    it.effect("are created one by one if a Handle is taken, and the others succeed", () =>
      Effect.gen(function* () {
        const [taken, c1, c2] = [newHandle("taken"), newHandle("c1"), newHandle("c2")]
        const org = yield* makeOrg
        const former = yield* makeOrg
        yield* together(yield* creation(former, taken))
        const exits = yield* together(yield* creation(org, c1), yield* creation(org, taken), yield* creation(org, c2))
        expect(exits.map(outcome)).toEqual(["made", "SqlError", "made"])
        expect(yield* made(org)).toMatchObject({ names: [c1, c2], count: 2 })
      }),
    )

    it.effect("are not created if the ownership was lost or the Org is deleted", () =>
      Effect.gen(function* () {
        const [d1, d2, d3, d4] = [newHandle("d1"), newHandle("d2"), newHandle("d3"), newHandle("d4")]
        const [org, going] = [yield* makeOrg, yield* makeOrg]
        yield* Effect.flatMap(Writes, (sql) => sql`update org set status = 'deleting' where id = ${going}`)
        const exits = yield* together(
          yield* creation(org, d1, 10, -1),
          yield* creation(org, d2),
          yield* creation(going, d3),
          yield* creation(yield* makeUuidV7, d4),
        )
        expect(exits.map(outcome)).toEqual(["FenceLost", "made", "refused", "refused"])
        expect(exits.slice(2).map((exit) => Exit.isSuccess(exit) && exit.value.status)).toEqual(["deleting", null])
        expect(yield* made(org)).toMatchObject({ names: [d2], count: 1 })
        expect(yield* made(going)).toMatchObject({ names: null, count: 0 })
      }),
    )

    it.effect("do not wait for a locked Org, whose Identities are created after its release within the quota", () =>
      Effect.gen(function* () {
        const [e1, e2, e3] = [newHandle("e1"), newHandle("e2"), newHandle("e3")]
        const sql = yield* Writes
        const [held, free] = [yield* makeOrg, yield* makeOrg]
        const late = [yield* creation(held, e1), yield* creation(held, e3)]
        const others = yield* creation(free, e2)
        const both = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`update org set identities_created = 9 where id = ${held}`
            const both = yield* Effect.forkDetach(together(...late, others))
            yield* waitUntil(made(free), ({ count }) => count === 1, 0)
            expect(yield* made(held)).toMatchObject({ names: null, count: 0 })
            return both
          }),
        )
        const exits = (yield* Fiber.join(both)).map(outcome)
        expect(exits[2]).toBe("made")
        expect(exits.slice(0, 2).sort()).toEqual(["made", "refused"])
        expect(yield* made(held)).toMatchObject({ names: [expect.stringMatching(/^e[13]x/)], count: 10 })
      }),
    )
  },
)
