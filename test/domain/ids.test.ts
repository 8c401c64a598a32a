import { crc32 } from "node:zlib"
import { fromPublic, makePublic, makeUuidV7, toPublic, uuidMillis } from "@svc/domain/Ids"
import { displayPrefix, kindOf, make } from "@svc/domain/account/Token"
import { Clock, Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

describe("ids", () => {
  it("are version 7 UUIDs that sort in the order of their creation", () => {
    const ids = Array.from({ length: 5_000 }, () => Effect.runSync(makeUuidV7))
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(ids.toSorted()).toEqual(ids)
    expect(new Set(ids).size).toBe(ids.length)
  })
  it("are also created in public form, as version 7 UUIDs with the current time", () => {
    for (let n = 0; n < 1_000; n++) {
      const before = Date.now()
      const uuid = fromPublic("req_", Effect.runSync(makePublic("req_")))!
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      const time = parseInt(uuid.replaceAll("-", "").slice(0, 12), 16)
      expect(time).toBeGreaterThanOrEqual(before)
      expect(time).toBeLessThanOrEqual(Date.now())
    }
  })
  it("consist of random bits except for the time, the version and the variant", () => {
    const bitsOf = (uuid: string) => BigInt(`0x${uuid.replaceAll("-", "")}`)
    const clock = Effect.runSync(Effect.clockWith(Effect.succeed))
    // Each clock has its own source, and the first id of a source is random, except for the uppermost bit of its counter.
    const ofNewClock = Effect.suspend(() => Effect.provideService(makeUuidV7, Clock.Clock, Object.create(clock)))
    for (const [make, random] of [
      [Effect.map(makePublic("req_"), (id) => fromPublic("req_", id)!), 0xfff_3fff_ffff_ffff_ffffn],
      [ofNewClock, 0x7ff_3fff_ffff_ffff_ffffn],
    ] as const) {
      const ids = Array.from({ length: 200 }, () => bitsOf(Effect.runSync(make)))
      const varying = ids.reduce((a, b) => a | b) & ~ids.reduce((a, b) => a & b) & 0xfff_3fff_ffff_ffff_ffffn
      expect(varying.toString(16)).toBe(random.toString(16))
    }
  })
  it("contain the time of their creation", () => {
    expect(uuidMillis("0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10")).toBe(0x0199d3c05e0f)
  })
  it("convert to the public form and back, in the same order", () => {
    fc.assert(
      fc.property(fc.uuid(), fc.uuid(), (a, b) => {
        expect(fromPublic("evt_", toPublic("evt_", a))).toBe(a)
        expect(toPublic("evt_", a) < toPublic("evt_", b)).toBe(a < b)
      }),
    )
  })
  it("are rejected with another prefix", () => {
    const id = toPublic("evt_", Effect.runSync(makeUuidV7))
    expect(id).toMatch(/^evt_[0-9a-hjkmnp-tv-z]{26}$/)
    expect(fromPublic("wh_", id)).toBeUndefined()
    expect(fromPublic("evt_", id.toUpperCase())).toBeUndefined()
    expect(fromPublic("evt_", `evt_z${id.slice(5)}`)).toBeUndefined()
    expect(fromPublic("evt_", id.replace(/.$/, "u"))).toBeUndefined()
    expect(fromPublic("evt_", `${id}0`)).toBeUndefined()
    // The first digit has three bits.
    const beyond = toPublic("evt_", "00000000-0001-0008-8000-000000000000").replace("evt_0", "evt_8")
    expect(fromPublic("evt_", beyond)).toBeUndefined()
    // Digits of no valid UUID: version 0, and an undefined variant.
    expect(fromPublic("evt_", toPublic("evt_", "01935f5e-0000-0000-8000-000000000000"))).toBeUndefined()
    expect(fromPublic("evt_", toPublic("evt_", "01935f5e-0000-7000-0000-000000000000"))).toBeUndefined()
  })
})

describe("credentials", () => {
  it("are recognized by their prefix and checksum", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.constantFrom("session", "admin_key", "identity_key"),
        fc.nat(),
        (random, kind, at) => {
          const token = make(kind, random)
          expect(kindOf(token)).toBe(kind)
          expect(token).toMatch(/^svc_(sess|admin|id)_[0-9A-Za-z]{49}$/)
          expect(token.startsWith(displayPrefix(token))).toBe(true)
          const position = token.length - 1 - (at % 49)
          const other = token[position] === "0" ? "1" : "0"
          expect(kindOf(token.slice(0, position) + other + token.slice(position + 1))).toBeUndefined()
        },
      ),
    )
  })
  it("are rejected with a character outside of the alphabet, even with a valid checksum", () => {
    const token = make("admin_key", new Uint8Array(32).fill(7))
    const at = "svc_admin_".length
    // A different character with the same low byte.
    const twin = String.fromCharCode(token.charCodeAt(at) + 0x100)
    expect(kindOf(token.slice(0, at) + twin + token.slice(at + 1))).toBeUndefined()
  })
  it("are the random bytes and the CRC-32 of the text before it in base62, as secret scanners and later versions check them", () => {
    const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    const numberIn = (text: string) => [...text].reduce((sum, digit) => sum * 62n + BigInt(digits.indexOf(digit)), 0n)
    for (const fill of [0, 1, 7, 128, 255]) {
      const token = make("identity_key", new Uint8Array(32).fill(fill))
      expect(numberIn(token.slice(-6))).toBe(BigInt(crc32(token.slice(0, -6))))
      expect(numberIn(token.slice("svc_id_".length, -6)).toString(16)).toBe(
        BigInt(`0x${Buffer.alloc(32, fill).toString("hex")}`).toString(16),
      )
    }
  })
  it("preserve all 256 bits", () => {
    expect(make("session", new Uint8Array(32))).toContain("0".repeat(43))
    expect(make("session", new Uint8Array(32).fill(255))).not.toBe(make("session", new Uint8Array(32).fill(254)))
  })
})
