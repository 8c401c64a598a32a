/** Versions of secrets that are written concurrently share statements and succeed or fail independently. */
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import type { AuditNote } from "@svc/cluster/actor/Write"
import { Reads, Unhurried, Writes } from "@svc/cluster/store/Database"
import { Vault } from "@svc/cluster/vault/Vault"
import type { WriteCondition } from "@svc/cluster/vault/SecretWrites"
import type { Namespace } from "@svc/cluster/vault/SecretRows"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { bareTag } from "@svc/domain/vault/SecretTag"
import { maxValueBytes, versionsKept } from "@svc/domain/vault/Vault"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { act, noKey } from "../audit/Acts.ts"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { afterwards } from "../harness/Afterwards.ts"
import { newHandle } from "../harness/Client.ts"
import { interruptAtLock } from "../harness/InterruptedStatement.ts"

const always: WriteCondition = { ifTag: null, ifAbsent: false, ifPresent: false }
const all = { concurrency: "unbounded" } as const
const range = (count: number) => Array.from({ length: count }, (_, n) => n)
/** The Vault as another process has it. */
const another = Effect.map(Layer.build(Layer.fresh(Vault.layer)), (context) => Context.get(context, Vault))

layer(Layer.provideMerge(Vault.layer, actors()))("secrets", (it) => {
  const prepared = Effect.gen(function* () {
    const org = yield* makeOrg
    const vault = yield* Vault
    const own = { org, identity: null }
    const sql = yield* Reads
    return {
      org,
      own,
      vault,
      sql,
      put: (name: string, value: string, condition = always, note?: AuditNote) =>
        vault.put(own, name, { value }, condition, note),
      read: (name: string) => Effect.map(vault.valueOnRecord(own, name), ({ value }) => value),
    }
  })

  it.effect("are not written before their Identity is ready, nor while it is deleted, with the matching hint", () =>
    Effect.gen(function* () {
      const { org, vault } = yield* prepared
      const { id } = yield* makeIdentity(org, newHandle("hinted"))
      const write = vault.put({ org, identity: id as IdentityId }, "name", { value: "x" }, always)
      for (const [status, agent_hint] of [
        ["provisioning", "wait"],
        ["deleting", "stop"],
      ]) {
        yield* Effect.flatMap(Unhurried, (sql) => sql`update identity set status = ${status} where id = ${id}`)
        expect(yield* Effect.flip(write)).toMatchObject({ code: "identity_not_ready", agent_hint })
      }
    }),
  )

  it.effect("are not written if the deletion of their Identity or account begins meanwhile", () =>
    Effect.gen(function* () {
      const { org, own, vault } = yield* prepared
      const { id } = yield* makeIdentity(org, newHandle("meanwhile"))
      const sql = yield* Writes
      const write = (namespace: Namespace) => Effect.flip(vault.put(namespace, "name", { value: "x" }, always))
      const refused = [
        yield* afterwards(
          sql`update identity set status = 'deleting' where id = ${id}`,
          write({ org, identity: id as IdentityId }),
        ),
        yield* afterwards(sql`update org set status = 'deleting' where id = ${org}`, write(own)),
      ]
      expect(refused.map(({ code }) => code)).toEqual(["identity_not_ready", "account_deleting"])
    }),
  )

  it.effect("are not written while their account is deleted", () =>
    Effect.gen(function* () {
      const { org, put, sql } = yield* prepared
      yield* put("token", "kept")
      yield* Effect.flatMap(Unhurried, (sql) => sql`update org set status = 'deleting' where id = ${org}`)
      for (const name of ["token", "new"])
        expect(yield* Effect.flip(put(name, "x"))).toMatchObject({ code: "account_deleting" })
      expect(yield* sql`select version from vault_secret where org_id = ${org}`).toEqual([{ version: 1 }])
    }),
  )

  it.effect("are listed page by page, read, restored and removed only in their own namespace", () =>
    Effect.gen(function* () {
      const { org, own, vault } = yield* prepared
      const ids = [yield* makeIdentity(org, newHandle("ada")), yield* makeIdentity(org, newHandle("bob"))]
      const [ada, bob] = ids.map(({ id }) => ({ org, identity: id as IdentityId })) as [Namespace, Namespace]
      const other = { org: yield* makeOrg, identity: null }
      for (const [n, space] of [own, ada, bob, other].entries())
        yield* vault.put(space, "token", { value: `value ${n}` }, always)
      for (const value of ["one", "two", "three"]) yield* vault.put(ada, "extra", { value }, always)
      for (const [n, space] of [own, ada, bob, other].entries()) {
        expect((yield* vault.valueOnRecord(space, "token")).value).toBe(`value ${n}`)
        const { entries } = yield* vault.list(space, { limit: 10 })
        expect(entries.map(({ name }) => name)).toEqual(space === ada ? ["extra", "token"] : ["token"])
        if (space === ada) continue
        for (const call of [
          vault.valueOnRecord(space, "extra"),
          vault.versions(space, "extra", { limit: 10 }),
          vault.restore(space, "extra", 1, null),
          vault.remove(space, "extra", null),
        ])
          expect(yield* Effect.flip(call as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
      }
      const first = yield* vault.list(ada, { limit: 1 })
      const second = yield* vault.list(ada, { limit: 1, cursor: first.next_cursor! })
      expect([...first.entries, ...second.entries].map(({ name }) => name)).toEqual(["extra", "token"])
      expect(second.next_cursor).toBeNull()
      expect(yield* Effect.flip(vault.list(bob, { limit: 1, cursor: first.next_cursor! }))).toHaveProperty("code")
      const newest = yield* vault.versions(ada, "extra", { limit: 2 })
      const oldest = yield* vault.versions(ada, "extra", { limit: 2, cursor: newest.next_cursor! })
      expect([newest, oldest].map(({ entries }) => entries.map(({ version }) => version))).toEqual([[3, 2], [1]])
      yield* vault.remove(ada, "token", null)
      for (const space of [own, bob, other]) expect((yield* vault.list(space, { limit: 10 })).entries).toHaveLength(1)
    }),
  )

  it.effect(
    "have limits of name and value, keep their last versions, and keep their description until it is changed",
    () =>
      Effect.gen(function* () {
        const { org, own, put, read, vault } = yield* prepared
        yield* put("big", "é".repeat(maxValueBytes / 2))
        const large = yield* Effect.flip(put("big", `${"é".repeat(maxValueBytes / 2)}x`))
        expect(large).toMatchObject({ code: "payload_too_large" })
        yield* put("a".repeat(128), "x")
        for (const name of ["a".repeat(129), "A", "", "-a"])
          for (const call of [
            put(name, "x"),
            read(name),
            vault.versions(own, name, { limit: 10 }),
            vault.restore(own, name, 1, null),
            vault.remove(own, name, null),
          ])
            expect(yield* Effect.flip(call as Effect.Effect<unknown, unknown>)).toMatchObject({
              code: "secret_name_invalid",
            })
        const last = versionsKept + 2
        for (let n = 1; n <= last; n++) yield* put("many", `value ${n}`)
        // Only old versions of the same secret are removed.
        expect(yield* read("a".repeat(128))).toBe("x")
        const { entries } = yield* vault.versions(own, "many", { limit: 100 })
        expect(entries.map(({ version }) => version)).toEqual(range(versionsKept).map((n) => last - n))
        const many = (yield* vault.list(own, { limit: 100 })).entries.find(({ name }) => name === "many")!.created_at
        expect(yield* Effect.flip(vault.restore(own, "many", 2, null))).toMatchObject({ code: "not_found" })
        expect(yield* Effect.flip(vault.restore(own, "many", 3, [bareTag(1, many)]))).toMatchObject({
          code: "precondition_failed",
        })
        yield* TestClock.adjust("1 minute")
        expect((yield* vault.restore(own, "many", 3, [bareTag(last, many)])).version).toBe(last + 1)
        expect(yield* read("many")).toBe("value 3")
        const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org)))
        expect((yield* vault.value(own, "many", 4, note)).secret).toEqual({
          name: "many",
          value: "value 4",
          version: 4,
          updated_at: entries.find(({ version }) => version === 4)!.created_at,
        })
        const { next_cursor } = yield* vault.versions(own, "many", { limit: 1 })
        const elsewhere = vault.versions(own, "big", { limit: 1, cursor: next_cursor! })
        expect(yield* Effect.flip(elsewhere)).toMatchObject({ code: "invalid_cursor" })
        const described: Array<string | null> = []
        let named: Date | undefined
        for (const description of ["first", undefined, null, undefined]) {
          const value = { value: "x", ...(description === undefined ? {} : { description }) }
          const { secret } = yield* vault.put(own, "named", value, always)
          described.push(secret.description)
          named = secret.created_at
        }
        expect(described).toEqual(["first", "first", null, null])
        const tag = (version: number) => [bareTag(version, named!)]
        expect(yield* Effect.flip(vault.remove(own, "named", tag(3)))).toMatchObject({ code: "precondition_failed" })
        yield* vault.remove(own, "named", tag(4))
        expect(yield* Effect.flip(vault.remove(own, "named", tag(4)))).toMatchObject({ code: "precondition_failed" })
        expect(yield* Effect.flip(vault.remove(own, "named", null))).toMatchObject({ code: "not_found" })
        const guarded = put("named", "x", { ifTag: tag(4), ifAbsent: false, ifPresent: true })
        expect(yield* Effect.flip(guarded)).toMatchObject({
          code: "precondition_failed",
          detail: "The secret does not exist.",
        })
      }),
  )

  it.effect("are not written to an Identity of another Org, nor to one that does not exist", () =>
    Effect.gen(function* () {
      const { org, own, vault, sql } = yield* prepared
      const foreign = (yield* makeIdentity(yield* makeOrg, newHandle("foreign"))).id as IdentityId
      yield* vault.put(own, "name", { value: "ours" }, always)
      for (const identity of [foreign, org as IdentityId]) {
        const refused = yield* Effect.flip(vault.put({ org, identity }, "name", { value: "x" }, always))
        expect(refused).toMatchObject({ code: "not_found", detail: "The Identity does not exist." })
      }
      const stored = yield* sql`select 1 from vault_secret where identity_id = ${foreign} or org_id = ${org}`
      expect(stored).toHaveLength(1)
    }),
  )

  it.effect("written concurrently are all stored, each with one audit record", () =>
    Effect.gen(function* () {
      const { org, put, read, sql } = yield* prepared
      const noted = (n: number) =>
        Effect.map(AuditWrite.make(noKey, act(org, { requestId: `req_${n}` })), (note) => AuditWrite.toNote(note))
      for (const round of [1, 2, 3]) {
        yield* Effect.forEach(
          range(40),
          (n) => Effect.flatMap(noted(round * 100 + n), (note) => put(`name.${n}`, `${round} of ${n}`, always, note)),
          all,
        )
        for (const n of range(40)) expect(yield* read(`name.${n}`)).toBe(`${round} of ${n}`)
      }
      const recorded = yield* sql<{ request_id: string }>`select request_id from audit where org_id = ${org}`
      expect(recorded.map(({ request_id }) => request_id).toSorted()).toEqual(
        [1, 2, 3].flatMap((round) => range(40).map((n) => `req_${round * 100 + n}`)).toSorted(),
      )
    }),
  )

  it.effect("of one name written concurrently become consecutive versions", () =>
    Effect.gen(function* () {
      const { put } = yield* prepared
      yield* put("one", "0")
      const written = yield* Effect.forEach(range(20), (n) => put("one", String(n)), all)
      expect(written.map(({ secret }) => secret.version).toSorted((a, b) => a - b)).toEqual(range(20).map((n) => n + 2))
    }),
  )

  it.effect("that are refused leave no record and do not delay concurrent writes", () =>
    Effect.gen(function* () {
      const { org, put, own, vault, read, sql } = yield* prepared
      yield* put("kept", "first")
      const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org, { requestId: "req_refused" })))
      const broken = vault.put(own, "broken", { value: "x", description: "\u0000" }, always)
      const [refused, absent, bad, ...good] = yield* Effect.forEach(
        [
          put("kept", "second", { ifTag: ["v7.0"], ifAbsent: false, ifPresent: true }, note),
          put("kept", "third", { ...always, ifAbsent: true }, note),
          broken,
          ...range(10).map((n) => put(`good.${n}`, "fine")),
        ],
        Effect.exit,
        all,
      )
      expect([refused, absent].map((exit) => JSON.stringify(exit))).toEqual([
        expect.stringContaining("is at version 1"),
        expect.stringContaining("is at version 1"),
      ])
      expect(Exit.isFailure(bad!)).toBe(true)
      expect(good.map(Exit.isSuccess)).toEqual(range(10).map(() => true))
      expect(yield* read("kept")).toBe("first")
      expect(yield* sql`select 1 from audit where org_id = ${org}`).toEqual([])
    }),
  )

  it.effect("that replaced a removed secret meanwhile are stored and open", () =>
    Effect.gen(function* () {
      const { own, put, read } = yield* prepared
      yield* put("token", "ours")
      const other = yield* another
      yield* other.remove(own, "token", null)
      expect((yield* put("token", "again")).created).toBe(true)
      yield* other.remove(own, "token", null)
      yield* other.put(own, "token", { value: "theirs" }, always)
      expect((yield* put("token", "next")).secret.version).toBe(2)
      expect(yield* read("token")).toBe("next")
      yield* other.remove(own, "token", null)
      expect((yield* put("token", "longer", { ...always, ifAbsent: true })).created).toBe(true)
      expect((yield* put("token", "the longest")).secret.size).toBe(11)
    }).pipe(Effect.scoped),
  )

  it.effect("created or removed between the lookup and the write are stored nevertheless", () =>
    Effect.gen(function* () {
      const { put, read } = yield* prepared
      const sql = yield* Unhurried
      // Simulates conflicting inserts of other transactions that are gone when the statement is retried.
      yield* sql`create sequence raced`
      yield* sql`create function gone_again() returns trigger language plpgsql as
        'begin if new.name = ''lost'' or new.name = ''raced'' and nextval(''raced'') <= 7 then return null; end if; return new; end'`
      yield* sql`create trigger raced before insert on vault_secret for each row execute function gone_again()`
      expect((yield* put("raced", "at last", { ...always, ifAbsent: true })).created).toBe(true)
      expect(yield* read("raced")).toBe("at last")
      expect(yield* sql`select last_value::int as tries from raced`).toEqual([{ tries: 8 }])
      // A write fails if others always create and remove the secret first.
      expect(yield* Effect.flip(put("lost", "never"))).toMatchObject({
        code: "unavailable",
        detail: "The secret is written and removed concurrently.",
        retry_after_seconds: 1,
      })
    }).pipe(
      Effect.ensuring(
        Effect.flatMap(Unhurried, (sql) =>
          Effect.orDie(
            Effect.andThen(sql`drop function if exists gone_again cascade`, sql`drop sequence if exists raced`),
          ),
        ),
      ),
    ),
  )

  it.effect(
    "whose write fails before its commit are unchanged, without a record, and are written by the next attempt",
    () =>
      Effect.gen(function* () {
        const { org, own, put, read, vault, sql } = yield* prepared
        yield* put("kept", "first")
        const note = Effect.map(AuditWrite.make(noKey, act(org, { requestId: "req_cut" })), (made) =>
          AuditWrite.toNote(made),
        )
        const unavailable = { _tag: "Failure", failure: { code: "unavailable" } }
        const [next, fresh, restored] = [
          put("kept", "second", always, yield* note),
          put("fresh", "first", { ...always, ifAbsent: true }, yield* note),
          vault.restore(own, "kept", 1, null, yield* note),
        ]
        for (const write of [next, fresh, restored, vault.remove(own, "kept", null, yield* note)])
          expect(yield* interruptAtLock(write as Effect.Effect<unknown, unknown>, "audit")).toMatchObject(unavailable)
        expect(yield* read("kept")).toBe("first")
        expect(yield* Effect.flip(read("fresh"))).toMatchObject({ code: "not_found" })
        expect(yield* sql`select 1 from audit where org_id = ${org}`).toEqual([])
        yield* next
        expect((yield* fresh).created).toBe(true)
        expect(yield* read("kept")).toBe("second")
        expect(yield* sql`select 1 from audit where org_id = ${org}`).toHaveLength(2)
      }),
  )

  it.effect("written again after a lost response get another version, or are refused under a condition", () =>
    Effect.gen(function* () {
      const { put, read, vault, own } = yield* prepared
      const { created_at } = (yield* put("token", "first")).secret
      const guarded = put("token", "second", { ...always, ifTag: [bareTag(1, created_at)], ifPresent: true })
      yield* guarded
      expect(yield* Effect.flip(guarded)).toMatchObject({
        code: "precondition_failed",
        detail: `The secret is at version 2 and was created at ${created_at.toISOString()}.`,
      })
      yield* put("token", "third")
      expect((yield* put("token", "third")).secret.version).toBe(4)
      expect(yield* read("token")).toBe("third")
      const { entries } = yield* vault.versions(own, "token", { limit: 10 })
      expect(entries.map(({ version }) => version)).toEqual([4, 3, 2, 1])
      const once = put("other", "first", { ...always, ifAbsent: true })
      yield* once
      expect(yield* Effect.flip(once)).toMatchObject({ code: "precondition_failed" })
    }),
  )
})
