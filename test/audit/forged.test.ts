/** Chains that an attacker with the database, but without the master key, has rewritten; and chains of versions without MACs. */
import { createSecretKey } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { Audit } from "@svc/cluster/audit/Audit"
import { AuditQueries, judgeEnd } from "@svc/cluster/audit/AuditQueries"
import * as Chain from "@svc/cluster/audit/Chain"
import { markUnsealed } from "@svc/cluster/audit/AuditPartitions"
import { rotate } from "@svc/cluster/sealing/Rotation"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import { sealKeysOf, ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import { Clock, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { toPublic } from "@svc/domain/Ids"
import { makeOrg, waitUntil } from "../harness/Actors.ts"
import { databaseLayer } from "../harness/Database.ts"
import { rows } from "../harness/Stores.ts"
import { act } from "./Acts.ts"
import {
  tamper,
  exportedLines,
  headOf,
  type Line,
  recordsOf,
  rewriteChain,
  waitForSeals,
  verifyLines,
  auditLayer,
} from "./Chains.ts"

/** Creates an Org with `count` sealed records. */
const sealedOrg = Effect.fnUntraced(function* (count: number) {
  const org = yield* makeOrg
  const audit = yield* Audit
  for (let n = 0; n < count; n++) yield* audit.record(act(org, { requestId: `req_${n}` }))
  yield* waitForSeals(org, count)
  return org
})

const refusal = (org: string) =>
  Effect.map(
    rows<{ refused: boolean; due: boolean }>(
      (sql) =>
        sql`select refused_at is not null as refused, due_at > now() as due from audit_head where org_id = ${org}`,
    ),
    ([row]) => row!,
  )

const worked = Effect.fnUntraced(function* (org: string) {
  yield* Effect.ignore(ask((yield* Orgs).of(org).Work(undefined, { discard: true })))
  return yield* refusal(org)
})

/** Writes one more record, and advances the clock until the actor has sealed it or refused to. */
const oneMore = Effect.fnUntraced(function* (org: string, before: number) {
  yield* (yield* Audit).record(act(org, { requestId: "req_more" }))
  yield* waitUntil(
    Effect.all([worked(org), headOf(org)]),
    ([{ refused }, { seq }]) => refused || seq > before,
    "2 seconds",
  )
})

const withoutMac = ({ sealed: { seq, hash, previous }, ...line }: Line): Line => ({
  ...line,
  sealed: { seq, hash, previous },
})
const without = (lines: ReadonlyArray<Line>, seq: number) => lines.filter(({ sealed }) => sealed.seq !== seq)

layer(auditLayer, { timeout: "60 seconds" })("a forged chain", (it) => {
  it.effect("is detected after a removal with new numbers and hashes, and is not continued", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg(6)
      const lines = recordsOf(yield* exportedLines(org))
      yield* rewriteChain(org, without(lines, 3))
      yield* tamper(`delete from audit where org_id = '${org}' and request_id = 'req_2'`)
      const outcome = verifyLines(yield* exportedLines(org))
      expect(outcome.faults).toEqual([
        "The log ends at record 5, which is not the end that the service sealed.",
        ...[3, 4, 5].map((seq) =>
          expect.stringMatching(`^Record ${seq} \\(aud_\\w+\\) was not sealed by the service\\.$`),
        ),
      ])
      // The service neither appends to the forged end nor signs it.
      yield* tamper(`update audit_head set signed_at = signed_at - interval '2 days' where org_id = '${org}'`)
      yield* oneMore(org, 5)
      expect(yield* refusal(org)).toEqual({ refused: true, due: true })
      expect((yield* headOf(org)).seq).toBe(5)
      expect(yield* (yield* AuditQueries).head(org)).toEqual({ head: null, refused_seq: 5 })
      const signed = rows((sql) => sql`select from event where org_id = ${org} and type = 'audit.head'`)
      expect(yield* signed).toEqual([])
    }),
  )

  it.effect("is continued once it is restored", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg(3)
      const head = `update audit_head set hash = decode(md5(hash::text) || md5(hash::text), 'hex') where org_id = '${org}'`
      const [kept] = yield* rows<{ hash: string }>(
        (sql) => sql`select encode(hash, 'hex') as hash from audit_head where org_id = ${org}`,
      )
      yield* tamper(head)
      yield* oneMore(org, 3)
      expect((yield* refusal(org)).refused).toBe(true)
      yield* tamper(`update audit_head set hash = decode('${kept!.hash}', 'hex') where org_id = '${org}'`)
      yield* waitUntil(Effect.andThen(worked(org), headOf(org)), ({ seq }) => seq === 4, "1 minute")
      expect(verifyLines(yield* exportedLines(org))).toMatchObject({ records: 4, faults: [] })
      expect((yield* refusal(org)).refused).toBe(false)
    }),
  )

  it.effect("is detected after records were swapped or inserted, or MACs were removed", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg(5)
      const lines = recordsOf(yield* exportedLines(org))
      const faultsOf = Effect.map(
        Effect.suspend(() => exportedLines(org)),
        (export_) => verifyLines(export_).faults,
      )
      yield* rewriteChain(org, [lines[0]!, lines[2]!, lines[1]!, lines[3]!, lines[4]!])
      expect((yield* faultsOf)[1]).toMatch(/^Record 2 .* was not sealed/)
      const names = "org_id, class, action, actor_kind, outcome, via, count, proof"
      const put = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a77"
      yield* tamper(`insert into audit (id, at, ${names}) select '${put}', at, ${names} from audit
        where org_id = '${org}' and request_id = 'req_1'`)
      yield* rewriteChain(org, [lines[0]!, { ...lines[1]!, id: toPublic("aud_", put) }, ...lines.slice(1)])
      expect((yield* faultsOf)[1]).toMatch(/^Record 2 /)
      yield* tamper(`delete from audit where id = '${put}'`)
      yield* rewriteChain(org, lines.map(withoutMac))
      expect((yield* faultsOf).filter((one) => /was not sealed/.test(one))).toHaveLength(5)
      yield* oneMore(org, 5)
      expect((yield* refusal(org)).refused).toBe(true)
      // A record that has no seal is in the exports of its time only.
      yield* rewriteChain(org, [lines[0]!, ...lines.slice(2)])
      const at = new Date(lines[1]!.at)
      const next = new Date(at.getTime() + 1)
      const unsealed = Effect.fnUntraced(function* (since?: Date, until?: Date) {
        const found = yield* Stream.runCollect((yield* AuditQueries).sealedLines(org, since, until))
        return found.filter((line) => line.includes(lines[1]!.id) && line.includes('"sealed":null')).length
      })
      expect([yield* unsealed(), yield* unsealed(at, next)]).toEqual([1, 1])
      expect([yield* unsealed(next), yield* unsealed(undefined, at)]).toEqual([0, 0])
      // The original chain is valid again.
      yield* rewriteChain(org, lines)
      expect(yield* faultsOf).toEqual([])
    }),
  )

  it.effect("is not continued after its last records were removed while its actor was in memory", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg(4)
      const lines = recordsOf(yield* exportedLines(org))
      const kept = JSON.parse((yield* exportedLines(org))[0]!).head
      yield* tamper(`delete from audit where org_id = '${org}' and request_id = 'req_3'`)
      yield* rewriteChain(org, lines.slice(0, 3))
      // The MACs are valid, so an export reveals the removal only if an earlier head was kept elsewhere.
      expect(verifyLines(yield* exportedLines(org)).faults).toEqual([])
      expect(verifyLines(yield* exportedLines(org), kept).faults).toEqual([
        "Record 4, of which a head was kept, is not in it.",
      ])
      yield* oneMore(org, 3)
      expect((yield* refusal(org)).refused).toBe(true)
    }),
  )

  it.effect("is detected if a seal comes from another account or has another number", () =>
    Effect.gen(function* () {
      const keys = sealKeysOf(yield* Sealing)
      const [[id, key]] = [...keys] as [[string, never]]
      const sealed = { org_id: "a", seq: 7, previous: "00", hash: "11" }
      const mac = Chain.macOf(key, sealed)
      expect(Chain.isSealedBy(keys, sealed, id, mac)).toBe(true)
      for (const other of [{ org_id: "b" }, { seq: 8 }, { previous: "01" }, { hash: "10" }])
        expect(Chain.isSealedBy(keys, { ...sealed, ...other }, id, mac)).toBe(false)
      expect(Chain.isSealedBy(keys, sealed, "another", mac)).toBe(false)
      expect(Chain.isSealedBy(keys, sealed, id, mac.subarray(0, 15))).toBe(false)
      expect(Chain.isSealedBy(keys, sealed, id, null)).toBe(false)
    }),
  )

  it.effect("is detected in an export with the master key, even if the export hides it", () =>
    Effect.gen(function* () {
      const org = yield* sealedOrg(3)
      const lines = yield* exportedLines(org)
      const keys = sealKeysOf(yield* Sealing)
      expect(verifyLines(lines, undefined, keys).faults).toEqual([])
      const mac: string = recordsOf(lines)[1]!.sealed.mac!
      const other = lines.map((line) => line.replace(mac, mac.replaceAll(/./g, "a")))
      expect(verifyLines(other).faults).toEqual([])
      expect(verifyLines(other, undefined, keys).faults).toEqual([
        expect.stringMatching(/^Record 2 .* was not sealed by the service\.$/),
      ])
    }),
  )
})

/** Restores the state of a version without MACs: a key without the time limit for bridges, and seals without MACs. */
const asBefore = Effect.fnUntraced(function* (org: string, lines: ReadonlyArray<Line>) {
  const sealing = yield* Sealing
  const [row] = yield* rows<{ sealed: Uint8Array }>((sql) => sql`select sealed from service_key where name = 'audit'`)
  const former = yield* sealing.sealForService(
    "audit",
    (yield* sealing.openForService("audit", row!.sealed)).subarray(0, 40),
  )
  yield* tamper(`update service_key set sealed = '\\x${Buffer.from(former).toString("hex")}' where name = 'audit'`)
  yield* rewriteChain(org, lines.map(withoutMac))
})

layer(auditLayer, { timeout: "60 seconds" })("a chain from a version without MACs", (it) => {
  it.effect("is closed by a signed bridge and continued with MACs within a week", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      for (let n = 0; n < 4; n++) yield* audit.record(act(org, { requestId: `req_${n}` }))
      // Seals by hand, because the actor of this version would add MACs.
      const { records } = yield* (yield* AuditQueries).list(org, null, { limit: 100 })
      yield* waitUntil(headOf(org), ({ due }) => due, "1 second")
      yield* asBefore(
        org,
        records
          .toReversed()
          .map((record) => JSON.parse(JSON.stringify({ ...record, sealed: { seq: 0, hash: "", previous: "" } }))),
      )
      yield* tamper(`update audit_head set due_at = null where org_id = '${org}'`)
      expect(verifyLines(yield* exportedLines(org))).toMatchObject({ records: 4, faults: [] })

      // Marks the Org for sealing, since its actor has no other reason to check it.
      yield* markUnsealed(0)
      yield* waitForSeals(org, 5)
      // Orgs are marked for sealing again after a few seconds.
      yield* TestClock.adjust("6 seconds")
      yield* audit.record(act(org, { requestId: "req_new" }))
      yield* waitForSeals(org, 6)
      const lines = yield* exportedLines(org)
      expect(verifyLines(lines)).toMatchObject({ records: 6, faults: [] })
      const closed = recordsOf(lines)
      expect(closed.map(({ sealed }) => sealed.mac !== undefined)).toEqual([false, false, false, false, true, true])
      expect(closed[4]).toMatchObject({ action: "audit.bridge", target: { id: `4:${closed[3]!.sealed.hash}` } })
      // A file with another record as bridge, or with another signature in the bridge, is rejected even if its hashes are valid.
      const bridge: Record<string, any> = JSON.parse(lines[5]!)
      for (const other of [
        { action: "cards.patch" },
        { target: { ...bridge["target"], name: bridge["target"].name.replaceAll(/./g, "A") } },
        { target: { ...bridge["target"], id: `3:${closed[2]!.sealed.hash}` } },
      ]) {
        const put = { ...bridge, ...other } as Record<string, any>
        const hash = Buffer.from(Chain.hashOf(Buffer.from(put["sealed"].previous, "hex"), put)).toString("hex")
        const file = [...lines.slice(0, 5), JSON.stringify({ ...put, sealed: { ...put["sealed"], hash } })]
        expect(verifyLines(file).faults[0]).toBe("No bridge closes the records before record 5, which have no MACs.")
      }
      yield* rewriteChain(org, without(closed, 2))
      expect(verifyLines(yield* exportedLines(org)).faults.join()).toMatch(/Record 4 .* was not sealed/)

      // For a week, an end without a MAC may come from an earlier version, unless a MAC for that record exists.
      const keys = { current: "a", byId: new Map(), bridgingUntil: 1_000 }
      const end = { seq: 4n, hash: Buffer.from("00", "hex"), previous: null, key: null, mac: null, mac_seq: null }
      expect(judgeEnd(keys, org, end, 999)).toBe("bridge")
      expect(judgeEnd(keys, org, end, 1_000)).toBe("forged")
      expect(judgeEnd(keys, org, { ...end, mac_seq: 3n }, 999)).toBe("bridge")
      expect(judgeEnd(keys, org, { ...end, mac_seq: 4n }, 999)).toBe("forged")
      const key = createSecretKey(Buffer.alloc(32, 1))
      const mac = Chain.macOf(key, { org_id: org, seq: 4, previous: "11", hash: "00" })
      const proven = { ...end, previous: Buffer.from("11", "hex"), key: "a", mac, mac_seq: 4n }
      const known = { ...keys, byId: new Map([["a", key]]) }
      expect(judgeEnd(known, org, proven, 1_000)).toBe("ours")
      expect(judgeEnd(known, org, { ...proven, mac_seq: 3n }, 1_000)).toBe("forged")
      expect(judgeEnd(keys, org, { ...end, seq: 0n, hash: null }, 1_000)).toBe("ours")
      expect(judgeEnd(keys, org, { ...end, hash: null }, 999)).toBe("forged")
      const stored = yield* rows<{ sealed: Uint8Array }>(
        (sql) => sql`select sealed from service_key where name = 'audit'`,
      )
      const bytes = yield* (yield* Sealing).openForService("audit", stored[0]!.sealed)
      const until = Number(Buffer.from(bytes).readBigUInt64BE(40))
      expect((until - (yield* Clock.currentTimeMillis)) / 86_400_000).toBeCloseTo(7, 1)
    }),
  )
})

const [former, present] = [Buffer.alloc(32, 1).toString("base64"), Buffer.alloc(32, 2).toString("base64")]
const withKeys = (text: string) =>
  Effect.provide(
    Layer.fresh(Layer.provideMerge(ServiceKey.layer, Layer.unwrap(Effect.map(parseMasterKeys(text), Sealing.layer)))),
  )
const ofSeals = Effect.flatMap(ServiceKey, ({ ofSeals }) => ofSeals)

layer(databaseLayer)("a seal", (it) => {
  it.effect("can be verified after its master key was removed", () =>
    Effect.gen(function* () {
      const sealed = { org_id: "a", seq: 1, previous: "00", hash: "11" }
      const before = yield* Effect.andThen(rotate, ofSeals).pipe(withKeys(`a:${former}`))
      const mac = Chain.macOf(before.byId.get(before.current)!, sealed)
      yield* Effect.andThen(rotate, ofSeals).pipe(withKeys(`b:${present},a:${former}`))
      const after = yield* Effect.andThen(rotate, ofSeals).pipe(withKeys(`b:${present}`))
      expect(after.current).toMatch(/^b\./)
      expect(before.current).toMatch(/^a\./)
      expect(Chain.isSealedBy(after.byId, sealed, before.current, mac)).toBe(true)
      // A new key with the id of the former key still counts as a different key.
      const named = yield* Effect.andThen(rotate, ofSeals).pipe(
        withKeys(`a:${Buffer.alloc(32, 3).toString("base64")},b:${present}`),
      )
      expect(named.current).not.toBe(before.current)
      expect(Chain.isSealedBy(named.byId, sealed, before.current, mac)).toBe(true)
      expect(named.bridgingUntil).toBe(0)
    }),
  )
})
