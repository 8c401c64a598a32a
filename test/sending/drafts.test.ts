/** Concurrent changes to drafts. */
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import * as DraftRenditions from "@svc/cluster/mail/folders/DraftRenditions"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Unhurried } from "@svc/cluster/store/Database"
import { actors, awaitFiber, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"
import { correspondent } from "./Correspondent.ts"

/** Whether a statement waits for a lock of the connection. */
const isWaitingFor = (pid: number) =>
  Effect.map(
    rows(
      (sql) => sql<{ waiting: boolean }>`
        select exists (select from pg_locks where not granted and ${pid}::int = any(pg_blocking_pids(pid))) as waiting`,
    ),
    ([row]) => row!.waiting,
  )

layer(actors())("a draft", (it) => {
  it.effect("is changed by one of several callers with the same version, and the others get an error", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("draftone", [])
      const drafts = yield* Drafts
      const uuid = yield* makeUuidV7
      const id = toPublic("msg_", uuid)
      yield* drafts.create(ada.id, uuid, { text: "First." })
      const answers = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, n) => `Hand ${n}.`),
        (text) => Effect.result(drafts.replace(ada.id, id, { text }, [1])),
        { concurrency: "unbounded" },
      )
      expect(answers.filter(Result.isSuccess).length).toBe(1)
      const refused = answers.filter(Result.isFailure).map(({ failure }) => failure)
      expect(refused.map((error) => "code" in error && error.code)).toEqual(Array(7).fill("precondition_failed"))
      const removal = yield* Effect.flip(drafts.remove(ada.id, id, [1]))
      expect(removal).toMatchObject({ code: "precondition_failed" })
    }),
  )

  it.effect("is one of at most 100 of its Identity", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("draftmany", [])
      const drafts = yield* Drafts
      const sql = yield* Unhurried
      yield* sql`
        insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
        select uuidv7(), ${ada.id}, 1, '{}', '{}', now(), now() from generate_series(1, 99)`
      expect(yield* drafts.ownerWithRoom(ada.id)).toBe(ada.id)
      const last = yield* makeUuidV7
      // Another process creates the last one at the same time.
      const late = yield* sql.withTransaction(
        Effect.gen(function* () {
          const [{ pid } = { pid: 0 }] = yield* sql<{ pid: number }>`
            select pg_backend_pid() as pid from identity where id = ${ada.id} for no key update`
          const late = yield* Effect.forkChild(Effect.flip(drafts.create(ada.id, yield* makeUuidV7, { text: "Late." })))
          yield* waitUntil(isWaitingFor(pid), (isWaiting) => isWaiting, 0)
          yield* sql`
            insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
            values (${last}, ${ada.id}, 1, '{}', '{}', now(), now())`
          return late
        }),
      )
      const refusal = { code: "conflict", detail: "An Identity keeps at most 100 drafts." }
      expect(yield* awaitFiber(late)).toMatchObject({ _tag: "Success", value: refusal })
      expect(yield* Effect.flip(drafts.create(ada.id, yield* makeUuidV7, { text: "One too many." }))).toMatchObject(
        refusal,
      )
      expect(yield* drafts.ownerWithRoom(ada.id)).toBeUndefined()
      // A repeated request gets the response of the first one.
      yield* drafts.create(ada.id, last, { text: "Last." })
      expect(yield* sql`select from draft where identity_id = ${ada.id}`).toHaveLength(100)
    }),
  )

  it.effect("is not changed by a caller whose version was replaced after it was checked", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("draftrace", [])
      const drafts = yield* Drafts
      const sql = yield* Unhurried
      const uuid = yield* makeUuidV7
      const id = toPublic("msg_", uuid)
      for (const change of [drafts.replace(ada.id, id, { text: "Late." }, [1]), drafts.remove(ada.id, id, [1])]) {
        yield* sql`delete from draft where id = ${uuid}`
        yield* drafts.create(ada.id, uuid, { text: "First." })
        const late = yield* sql.withTransaction(
          Effect.gen(function* () {
            const [{ pid } = { pid: 0 }] = yield* sql<{ pid: number }>`
              select pg_backend_pid() as pid from draft where id = ${uuid} for update`
            const late = yield* Effect.forkChild(Effect.flip(change))
            yield* waitUntil(isWaitingFor(pid), (isWaiting) => isWaiting, 0)
            yield* sql`update draft set version = 2 where id = ${uuid}`
            return late
          }),
        )
        expect(yield* awaitFiber(late)).toMatchObject({ _tag: "Success", value: { code: "precondition_failed" } })
        expect((yield* drafts.read(ada.id, id)).draft.text).toBe("First.")
      }
    }),
  )

  it.effect.each([
    ["changed", "conflict", "Second."],
    ["removed", "not_found", undefined],
  ] as const)("that was %s while it was being sent stays as its writer was told", ([what, code, left]) =>
    Effect.gen(function* () {
      const ada = yield* correspondent(`draft${what}`, ["grace@example.org"])
      const drafts = yield* Drafts
      const sql = yield* Unhurried
      const uuid = yield* makeUuidV7
      const id = toPublic("msg_", uuid)
      const mail = { to: ["grace@example.org"], text: "First." }
      yield* drafts.create(ada.id, uuid, mail)
      const sends = yield* sql.withTransaction(
        Effect.gen(function* () {
          const [{ pid } = { pid: 0 }] = yield* sql<{ pid: number }>`
            select pg_backend_pid() as pid from mailbox where identity_id = ${ada.id} for update`
          const sends = yield* Effect.forkChild(Effect.flip(ada.send(mail, { id: uuid, draftVersion: 1 })))
          yield* waitUntil(isWaitingFor(pid), (isWaiting) => isWaiting, 0)
          yield* left === undefined
            ? drafts.remove(ada.id, id, null)
            : drafts.replace(ada.id, id, { ...mail, text: left }, null)
          return sends
        }),
      )
      expect(yield* awaitFiber(sends)).toMatchObject({ _tag: "Success", value: { code } })
      const found = yield* Effect.result(drafts.read(ada.id, id))
      expect(Result.isSuccess(found) ? found.success.draft.text : undefined).toBe(left)
      expect(yield* ada.deliveries).toEqual([])
      if (left !== undefined) {
        yield* ada.send({ ...mail, text: left }, { id: uuid, draftVersion: 2 })
        expect(yield* ada.deliveries).toMatchObject([{ address: "grace@example.org" }])
        expect(yield* Effect.flip(drafts.read(ada.id, id))).toMatchObject({ code: "not_found" })
      }
    }),
  )

  it.effect("is missing for a caller without a precondition if others changed and deleted it", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("draftgone", [])
      const drafts = yield* Drafts
      for (let round = 0; round < 10; round++) {
        const uuid = yield* makeUuidV7
        const id = toPublic("msg_", uuid)
        yield* drafts.create(ada.id, uuid, { text: "First." })
        const answers = yield* Effect.all(
          [
            ...Array.from({ length: 4 }, (_, n) => Effect.result(drafts.replace(ada.id, id, { text: `${n}` }, null))),
            Effect.result(drafts.remove(ada.id, id, null)),
            ...Array.from({ length: 4 }, (_, n) => Effect.result(drafts.replace(ada.id, id, { text: `${n}` }, null))),
          ],
          { concurrency: "unbounded" },
        )
        for (const { failure } of answers.filter(Result.isFailure)) expect(failure).toMatchObject({ code: "not_found" })
      }
    }),
  )

  it.effect("is shown over IMAP with the content of the version that it says", () =>
    Effect.gen(function* () {
      const ada = yield* correspondent("draftshown", [])
      const drafts = yield* Drafts
      const uuid = yield* makeUuidV7
      yield* drafts.create(ada.id, uuid, { text: "First." })
      yield* drafts.replace(ada.id, toPublic("msg_", uuid), { text: "Second." }, [1])
      const contentOf = (version: number) =>
        Effect.flatMap(Unhurried, (sql) => DraftRenditions.contentOf(sql, { id: uuid, version }))
      expect([yield* contentOf(1), (yield* contentOf(2))?.content]).toEqual([
        undefined,
        expect.stringContaining("Second."),
      ])
    }),
  )
})
