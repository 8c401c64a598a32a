/** Sealing on actors and the test's clock: each chain has one writer, and everyone who has an export can verify it. */
import { expect, it, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Audit } from "@svc/cluster/audit/Audit"
import { AuditQueries } from "@svc/cluster/audit/AuditQueries"
import * as SealSource from "@svc/cluster/audit/SealSource"
import { rowOf } from "@svc/cluster/audit/AuditWrite"
import { holds } from "@svc/cluster/audit/Proof"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Clock, Effect } from "effect"
import { makeOrg, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"
import { act, noKey } from "./Acts.ts"
import { tamper, exportedLines, headOf, waitForSeals, verifyLines, auditLayer } from "./Chains.ts"

it("A record without a proof is accepted only from before the key", () => {
  const row = rowOf({ ...act("org"), id: "id", at: new Date(0), count: 1 })
  const accepted = (time: number) => holds({ ...noKey, since: 1000 }, { ...row, proof: null }, time)
  expect([accepted(999), accepted(1000), accepted(1001)]).toEqual([true, false, false])
})

layer(auditLayer, { timeout: "60 seconds" })("the chain of the audit log", (it) => {
  it.effect("contains every record once, in order, with a signed end", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      yield* Effect.forEach(Array.from({ length: 120 }), (_, n) => audit.record(act(org, { requestId: `req_${n}` })), {
        concurrency: 20,
      })
      yield* waitForSeals(org, 120)
      yield* audit.record(act(org, { requestId: "req_late" }))
      // A record that waits for its seal is not suspicious.
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([])
      yield* waitForSeals(org, 121)
      const lines = yield* exportedLines(org)
      expect(lines).toHaveLength(122)
      const verdict = verifyLines(lines)
      expect(verdict).toMatchObject({ records: 121, from: 1, to: 121, faults: [] })
      expect(new Set(lines.slice(1).map((line) => JSON.parse(line).request_id)).size).toBe(121)
      const head = JSON.parse(lines[0]!).head
      expect(verifyLines(lines, { seq: 121, hash: head.hash }).faults).toEqual([])
      // An export that was made before anything was sealed has no signed head.
      const unsigned = [JSON.stringify({ head: null, since: null, until: null }), ...lines.slice(1)]
      expect(verifyLines(unsigned)).toEqual({ ...verdict, head: { seq: 121, hash: head.hash } })
      // If no record waits for a seal, no further seal is due.
      expect(
        (yield* waitUntil(
          Effect.andThen(Effect.ignore(ask((yield* Orgs).of(org).Work(undefined, { discard: true }))), headOf(org)),
          ({ due }) => !due,
          "2 seconds",
        )).value.seq,
      ).toBe(121)
    }),
  )

  it.effect("is listed from a time on, and up to another one without it", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      yield* (yield* Audit).record(act(org, { identity: { id: org, handle: "A-da" } }))
      const queries = yield* AuditQueries
      const list = (filter: object) =>
        Effect.map(
          queries.list(org, null, { limit: 10, cursor: undefined, ...filter } as never),
          ({ records }) => records,
        )
      const [record] = yield* list({})
      for (const one of [{ since: record!.at }, { identity: "ad-a" }]) expect(yield* list(one)).toHaveLength(1)
      expect(yield* list({ until: record!.at })).toEqual([])
      expect(yield* list({ until: new Date(record!.at.getTime() + 1) })).toHaveLength(1)
    }),
  )

  it.effect("is overdue from when its end is due for a seal, and from a day after its last signature if it grew", () =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const end = Effect.fnUntraced(function* (due: number | null, signed: number, more = "1, 0, null") {
        const org = yield* makeOrg
        const at = (millis: number | null) => (millis === null ? "null" : `'${new Date(now + millis).toISOString()}'`)
        yield* tamper(`
          insert into audit_head (org_id, due_at, signed_at, seq, signed_seq, refused_at) values ('${org}', ${at(due)}, ${at(signed)}, ${more})`)
        return org
      })
      const day = Timing.auditHeadMillis
      const [seal, signature] = [yield* end(0, 0), yield* end(null, -day)]
      const deleted = yield* end(0, 0)
      const sql = yield* Writes
      yield* sql`update org set status = 'deleting' where id = ${deleted}`
      yield* end(1, 1 - day)
      // Nothing was sealed since the last signature, and a rejected end is not signed.
      yield* end(null, -day, "1, 1, null")
      yield* end(null, -day, "1, 0, now()")
      expect((yield* SealSource.source.overdue(sql, new Date(now), 10)).toSorted()).toEqual(
        [seal, signature].toSorted(),
      )
    }),
  )

  it.effect("has counts of reads besides: by reader, operation and hour, newest and most first", () =>
    Effect.gen(function* () {
      const [org, other] = [yield* makeOrg, yield* makeOrg]
      const hour = new Date("2026-03-01T12:00:00Z")
      const [before, later] = [new Date(hour.getTime() - 1), new Date(hour.getTime() + 3_600_000)]
      yield* (yield* Writes)`
        insert into audit_usage (org_id, hour, actor_kind, actor_id, action, tool, handle, count)
        values (${org}, ${before}, 'session', 's', 'cards.read', '', 'ada', 9), (${org}, ${hour}, 'session', 's', 'cards.read', '', 'ada', 1),
               (${org}, ${hour}, 'grant', 'g', 'cards.read', 'svc_card_get', '', 2), (${org}, ${later}, 'session', 's', 'cards.read', '', '', 1),
               (${other}, ${hour}, 'session', 's', 'cards.read', '', '', 7)`
      const { usage } = yield* AuditQueries
      const reads = yield* usage(org, hour, 10)
      expect(reads.map(({ hour, actor, tool, identity, count }) => [hour, actor.id, tool, identity, count])).toEqual([
        [later, "s", null, null, 1],
        [hour, "g", "svc_card_get", null, 2],
        [hour, "s", null, "ada", 1],
      ])
      expect(yield* usage(org, hour, 1)).toEqual(reads.slice(0, 1))
    }),
  )

  it.effect("reveals records written directly to the database, even before sealing", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      const names = `org_id, class, action, actor_kind, actor_id, actor_name, handle, target_type, target_name, outcome, via,
        address, user_agent, request_id, count, proof`
      const forged = (id: string, what: string) =>
        tamper(`insert into audit (id, at, ${names}) select '0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a${id}', at + interval '1 ms',
          ${names.replace(what, `'forged'`)} from audit where org_id = '${org}' and request_id = 'req_0' order by at limit 1`)
      for (let n = 0; n < 3; n++) yield* audit.record(act(org, { requestId: `req_${n}` }))
      // Inserts a record without a proof and one with the proof of another record, and edits a record of the service before it is sealed.
      yield* forged("f1", "proof")
      yield* forged("f2", "actor_name")
      yield* tamper(`update audit set outcome = 'refused' where org_id = '${org}' and request_id = 'req_1'`)
      yield* tamper(`insert into audit (id, at, org_id, class, action, actor_kind, outcome, via)
        values ('0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4af3', date_trunc('milliseconds', now()), '${org}', 'change', 'cards.patch', 'session', 'allowed', 'rest')`)
      yield* audit.record(act(org, { requestId: "req_3" }))
      yield* waitForSeals(org, 7)
      const lines = yield* exportedLines(org)
      const outcome = verifyLines(lines)
      expect([outcome.records, outcome.faults]).toEqual([
        7,
        Array.from({ length: 4 }, () =>
          expect.stringMatching(/^Record \d \(aud_\w+\) was not written by the service\.$/),
        ),
      ])
      const ours = lines.slice(1).map((line) => JSON.parse(line))
      expect(ours.filter(({ sealed }) => sealed.proof === undefined).map(({ request_id }) => request_id)).toEqual([
        "req_0",
        "req_2",
        "req_3",
      ])
      // The hash includes that a record had no valid proof when it was sealed.
      yield* tamper(`update audit_seal set unproven = null where org_id = '${org}'`)
      expect(verifyLines(yield* exportedLines(org)).faults).toHaveLength(4)
      expect(verifyLines(lines.map((line) => line.replace(',"proof":"none"', ""))).faults).toHaveLength(4)
    }),
  )

  it.effect("reveals edited, removed, inserted and truncated records", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const other = yield* makeOrg
      const audit = yield* Audit
      for (let n = 0; n < 9; n++) yield* audit.record(act(org, { requestId: `req_${n}` }))
      yield* waitForSeals(org, 9)
      yield* audit.record(act(other))
      yield* waitForSeals(other, 1)
      const lines = yield* exportedLines(org)
      expect(verifyLines(lines).faults).toEqual([])
      const bySeq = `(select record_id from audit_seal where org_id = '${org}' and seq = 4)`
      yield* tamper(`update audit set outcome = 'refused' where id = ${bySeq}`)
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([
        expect.stringMatching(/^Record 4 \(aud_\w+\) is not what was sealed/),
      ])
      yield* tamper(`update audit set outcome = 'allowed' where id = ${bySeq}`)
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([])
      // Inserts a record between sealed records.
      const put = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4aff"
      const names = `org_id, class, action, actor_kind, outcome, via, count, xid`
      yield* tamper(`insert into audit (id, at, ${names}) select '${put}', at, ${names} from audit where id = (
        select record_id from audit_seal where org_id = '${org}' and seq = 1)`)
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([
        expect.stringMatching(/^Record aud_\w+ was put in: it was never sealed\.$/),
      ])
      expect(verifyLines(yield* exportedLines(other)).faults).toEqual([])
      yield* tamper(`delete from audit where id = '${put}'`)
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([])
      // Inserts a record together with a seal.
      yield* tamper(`insert into audit_seal select org_id, 5, record_id, record_at - interval '1 second', previous, hash
        from audit_seal where org_id = '${org}' and seq = 4`)
      yield* tamper(
        `insert into audit (id, at, ${names}) select id, at - interval '1 second', ${names} from audit where id = ${bySeq}`,
      )
      expect(verifyLines(yield* exportedLines(org)).faults.length).toBeGreaterThan(0)
      yield* tamper(`delete from audit_seal where org_id = '${org}' and seq = 5 and record_id = ${bySeq}`)
      yield* tamper(`delete from audit a where org_id = '${org}' and id = ${bySeq}
        and not exists (select from audit_seal s where s.record_id = a.id and s.record_at = a.at)`)
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([])
      yield* tamper(`delete from audit where id = ${bySeq}`)
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([
        "Between record 3 and record 5 something is missing.",
      ])
      // Changes of the exported file are detected as well.
      expect(verifyLines(lines.toSpliced(6, 1)).faults).toHaveLength(1)
      expect(verifyLines(lines.slice(0, -2)).faults).toEqual(["The log ends at record 7, and 9 were sealed."])
      expect(verifyLines(lines.with(0, lines[0]!.replace('"seq":9', '"seq":7')).slice(0, -2)).faults[0]).toMatch(
        /signature/,
      )
      expect(verifyLines(lines.toSpliced(1, 1)).faults[0]).toMatch(/begins with record 2/)
      expect(verifyLines(lines, { seq: 5, hash: "0".repeat(64) }).faults).toHaveLength(1)
    }),
  )

  it.effect("continues without a gap after a runner crashes", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      for (let n = 0; n < 5; n++) yield* audit.record(act(org))
      // The statement is never committed, so its seals have no effect.
      const sql = yield* Writes
      const died = Effect.exit(
        sql.withTransaction(
          Effect.andThen(
            sql`with begun as (select seq from audit_head where org_id = ${org} for update)
              insert into audit_seal (org_id, seq, record_id, record_at, previous, hash)
              select ${org}::uuid, 1, id, at, '\\x00', '\\x00' from audit where org_id = ${org} limit 1`,
            Effect.die("killed"),
          ),
        ),
      )
      yield* died
      yield* waitForSeals(org, 5)
      expect(verifyLines(yield* exportedLines(org))).toMatchObject({ records: 5, faults: [] })
    }),
  )

  it.effect("seals a record that arrives while its actor finds nothing to seal", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      yield* (yield* Audit).record(act(org))
      yield* waitForSeals(org, 1)
      const sql = yield* Writes
      const work = ask((yield* Orgs).of(org).Work(undefined, { discard: true }))
      /** Statements that wait for the row of the chain's end. */
      const waiting = rows(
        (reads) => reads`
          select from pg_stat_activity where wait_event_type = 'Lock' and query like '%rested as%' and datname = current_database()`,
      )
      const names = `org_id, class, action, actor_kind, outcome, via, count`
      const look = Effect.gen(function* () {
        // The actor looks for records now, and the end is marked before it can store that it found none.
        yield* sql`update audit_head set due_at = ${new Date(yield* Clock.currentTimeMillis)} where org_id = ${org}`
        return yield* sql.withTransaction(
          Effect.gen(function* () {
            const [end] = yield* sql<{ due: boolean }>`
              update audit_head set marks = marks + 1 where org_id = ${org} returning due_at is not null as due`
            if (end!.due !== true) return false
            yield* sql.unsafe(
              `insert into audit (id, at, ${names}) select uuidv7(), at, ${names} from audit where org_id = '${org}' limit 1`,
            )
            yield* work
            yield* waitUntil(waiting, (statements) => statements.length > 0, 0)
            return true
          }),
        )
      })
      yield* Effect.repeat(look, { until: (looked) => looked })
      yield* waitForSeals(org, 2)
    }),
  )

  it.effect("reports its signed end once a day if it grew", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      yield* audit.record(act(org))
      yield* waitForSeals(org, 1)
      const outcome = Effect.andThen(
        Effect.ignore(ask((yield* Orgs).of(org).Work(undefined, { discard: true }))),
        rows<{ data: { seq: number; signature: string }; at: Date }>(
          (sql) => sql`select data, created_at as at from event where org_id = ${org} and type = 'audit.head'`,
        ),
      )
      const earlier = (hours: number) =>
        tamper(`update audit_head set signed_at = signed_at - interval '${hours} hours' where org_id = '${org}'`)
      yield* earlier(23)
      expect(yield* outcome).toEqual([])
      yield* earlier(1)
      const { value } = yield* waitUntil(outcome, (found) => found.length > 0, "1 second")
      expect(value).toMatchObject([{ data: { seq: 1 } }])
      // A head that has not changed raises no second Event.
      yield* earlier(25)
      for (let looks = 0; looks < 3; looks++) expect(yield* outcome).toHaveLength(1)
    }),
  )

  it.effect("is listed newest first in pages, without other accounts and what a running transaction may precede", () =>
    Effect.gen(function* () {
      const [org, other] = [yield* makeOrg, yield* makeOrg]
      const [audit, { list, read }] = [yield* Audit, yield* AuditQueries]
      const [ada, bob] = ["0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4aa1", "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4ab1"]
      for (const requestId of ["1", "2", "3", "4"])
        yield* audit.record(act(org, { requestId, identity: { id: requestId < "4" ? ada : bob, handle: "ada" } }))
      yield* audit.record(act(other, { requestId: "5" }))
      const page = (cursor?: string, of = org, identity: string | null = null) =>
        Effect.map(list(of, identity, { limit: 2, cursor }), ({ records, next_cursor }) => ({
          records,
          ids: records.map(({ request_id }) => request_id),
          next: next_cursor ?? undefined,
        }))
      const first = yield* page()
      const second = yield* page(first.next)
      expect([first.ids, second.ids, second.next]).toEqual([["4", "3"], ["2", "1"], undefined])
      expect((yield* page(undefined, org, ada)).ids).toEqual(["3", "2"])
      expect(yield* Effect.flip(page(first.next, other))).toMatchObject({ code: "invalid_cursor" })
      const [newest] = first.records
      expect((yield* read(org, bob, newest!.id)).request_id).toBe("4")
      for (const [account, identity] of [
        [other, null],
        [org, ada],
      ] as const)
        expect(yield* Effect.flip(read(account, identity, newest!.id))).toMatchObject({ code: "not_found" })
      const sql = yield* Writes
      const during = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_current_xact_id()::text`
          yield* audit.record(act(org, { requestId: "6" }))
          return (yield* page()).ids
        }),
      )
      expect([during, (yield* page()).ids]).toEqual([
        ["4", "3"],
        ["6", "4"],
      ])
    }),
  )

  it.effect("is exported in full if it has more records than are read together", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      yield* audit.record(act(org))
      yield* tamper(`insert into audit (id, at, org_id, class, action, actor_kind, outcome, via, count)
        select uuidv7(), at, org_id, class, action, actor_kind, outcome, via, count from audit, generate_series(1, 500) where org_id = '${org}'`)
      yield* waitForSeals(org, 501)
      expect(verifyLines(yield* exportedLines(org))).toMatchObject({ records: 501, from: 1, to: 501 })
    }),
  )
})
