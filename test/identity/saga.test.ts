import { makeUuidV7 } from "@svc/domain/Ids"
import type { Saga } from "@svc/domain/identity/Identity"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import * as SagaSource from "@svc/cluster/identity/SagaSource"
import { Timing } from "@svc/cluster/Timing"
import { StepFailed } from "@svc/cluster/saga/Step"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Exit, Layer } from "effect"
import { SqlError } from "effect/sql"
import { actors, makeOrg, waitUntil, tunnelPorts } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { countsGrow, countsOf } from "../harness/Counters.ts"
import { rows } from "../harness/Stores.ts"

/** The step with the injected failure. The last two share a commit with the step before. */
let failing: "card" | "tunnel" | "identity_key" | "lookup" | "away" | "slow" | undefined
/** The error of a connection that ended. */
const lost = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ message: "lost", cause: undefined }) })
/** Resolved when the slow step may continue. */
let printed = Promise.withResolvers<void>()
/** Times of the attempts of the failing step, in milliseconds of test time. */
let tries: Array<number> = []

/** The provisioning steps with injected failures: the step of the card fails itself, the others fail in the store. */
const fragile = Layer.effect(
  ProvisioningSteps,
  Effect.map(Effect.service(ProvisioningSteps), (steps) => ({
    ...steps,
    card: (subject) =>
      failing === "card"
        ? Effect.flatMap(Clock.currentTimeMillis, (now) => {
            tries.push(now)
            return Effect.fail(new StepFailed({ message: "the card printer is out of paper" }))
          })
        : failing === "lookup"
          ? Effect.andThen(subject.sql`select paper from printer`, steps.card(subject))
          : failing === "away"
            ? Effect.fail(lost)
            : failing === "slow"
              ? Effect.andThen(
                  Effect.promise(() => printed.promise),
                  steps.card(subject),
                )
              : steps.card(subject),
    tunnel: (subject) =>
      failing === "tunnel"
        ? Effect.succeed({
            rows: subject.sql`looked as (select 1 from fence)`,
            unless: { made: subject.sql`false`, otherwise: "no port is free" },
          })
        : steps.tunnel(subject),
    identity_key: (subject) =>
      failing === "identity_key"
        ? Effect.succeed({ rows: subject.sql`broken as (insert into card select from fence)` })
        : steps.identity_key(subject),
  })),
).pipe(Layer.provide(ProvisioningSteps.layer({ tunnelPorts })))

const identityRow = (handle: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ status: string; saga: typeof Saga.Encoded }>`select status, saga from identity where canonical = ${handle}`,
      ([row]) => row,
    ),
  )
const events = (handle: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ type: string; data: unknown }>`select type, data from event where handle = ${handle} order by seq`,
      (rows) => rows,
    ),
  )

/** The counted attempts by step and outcome. The last step of an earlier test may be counted late, so tests look at other steps. */
const attempts = countsOf("svc_saga_steps_total", "step", "outcome")

/** Returns the number of transactions that provisioned an Identity, the parts that they wrote, and whether both secrets are available. */
const made = (handle: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ commits: number; parts: ReadonlyArray<string>; shown: boolean }>`
        select count(distinct p.xmin)::int as commits, array_agg(p.part order by p.part) as parts,
               coalesce(bool_or(p.shown), false) as shown
        from identity i cross join lateral (
          select 'mailbox' as part, xmin::text, null::bool as shown from mailbox where identity_id = i.id
          union all select 'card', xmin::text, null from card where identity_id = i.id
          union all select 'key', xmin::text, null from api_key where identity_id = i.id
          union all select 'port', xmin::text, null from tunnel_port where identity_id = i.id
          union all select 'shown', xmin::text, imap_password is not null and identity_key is not null and expires_at is not null
            from show_once where identity_id = i.id
        ) p where i.canonical = ${handle}`,
      ([row]) => row!,
    ),
  )

const create = Effect.fnUntraced(function* (stem: string, fails?: typeof failing, org?: string) {
  failing = fails
  tries = []
  const handle = newHandle(stem)
  const org_id = org ?? (yield* makeOrg)
  const actor = (yield* Identities).of(handle)
  yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle }))
  return { org_id, actor, handle }
})

layer(actors({ steps: fragile }))("a saga with a failing step", (it) => {
  it.effect("is retried, shows the reason, and resumes at the failed step", () =>
    Effect.gen(function* () {
      const { actor, org_id, handle } = yield* create("ada", "card")
      const retrying = yield* waitUntil(identityRow(handle), (row) => row?.saga.steps[2]!.status === "retrying", 0)
      expect(retrying.value).toMatchObject({ status: "provisioning", saga: { status: "running" } })
      const { steps } = retrying.value!.saga
      expect(steps[2]).toMatchObject({ name: "card", error: "the card printer is out of paper" })
      expect(steps.map(({ status }) => status)).toEqual(["done", "done", "retrying", "pending"])
      // The steps before it share one commit.
      expect(yield* made(handle)).toEqual({ commits: 1, parts: ["mailbox", "port", "shown"], shown: false })
      const busy = yield* Effect.flip(ask(actor.Delete({ org_id })))
      expect(busy).toMatchObject({ code: "identity_busy", agent_hint: "wait", retry_after_seconds: 1 })
      const [webhook_id, event_id] = [yield* makeUuidV7, yield* makeUuidV7]
      for (const early of [
        Effect.flip(ask(actor.RotateKey({ org_id }))),
        Effect.flip(ask(actor.TestWebhook({ org_id, webhook_id, event_id, delivery_id: event_id }))),
      ])
        expect(yield* early).toMatchObject({ code: "identity_not_ready", agent_hint: "wait" })
      // A saga that is running is not started over.
      const due = rows((sql) => sql`select saga, saga_due_at from identity where canonical = ${handle}`)
      const before = yield* due
      yield* ask(actor.Retry({ org_id }))
      expect(yield* due).toEqual(before)
      failing = undefined
      const ready = yield* waitUntil(identityRow(handle), (row) => row?.status === "ready")
      expect(ready.value!.saga.steps[2]).toMatchObject({ status: "done", error: null, attempts: 2 })
      const first = rows(
        (sql) => sql`
          select i.canonical as first, i.ready_at is not null as timed from org o join identity i on i.id = o.first_ready_identity
          where o.id = ${org_id}`,
      )
      expect(yield* first).toEqual([{ first: handle, timed: true }])
      const second = yield* create("second", "card", org_id)
      yield* waitUntil(identityRow(second.handle), (row) => row?.saga.steps[2]!.status === "retrying", 0)
      failing = undefined
      yield* waitUntil(identityRow(second.handle), (row) => row?.status === "ready")
      expect(yield* first).toEqual([{ first: handle, timed: true }])
    }),
  )

  it.effect.each([
    ["lookup", "internal error"],
    ["away", "the database is unavailable"],
  ] as const)("counts a step that cannot read the store as a failed attempt: %s", ([fails, error]) =>
    Effect.gen(function* () {
      const { handle } = yield* create("radia", fails)
      const retrying = yield* waitUntil(identityRow(handle), (row) => row?.saga.steps[2]!.status === "retrying", 0)
      expect(retrying.value!.saga.steps[2]).toMatchObject({ attempts: 1, error })
      failing = undefined
      yield* waitUntil(identityRow(handle), (row) => row?.status === "ready")
    }),
  )

  it.effect("is not resumed by another process until the lease of its step has expired", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      printed = Promise.withResolvers()
      const { actor, org_id, handle } = yield* create("lise", "slow")
      const due = rows((sql) => sql<{ at: Date }>`select saga_due_at as at from identity where canonical = ${handle}`)
      const lease = new Date((yield* Clock.currentTimeMillis) + Timing.sagaLeaseMillis)
      const found = (late: number) => SagaSource.source.overdue(sql, new Date(late), 1_000)
      expect(yield* due).toEqual([{ at: lease }])
      expect(yield* found(lease.getTime() - 1)).not.toContain(handle)
      expect(yield* found(lease.getTime())).toContain(handle)
      printed.resolve()
      failing = undefined
      yield* waitUntil(identityRow(handle), (row) => row?.status === "ready")
      expect(yield* found(lease.getTime() + 86_400_000)).not.toContain(handle)
      // Each step of a deletion renews the lease. The step of the card waits for a lock.
      const later = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select 1 from card c join identity i on i.id = c.identity_id where i.canonical = ${handle} for update of c`
          yield* waitUntil(Effect.exit(ask(actor.Delete({ org_id }))), Exit.isSuccess, 0)
          yield* waitUntil(identityRow(handle), (row) => row?.saga.steps[1]?.status === "done", 0)
          return [yield* due, (yield* Clock.currentTimeMillis) + Timing.sagaLeaseMillis] as const
        }),
      )
      expect(later[0]).toEqual([{ at: new Date(later[1]) }])
      yield* waitUntil(identityRow(handle), (row) => row === undefined)
    }),
  )

  it.effect("is reversed by the deletion of its account, without waiting for its end", () =>
    Effect.gen(function* () {
      const { actor, org_id, handle } = yield* create("edith", "card")
      yield* waitUntil(identityRow(handle), (row) => row?.saga.steps[2]!.status === "retrying", 0)
      yield* ask(actor.Delete({ org_id, account: true }))
      yield* waitUntil(identityRow(handle), (row) => row === undefined)
      failing = undefined
    }),
  )

  it.effect("is retried alone, and the other steps of its commit succeed", () =>
    Effect.gen(function* () {
      const shown = (steps: (typeof Saga.Encoded)["steps"]) =>
        steps.map(({ name, status, attempts, error }) => [name, status, attempts, error])
      const before = yield* attempts
      const { handle } = yield* create("dorothy", "tunnel")
      const exhausted = yield* waitUntil(identityRow(handle), (row) => row?.saga.steps[1]!.status === "retrying", 0)
      expect(shown(exhausted.value!.saga.steps)).toEqual([
        ["mailbox", "done", 1, null],
        ["tunnel", "retrying", 1, "no port is free"],
        ["card", "pending", 0, null],
        ["identity_key", "pending", 0, null],
      ])
      yield* countsGrow(attempts, before, { "tunnel failed": 1 })
      // Later steps of the same statement were rolled back as well.
      expect((yield* made(handle)).parts).toEqual(["mailbox", "shown"])
      failing = "identity_key"
      const refused = yield* waitUntil(identityRow(handle), (row) => row?.saga.steps[3]!.status === "retrying")
      expect(shown(refused.value!.saga.steps)).toEqual([
        ["mailbox", "done", 1, null],
        ["tunnel", "done", 2, null],
        ["card", "done", 1, null],
        // At least one attempt; more if several happened between two polls.
        ["identity_key", "retrying", expect.any(Number), "internal error"],
      ])
      failing = undefined
      yield* waitUntil(identityRow(handle), (row) => row?.status === "ready")
      expect(yield* made(handle)).toMatchObject({ shown: true })
    }),
  )

  it.effect("runs all steps in one commit if none fails, and shows both secrets", () =>
    Effect.gen(function* () {
      const before = yield* attempts
      const { handle } = yield* create("mary")
      yield* waitUntil(identityRow(handle), (row) => row?.status === "ready", 0)
      expect(yield* made(handle)).toEqual({
        commits: 1,
        parts: ["card", "key", "mailbox", "port", "shown"],
        shown: true,
      })
      yield* countsGrow(attempts, before, {
        "mailbox done": 1,
        "tunnel done": 1,
        "card done": 1,
        "identity_key done": 1,
      })
    }),
  )

  it.effect("fails after six attempts, raises identity.failed, and can be retried", () =>
    Effect.gen(function* () {
      const before = yield* attempts
      const { actor, org_id, handle } = yield* create("grace", "card")
      const failed = yield* waitUntil(identityRow(handle), (row) => row?.status === "failed")
      // Delays of 1, 2, 4, 8 and 16 s with up to 20 % jitter.
      expect(tries).toHaveLength(6)
      for (const [index, least] of [800, 1_600, 3_200, 6_400, 12_800].entries()) {
        expect(tries[index + 1]! - tries[index]!).toBeGreaterThanOrEqual(least)
      }
      expect(failed.value!.saga.status).toBe("failed")
      expect(failed.value!.saga.steps[2]).toMatchObject({ status: "failed", attempts: 6 })
      expect(failed.value!.saga.steps[3]).toMatchObject({ status: "pending", attempts: 0 })
      expect(yield* events(handle)).toEqual([
        { type: "identity.failed", data: { step: "card", error: "the card printer is out of paper" } },
      ])
      yield* countsGrow(attempts, before, { "tunnel done": 1, "card failed": 6 })
      failing = undefined
      yield* ask(actor.Retry({ org_id }))
      const ready = yield* waitUntil(identityRow(handle), (row) => row?.status === "ready")
      expect(ready.value!.saga.steps[0]!.attempts).toBe(1)
      yield* ask(actor.Retry({ org_id }))
      expect((yield* identityRow(handle))!.status).toBe("ready")
    }),
  )

  it.effect("rejects every key of the Identity from the commit that starts its teardown", () =>
    Effect.gen(function* () {
      const { actor, org_id, handle } = yield* create("ida")
      yield* waitUntil(identityRow(handle), (row) => row?.status === "ready")
      const keys = Effect.flatMap(
        Reads,
        (sql) => sql<{ revoked: boolean; told: string | null }>`
          select k.revoked_at is not null as revoked,
                 (select e.caused_by ->> 'kind' from event e where e.type = 'api_key.revoked' and e.data ->> 'key_id' = k.id::text) as told
          from api_key k join identity i on i.id = k.identity_id where i.canonical = ${handle}`,
      )
      expect(yield* keys).toEqual([{ revoked: false, told: null }])
      const by = onBehalfOf({ kind: "admin_key", credentialId: "k", requestId: "req_1" })
      // The remaining teardown steps fail; the credentials must already be revoked.
      yield* Effect.flatMap(Writes, (sql) => sql`alter table show_once rename to show_once_gone`)
      yield* ask(actor.Delete({ org_id }, by))
      const after = yield* keys
      yield* Effect.flatMap(Writes, (sql) => sql`alter table show_once_gone rename to show_once`)
      expect(after).toEqual([{ revoked: true, told: "admin_key" }])
      yield* waitUntil(identityRow(handle), (row) => row === undefined)
    }),
  )
})
