/** A sealer of the audit log that was overtaken, held at the row of its actor meanwhile. */
import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Audit } from "@svc/cluster/audit/Audit"
import { type Unhurried, Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { Clock, Effect } from "effect"
import { makeOrg, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"
import { act } from "./Acts.ts"
import { auditLayer, exportedLines, headOf, tamper, verifyLines, waitForSeals } from "./Chains.ts"

/**
 * Creates an Org with one sealed record, whose actor is in memory and has nothing left to write: a statement of its own would wait
 * for the row of the owner in place of the one that a test is about.
 */
const sealedOrg = Effect.gen(function* () {
  const org = yield* makeOrg
  yield* (yield* Audit).record(act(org))
  yield* waitForSeals(org, 1)
  yield* waitUntil(headOf(org), ({ due }) => !due)
  return org
})

const work = (org: string) =>
  Effect.flatMap(Orgs, (orgs) => Effect.ignore(ask(orgs.of(org).Work(undefined, { discard: true }))))

/** Makes the end of the chain due for a seal, or for a signature. */
const due = (org: string, what: "seal" | "signature") =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    tamper(
      what === "seal"
        ? `update audit_head set due_at = '${new Date(now).toISOString()}' where org_id = '${org}'`
        : `update audit_head set due_at = null, signed_at = '${new Date(now - Timing.auditHeadMillis).toISOString()}' where org_id = '${org}'`,
    ),
  )

/**
 * Runs `meanwhile` while a statement of the actor waits for the row of its owner, which `owner` locks, and waits until
 * that statement has ended.
 */
const overtaken = Effect.fnUntraced(function* (
  org: string,
  what: "seal" | "signature",
  owner: "stays" | "is replaced",
  meanwhile: Effect.Effect<unknown, unknown, Unhurried> = Effect.void,
) {
  const statement = what === "seal" ? "begun as" : "signed as"
  const sql = yield* Writes
  const found = (state: "waits" | "runs") =>
    rows(
      (reads) => reads`
        select from pg_stat_activity where query like ${`%${statement}%`} and pid <> pg_backend_pid()
          and state = 'active' and datname = current_database() and (${state === "runs"} or wait_event_type = 'Lock')`,
    )
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`
        update actor set epoch = epoch + ${owner === "stays" ? 0 : 1}::int where kind = 'Org' and id = ${org}`
      yield* due(org, what)
      yield* waitUntil(Effect.andThen(work(org), found("waits")), (statements) => statements.length > 0, 0)
      yield* meanwhile
    }),
  )
  yield* waitUntil(found("runs"), (statements) => statements.length === 0, 0)
})

const signed = (org: string) =>
  rows<{ seq: number }>(
    (sql) => sql`
      select (data ->> 'seq')::int as seq from event where org_id = ${org} and type = 'audit.head' order by event.seq`,
  )

layer(auditLayer, { timeout: "60 seconds" })("A sealer that was overtaken", (it) => {
  it.effect("seals nothing after another process has taken over its Org", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg
      yield* (yield* Audit).record(act(org, { requestId: "req_2" }))
      yield* overtaken(org, "seal", "is replaced")
      expect((yield* headOf(org)).seq).toBe(1)
    }),
  )

  it.effect("signs nothing after another process has taken over its Org", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg
      yield* overtaken(org, "signature", "is replaced")
      expect(yield* signed(org)).toEqual([])
    }),
  )

  it.effect("does not seal behind an end that moved while its statement waited", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg
      yield* (yield* Audit).record(act(org, { requestId: "req_2" }))
      // The statement continues the end that the actor read, not the one that is there by then.
      yield* overtaken(org, "seal", "stays", tamper(`update audit_head set seq = 7 where org_id = '${org}'`))
      const seals = yield* rows((sql) => sql`select seq::int as seq from audit_seal where org_id = ${org} order by seq`)
      expect(seals).toEqual([{ seq: 1 }])
      yield* tamper(`update audit_head set seq = 1 where org_id = '${org}'`)
      yield* waitForSeals(org, 2)
      expect(verifyLines(yield* exportedLines(org))).toMatchObject({ records: 2, faults: [] })
    }),
  )

  it.effect("does not sign an end that was signed while its statement waited", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg
      const sign = tamper(`update audit_head set signed_seq = seq where org_id = '${org}'`)
      yield* overtaken(org, "signature", "stays", sign)
      expect(yield* signed(org)).toEqual([])
    }),
  )
})
