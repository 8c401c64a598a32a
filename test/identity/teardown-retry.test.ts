import { ask } from "@svc/cluster/actor/Ask"
import { Unhurried } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, identityOf, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

layer(actors())("A failed teardown", (it) => {
  it.effect("is reported with the step that failed, and a retry completes it", () =>
    Effect.gen(function* () {
      const [org_id, ada] = [yield* makeOrg, newHandle("ada")]
      const { actor } = yield* makeIdentity(org_id, ada)
      const sql = yield* Unhurried
      // The injected failure: the store refuses to delete the card.
      yield* sql.unsafe(`
        create or replace function stuck() returns trigger language plpgsql as $$ begin raise exception 'the card is stuck'; end $$`)
      yield* sql.unsafe(`create or replace trigger stuck before delete on card for each row execute function stuck()`)
      yield* ask(actor.Delete({ org_id }))
      const failed = yield* waitUntil(identityOf(ada), (row) => row?.saga.steps[2]?.status === "failed")
      expect(failed.value!.saga.steps.map(({ name, status }) => [name, status])).toEqual([
        ["identity_keys", "done"],
        ["connectors", "done"],
        ["card", "failed"],
        ["tunnel", "pending"],
        ["mailbox", "pending"],
      ])
      // A retry that fails again has all its attempts, and the Identity is still being deleted.
      const stored = sql<{ status: string; began: unknown; due: Date; step: { attempts: number; status: string } }>`
        select status, saga -> 'started_at' as began, saga_due_at as due, saga -> 'steps' -> 2 as step
        from identity where canonical = ${ada}`
      const [{ began } = { began: undefined }] = yield* stored
      for (const again of [actor.Delete({ org_id }), actor.Retry({ org_id })]) {
        const { value: ended } = yield* waitUntil(stored, ([row]) => row?.step.status === "failed")
        expect(ended).toMatchObject([{ status: "deleting" }])
        yield* ask(again)
        const { value } = yield* waitUntil(stored, ([row]) => (row?.step.attempts ?? 0) > 0, 0)
        expect(value).toMatchObject([{ status: "deleting", began, step: { status: "retrying", attempts: 1 } }])
        // A deletion that is running is not started over.
        yield* ask(actor.Delete({ org_id }))
        expect(yield* stored).toEqual(value)
      }
      // Only a failed creation is reported as such.
      expect(yield* sql`select type from event where handle = ${ada} and type = 'identity.failed'`).toEqual([])
      // An Event that is raised while the rows of the Identity are deleted goes with them.
      yield* sql.unsafe(`
        create or replace function late_event() returns trigger language plpgsql as $$ begin
          insert into event (id, org_id, identity_id, handle, type, data, created_at)
          select uuidv7(), org_id, id, handle, 'mail.stopped', '{}', now() from identity where canonical = '${ada}';
          return null; end $$`)
      yield* sql.unsafe(
        `create or replace trigger late after delete on usage_hour for each statement execute function late_event()`,
      )
      yield* sql.unsafe(`drop trigger stuck on card`)
      yield* waitUntil(identityOf(ada), (row) => row === undefined)
      expect(yield* sql`select type from event where handle = ${ada}`).toEqual([])
    }),
  )
})
