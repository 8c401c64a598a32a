import type { Initiator } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import { act, noKey } from "../audit/Acts.ts"
import { actors, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

const ready = Effect.fnUntraced(function* (stem: string) {
  const [org_id, handle] = [yield* makeOrg, newHandle(stem)]
  const actor = (yield* Identities).of(handle)
  yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle }))
  yield* waitUntil(
    Effect.flatMap(Reads, (sql) => sql`select 1 from identity where canonical = ${handle} and status = 'ready'`),
    (rows) => rows.length === 1,
  )
  return { org_id, handle, actor }
})

interface Told {
  readonly changed: ReadonlyArray<string>
  readonly request_id: string
  readonly commit: string
}
const eventsOf = (handle: string) =>
  Effect.flatMap(
    Reads,
    (sql) => sql<Told>`
      select data -> 'changed' as changed, caused_by ->> 'request_id' as request_id, xmin::text as commit
      from event where handle = ${handle} and type = 'card.updated' order by seq`,
  )

const by = (n: number): Initiator => ({ kind: "session", credentialId: null, requestId: `req_${n}` })

layer(actors())("concurrent changes of a card", (it) => {
  it.effect("share commits and keep their own version, Event and cause, in order", () =>
    Effect.gen(function* () {
      const { org_id, handle, actor } = yield* ready("crowd")
      const began = yield* Clock.currentTimeMillis
      yield* TestClock.adjust("1 minute")
      const all = yield* Effect.forEach(
        Array.from({ length: 12 }, (_, n) => n),
        (n) =>
          ask(
            actor.PatchCard(
              { org_id, patch: n % 2 === 0 ? { name: `n${n}` } : { description: `d${n}` }, if_version: null },
              onBehalfOf(by(n)),
            ),
          ),
        { concurrency: "unbounded" },
      )
      expect(all.map(({ version }) => version)).toEqual(Array.from({ length: 12 }, (_, n) => n + 2))
      expect(all.every(({ updated_at }) => updated_at.getTime() >= began + 60_000)).toBe(true)
      expect(all.map(({ fields }) => [fields.name, fields.description]).slice(-2)).toEqual([
        ["n10", "d9"],
        ["n10", "d11"],
      ])
      const events = yield* eventsOf(handle)
      expect(events.map(({ request_id }) => request_id)).toEqual(all.map((_, n) => `req_${n}`))
      expect(events.map(({ changed }) => changed)).toEqual(all.map((_, n) => [n % 2 === 0 ? "name" : "description"]))
      expect(new Set(events.map(({ commit }) => commit)).size).toBeLessThan(events.length)
    }),
  )

  it.effect("of one command are carried out once, and each has one audit record unless it is refused", () =>
    Effect.gen(function* () {
      const { org_id, handle, actor } = yield* ready("twice")
      const command = yield* makeUuidV7
      const patch = Effect.fnUntraced(function* (
        n: number,
        name: string,
        versions: ReadonlyArray<number> | null,
        id?: string,
      ) {
        const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org_id, { requestId: `req_${n}` })))
        return yield* Effect.exit(
          ask(actor.PatchCard({ org_id, patch: { name }, if_version: versions }, onBehalfOf(by(n), id, note))),
        )
      })
      yield* Effect.all(
        [
          patch(0, "first", null),
          patch(1, "ours", null, command),
          patch(2, "theirs", null),
          patch(3, "ours", null, command),
          patch(4, "theirs", null),
          patch(5, "refused", [1]),
        ],
        { concurrency: "unbounded" },
      )
      expect((yield* eventsOf(handle)).map(({ request_id }) => request_id)).toEqual(["req_0", "req_1", "req_2"])
      const recorded = yield* Effect.flatMap(
        Reads,
        (sql) => sql<{ request_id: string }>`select request_id from audit where org_id = ${org_id} order by request_id`,
      )
      expect(recorded.map(({ request_id }) => request_id)).toEqual(["req_0", "req_1", "req_2", "req_3", "req_4"])
    }),
  )

  it.effect("are rejected, ignored or recognized as repeated without affecting one another", () =>
    Effect.gen(function* () {
      const { org_id, handle, actor } = yield* ready("mixed")
      const other = yield* makeOrg
      const done = yield* makeUuidV7
      const patch = (n: number, name: string, versions: ReadonlyArray<number> | null, command?: string, org = org_id) =>
        Effect.exit(
          ask(actor.PatchCard({ org_id: org, patch: { name }, if_version: versions }, onBehalfOf(by(n), command))),
        )
      expect(yield* patch(0, "first", [1], done)).toMatchObject({ value: { version: 2 } })
      const outcomes = yield* Effect.all(
        [
          // A patch that has its own command id.
          patch(1, "second", null),
          patch(2, "third", [3], yield* makeUuidV7),
          patch(3, "too late", [3], yield* makeUuidV7),
          // Two repetitions of a completed command: one requires a version that is outdated, one accepts any version.
          patch(4, "first", [1], done),
          patch(5, "first", null, done),
          patch(6, "third", null),
          patch(7, "of another", null, undefined, other),
          patch(8, "fourth", [4], yield* makeUuidV7),
        ],
        { concurrency: "unbounded" },
      )
      const described = outcomes.map((exit) =>
        Exit.isSuccess(exit) ? `${exit.value.fields.name} v${exit.value.version}` : "refused",
      )
      expect(described.filter((_, n) => ![3, 4].includes(n))).toEqual([
        "second v3",
        "third v4",
        "refused",
        "third v4",
        "refused",
        "fourth v5",
      ])
      expect(outcomes[2]).toMatchObject({ cause: { reasons: [{ error: { code: "precondition_failed" } }] } })
      expect(outcomes[6]).toMatchObject({ cause: { reasons: [{ error: { code: "not_found" } }] } })
      // Each repetition returns the card as the first execution left it.
      expect(outcomes.slice(3, 5).every(Exit.isSuccess)).toBe(true)
      expect((yield* eventsOf(handle)).map(({ request_id }) => request_id)).toEqual([
        "req_0",
        "req_1",
        "req_2",
        "req_8",
      ])
    }),
  )
})
