/** The verifier of an export reports every kind of change. The test makes the chains itself. */
import { createHash, createHmac, createSecretKey, generateKeyPairSync, randomBytes } from "node:crypto"
import { make } from "@svc/cluster/audit/AuditWrite"
import * as Chain from "@svc/cluster/audit/Chain"
import * as Proof from "@svc/cluster/audit/Proof"
import * as Verify from "@svc/cluster/audit/Verify"
import { uuidMillis } from "@svc/domain/Ids"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { act, noKey } from "./Acts.ts"

const org = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99"
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
const jwk = publicKey.export({ format: "jwk" })
const sealKey = createSecretKey(randomBytes(32))
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")

interface Options {
  readonly of?: number
  /** Number of the first records without MACs. */
  readonly former?: number
  readonly bridge?: (target: object) => object | null
  readonly key?: typeof sealKey
  readonly begin?: Uint8Array
  readonly from?: number
  readonly unproven?: number
  readonly owner?: string
}

/** Returns the lines of an export. The record after those without MACs is a bridge. */
const chain = ({
  of = 3,
  former = 0,
  bridge,
  key = sealKey,
  begin,
  from = 1,
  unproven = 0,
  owner = org,
}: Options = {}) => {
  let previous = begin ?? Chain.origin(org)
  const records = Array.from({ length: of }, (_, at) => {
    const seq = from + at
    const isBridge = former > 0 && seq === former + 1
    const target = isBridge ? Chain.bridgeOf(privateKey, { org_id: org, seq: former, hash: hex(previous) }) : null
    const record = {
      id: `aud_${seq}`,
      action: isBridge ? Chain.bridgeAction : "cards.patch",
      target: target === null || bridge === undefined ? target : bridge(target),
      count: 1,
    }
    const before = previous
    previous = Chain.hashOf(previous, record as never, seq === unproven)
    const sealed = { org_id: owner, seq, previous: hex(before), hash: hex(previous) }
    const mac = seq <= former ? {} : { key: "k", mac: hex(Chain.macOf(key, sealed)) }
    const proof = seq === unproven ? { proof: "none" } : {}
    return { ...record, sealed: { seq, previous: sealed.previous, hash: sealed.hash, ...mac, ...proof } }
  })
  const end = { org_id: owner, seq: from + of - 1, hash: hex(previous), sealed_at: "2026-11-25T12:00:00.000Z" }
  const head = { ...end, signature: Chain.sign(privateKey, end), key: jwk }
  return {
    first: { head, since: null as string | null, until: null as string | null } as Record<string, any>,
    records: records as Array<Record<string, any>>,
  }
}
const keys = new Map([["k", sealKey]])
const verdict = (
  { first, records }: { readonly first: unknown; readonly records: ReadonlyArray<unknown> },
  kept?: { readonly seq: number; readonly hash: string },
  by: ReadonlyMap<string, typeof sealKey> = keys,
) => {
  const walk = Verify.make(kept, by)
  for (const line of [first, ...records]) walk.add(typeof line === "string" ? line : JSON.stringify(line))
  return walk.end()
}
const faults = (...of: Parameters<typeof verdict>) => verdict(...of).faults

it("Only a record that is older than proofs needs none", () => {
  const row = { ...Effect.runSync(make(noKey, act(org))).row, proof: null }
  const key = { ...noKey, since: 10 }
  expect([Proof.holds(key, row, 9), Proof.holds(key, row, 10)]).toEqual([true, false])
})

describe("an intact export", () => {
  it("has no faults, with and without the master key, a head, a beginning and empty lines", () => {
    const whole = chain()
    const end = { seq: 3, hash: whole.first["head"].hash }
    expect(verdict(whole)).toEqual({ records: 3, from: 1, to: 3, faults: [], head: end })
    expect(verdict({ ...whole, records: whole.records.flatMap((record) => ["", " ", record]) })).toEqual(verdict(whole))
    expect(faults(whole, end, new Map())).toEqual([])
    expect(verdict({ ...whole, first: { ...whole.first, head: null } }).head).toEqual(end)
    expect(verdict({ first: { head: null, since: null, until: null }, records: [] })).toEqual({
      records: 0,
      from: null,
      to: null,
      faults: [],
      head: null,
    })
    // A period of the log begins and ends anywhere.
    const part = { first: { ...whole.first, since: "a", until: "b" }, records: whole.records.slice(1, 2) }
    expect(verdict(part)).toEqual({ records: 1, from: 2, to: 2, faults: [], head: end })
    expect(faults(chain({ former: 2, of: 4 }))).toEqual([])
    expect(faults(chain({ former: 3, of: 3 }))).toEqual([])
  })
})

describe("an export that was changed", () => {
  const without = (...seqs: ReadonlyArray<number>) => {
    const whole = chain()
    return { ...whole, records: whole.records.filter(({ sealed }) => !seqs.includes(sealed.seq)) }
  }
  const edited = (seq: number, change: (record: Record<string, any>) => unknown) => {
    const whole = chain()
    return {
      ...whole,
      records: whole.records.map((record) => (record["sealed"].seq === seq ? change(record) : record)),
    }
  }
  const sealedWith = (more: object) => (record: Record<string, any>) => ({
    ...record,
    sealed: { ...record["sealed"], ...more },
  })
  const first = (more: object) => {
    const whole = chain()
    return { ...whole, first: { ...whole.first, ...more } }
  }
  const lost = (seq: number) => `Record ${seq} (aud_${seq}) was not sealed by the service.`
  const noBridge = "No bridge closes the records before record 3, which have no MACs."
  const noStart = "The first line does not say where the log ends: this is no whole export."

  it.each<
    [string, ReturnType<typeof without> | { first: unknown; records: ReadonlyArray<unknown> }, ReadonlyArray<string>]
  >([
    ["no first line", { first: "[]", records: chain().records }, [noStart]],
    ["a first line that is not JSON", { first: "{", records: [] }, [noStart]],
    [
      "a signature of another end",
      first({ head: { ...chain().first["head"], sealed_at: "2027-01-01T00:00:00.000Z" } }),
      ["The signature of the log's end is not good."],
    ],
    [
      "a refused end",
      first({ refused_seq: 3 }),
      ["The log ends at record 3, which is not the end that the service sealed."],
    ],
    ["an end of another record", edited(3, (record) => record), []],
    [
      "a missing beginning",
      without(1),
      ["The log begins with record 2; those before have aged out, or were taken away."],
    ],
    ["a gap", without(2), ["Between record 1 and record 3 something is missing."]],
    ["a missing end", without(3), ["The log ends at record 2, and 3 were sealed."]],
    ["no records", without(1, 2, 3), ["The log ends at record 0, and 3 were sealed."]],
    [
      "an edited record",
      edited(2, (record) => ({ ...record, action: "other" })),
      ["Record 2 (aud_2) is not what was sealed."],
    ],
    [
      "an added member",
      edited(2, (record) => ({ ...record, more: [1, { b: 1, a: null }] })),
      ["Record 2 (aud_2) is not what was sealed."],
    ],
    [
      "a record that was never sealed",
      edited(2, ({ id }) => ({ id, sealed: null })),
      ["Record aud_2 was put in: it was never sealed.", "Between record 1 and record 3 something is missing."],
    ],
    [
      "a line that is no record",
      edited(2, () => "null"),
      ["Line 3 is no sealed record.", "Between record 1 and record 3 something is missing."],
    ],
    [
      "a line without a seal",
      edited(2, ({ id }) => ({ id })),
      ["Line 3 is no sealed record.", "Between record 1 and record 3 something is missing."],
    ],
    [
      "the beginning of another account",
      chain({ begin: Chain.origin("other") }),
      ["Record 1 (aud_1) does not begin the log of this account."],
    ],
    [
      "a chain that was continued elsewhere",
      {
        ...chain(),
        records: [...chain().records.slice(0, 2), ...chain({ of: 1, from: 3, begin: Buffer.alloc(32) }).records],
      },
      ["Record 3 (aud_3) does not follow record 2.", "The log's signed end is not the hash of record 3."],
    ],
    [
      "a record that the service did not write",
      chain({ unproven: 2 }),
      ["Record 2 (aud_2) was not written by the service."],
    ],
    [
      "a record that was altered after it was written",
      edited(2, sealedWith({ proof: "lost" })),
      ["Record 2 (aud_2) was not written by the service."],
    ],
    ["a seal that the service denies", edited(2, sealedWith({ seal: "lost" })), [lost(2)]],
    ["a MAC of another key", chain({ key: createSecretKey(randomBytes(32)) }), [1, 2, 3].map(lost)],
    ["a MAC of another length", edited(2, sealedWith({ mac: "00" })), [lost(2)]],
    ["a chain without a bridge", chain({ former: 2, of: 3, bridge: () => null }), [noBridge]],
    [
      "a bridge to another record",
      chain({ former: 2, of: 3, bridge: (target) => ({ ...target, id: "1:00" }) }),
      [noBridge],
    ],
    [
      "a bridge with another signature",
      chain({ former: 2, of: 3, bridge: (target) => ({ ...target, name: "AAAA" }) }),
      [noBridge],
    ],
    [
      "a bridge without a signature",
      chain({ former: 2, of: 3, bridge: (target) => ({ ...target, name: null }) }),
      [noBridge],
    ],
  ])("by %s", (_, lines, expected) => {
    expect(faults(lines as never)).toEqual(expected)
  })

  it("is compared with a head that was kept elsewhere", () => {
    const whole = chain()
    const { hash } = whole.records[1]!["sealed"]
    expect(faults(whole, { seq: 2, hash })).toEqual([])
    expect(faults(whole, { seq: 2, hash: "00" })).toEqual(["Record 2 is not the one that the kept head was made of."])
    expect(faults(whole, { seq: 4, hash })).toEqual(["Record 4, of which a head was kept, is not in it."])
  })

  it("shows an end that was signed for another record", () => {
    const [one, other] = [chain(), chain({ unproven: 3 })]
    expect(faults({ first: one.first, records: other.records })).toEqual([
      "Record 3 (aud_3) was not written by the service.",
      "The log's signed end is not the hash of record 3.",
    ])
  })

  it("reports the first 20 faults", () => {
    const whole = chain({ of: 30 })
    const found = faults({ ...whole, records: whole.records.map((record) => ({ ...record, action: "other" })) })
    expect([found.length, found.at(-1)]).toEqual([20, "Record 20 (aud_20) is not what was sealed."])
  })

  it("is not judged by a key that is not known, and with a known one only as this account's", () => {
    const foreign = chain({ key: createSecretKey(randomBytes(32)) })
    expect(faults(foreign, undefined, new Map())).toEqual([])
    const { first: own, records } = chain({ owner: "another" })
    expect(faults({ first: { ...own, head: null }, records })).toEqual([])
    expect(faults({ first: chain().first, records })).toEqual([1, 2, 3].map(lost))
  })
})

it("the hash of a record depends on its members, not on their order or its seal", () => {
  expect(Chain.canonical({ b: [1, "é", null, true], a: { d: {}, c: [] }, B: -1 })).toBe(
    '{"B":-1,"a":{"c":[],"d":{}},"b":[1,"é",null,true]}',
  )
  const before = Chain.origin(org)
  const record = { a: 1, b: "x" }
  expect(hex(before)).toBe(createHash("sha256").update(`svc-audit-1 ${org}`).digest("hex"))
  const expected = createHash("sha256").update(before).update('{"a":1,"b":"x"}').digest("hex")
  expect(hex(Chain.hashOf(before, record))).toBe(expected)
  expect(hex(Chain.hashOf(before, { b: "x", sealed: { seq: 1 }, a: 1 }))).toBe(expected)
  expect(hex(Chain.hashOf(before, record, true))).toBe(
    createHash("sha256").update(before).update('{"a":1,"b":"x"}\nunproven').digest("hex"),
  )
  expect(hex(Chain.hashOf(before, { a: 1, b: "y" }))).not.toBe(expected)
  const sealed = { org_id: org, seq: 1, previous: hex(before), hash: expected }
  const mac = Chain.macOf(sealKey, sealed)
  expect(mac).toHaveLength(16)
  expect(Chain.isSealedBy(keys, sealed, "k", mac)).toBe(true)
  for (const [key, bytes] of [
    [null, mac],
    ["other", mac],
    ["k", null],
    ["k", Buffer.concat([mac, mac])],
  ] as const)
    expect(Chain.isSealedBy(keys, sealed, key, bytes)).toBe(false)
  for (const change of [{ seq: 2 }, { org_id: "other" }, { previous: expected }, { hash: hex(before) }])
    expect(Chain.isSealedBy(keys, { ...sealed, ...change }, "k", mac)).toBe(false)
})

describe("A record", () => {
  const command = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10"
  const made = (more: Parameters<typeof act>[1]) => Effect.runSync(make(noKey, act(org, more)))

  it("of a command has an id of version 7 that is the same for each repetition, and one for each outcome", () => {
    const ids = Array.from({ length: 40 }, (_, n) => made({ command, action: `a${n}` }).id)
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(uuidMillis(id)).toBe(uuidMillis(command))
    }
    expect(new Set(ids.map((id) => id[19]))).toEqual(new Set("89ab"))
    const others = [{ class: "auth" }, { outcome: "refused" }, { code: "scope_missing" }] as const
    expect(new Set([...ids, ...others.map((more) => made({ command, action: "a0", ...more }).id)]).size).toBe(43)
    expect(made({ command, action: "a0", scope: null })).toMatchObject({
      id: ids[0],
      at: new Date(uuidMillis(command)),
      count: 1,
    })
    expect(made({}).id).not.toBe(made({}).id)
  })

  it("contains at most 300 characters of a caller's text, without control characters", () => {
    const nameOf = (name: string | null) =>
      made({ actor: { kind: "admin_key", id: null, name, client: null }, target: null }).row.actor_name
    expect([nameOf("x".repeat(300)), nameOf("x".repeat(301)), nameOf("a\0\u001f\u007f\u009fb"), nameOf(null)]).toEqual([
      "x".repeat(300),
      "x".repeat(300),
      "ab",
      null,
    ])
    expect(nameOf(`${"x".repeat(299)}\u{1f600}`)).toBe(`${"x".repeat(299)}\ufffd`)
  })

  it("is proved by a MAC over all of its members, which earlier and later versions compute alike", () => {
    const { at, row } = made({})
    const { proof, ...members } = row
    expect(proof).toBe(
      createHmac("sha256", noKey.key)
        .update(JSON.stringify(["audit", 1, ...Object.values(members)]))
        .digest()
        .subarray(0, 16)
        .toString("base64url"),
    )
    const holds = (more: object) => Proof.holds(noKey, { ...row, ...more }, at.getTime())
    expect(holds({})).toBe(true)
    expect(Object.keys(members).filter((name) => holds({ [name]: "other" }))).toEqual([])
    expect([holds({ proof: "" }), holds({ proof: `${proof}A` }), holds({ proof: proof.slice(1) })]).toEqual(
      Array(3).fill(false),
    )
  })
})
