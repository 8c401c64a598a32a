/** Audit chains on actors, their exports, and changes by an attacker who has access to the database only. */
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Audit } from "@svc/cluster/audit/Audit"
import { AuditQueries } from "@svc/cluster/audit/AuditQueries"
import * as Chain from "@svc/cluster/audit/Chain"
import * as Verify from "@svc/cluster/audit/Verify"
import { type SealKeys, ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import { Unhurried } from "@svc/cluster/store/Database"
import { fromPublic } from "@svc/domain/Ids"
import { Effect, Layer, Stream } from "effect"
import { actors, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"

export const auditLayer = Layer.mergeAll(
  Audit.layer({ addresses: "full" }),
  AuditQueries.layer.pipe(Layer.provide(ServiceKey.layer)),
).pipe(Layer.provideMerge(actors()))

export const headOf = (org: string) =>
  Effect.map(
    rows<{ seq: number; due: boolean }>(
      (sql) => sql`select seq::int as seq, due_at is not null as due from audit_head where org_id = ${org}`,
    ),
    ([row]) => row ?? { seq: 0, due: false },
  )

/** Wakes the Org's actor until it has sealed `until` records, while the test's clock advances. */
export const waitForSeals = (org: string, until: number) =>
  waitUntil(
    Effect.gen(function* () {
      yield* Effect.ignore(ask((yield* Orgs).of(org).Work(undefined, { discard: true })))
      return yield* headOf(org)
    }),
    ({ seq }) => seq >= until,
    "2 seconds",
  )

export const exportedLines = Effect.fnUntraced(function* (org: string) {
  const audit = yield* AuditQueries
  const end = yield* audit.head(org)
  const lines = yield* Stream.runCollect(audit.sealedLines(org, undefined, undefined))
  return [JSON.stringify({ ...end, since: null, until: null }), ...lines]
})

export const verifyLines = (
  lines: ReadonlyArray<string>,
  kept?: { seq: number; hash: string },
  keys?: SealKeys["byId"],
) => {
  const walk = Verify.make(kept, keys)
  for (const line of lines) walk.add(line)
  return walk.end()
}

/** Runs a statement that bypasses the protection of the log, with the rights of the database's owner. */
export const tamper = (statement: string) =>
  Effect.gen(function* () {
    const sql = yield* Unhurried
    yield* sql.withTransaction(Effect.andThen(sql`set local session_replication_role = replica`, sql.unsafe(statement)))
  })

export interface Line {
  readonly id: string
  readonly at: string
  readonly sealed: { seq: number; hash: string; previous: string; key?: string; mac?: string; proof?: "none" }
}

/** Replaces an Org's chain by the given records in this order, with new numbers and hashes. The MACs stay with their records. */
export const rewriteChain = Effect.fnUntraced(function* (org: string, lines: ReadonlyArray<Line>) {
  let previous = Chain.origin(org)
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")
  const seals = lines.map((line, at) => {
    const before = previous
    previous = Chain.hashOf(previous, line as never, line.sealed.proof === "none")
    return { line, seq: at + 1, previous: hex(before), hash: hex(previous) }
  })
  const bytes = (text: string | undefined) => (text === undefined ? "null" : `'\\x${text}'`)
  const word = (text: string | undefined) => (text === undefined ? "null" : `'${text}'`)
  const last = seals.at(-1)!
  yield* tamper(`delete from audit_seal where org_id = '${org}'`)
  for (const { line, seq, previous, hash } of seals)
    yield* tamper(`insert into audit_seal (org_id, seq, record_id, record_at, previous, hash, key, mac) values ('${org}', ${seq},
      '${fromPublic("aud_", line.id)}', '${line.at}', ${bytes(previous)}, ${bytes(hash)}, ${word(line.sealed.key)}, ${bytes(line.sealed.mac)})`)
  const mac = last.line.sealed
  yield* tamper(`update audit_head set seq = ${last.seq}, hash = ${bytes(last.hash)}, previous = ${bytes(last.previous)},
    key = ${word(mac.key)}, mac = ${bytes(mac.mac)}, mac_seq = ${mac.mac === undefined ? "null" : last.seq},
    signed_seq = least(signed_seq, ${last.seq}) where org_id = '${org}'`)
})

/** Returns the records of an export. */
export const recordsOf = (lines: ReadonlyArray<string>) => lines.slice(1).map((line): Line => JSON.parse(line))
