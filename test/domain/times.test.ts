/** Times as text: what the platform's own says of them, for every time that a Date can be. */
import { rfc3339 } from "@svc/domain/Rfc3339"
import { NamedTime, Timestamp, TimestampOrNull } from "@svc/domain/Timestamp"
import { Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

const lastOfAll = 8.64e15
const day = 86_400_000

describe("times as text", () => {
  it("are those of the platform, whatever time it is and whatever was said before", () => {
    const between = (min: number, max: number) =>
      fc.date({ min: new Date(min), max: new Date(max), noInvalidDate: true })
    const anyDate = fc.oneof(between(-lastOfAll, lastOfAll), between(Date.UTC(2026, 0), Date.UTC(2028, 0)))
    const same = (date: Date) => void expect(rfc3339(date)).toBe(date.toISOString())
    fc.assert(fc.property(anyDate, same), { numRuns: 5_000 })
    const edges = [0, -1, 1, -lastOfAll, lastOfAll, Date.UTC(-1, 0), Date.UTC(10_000, 0), Date.UTC(10_000, 0) - 1]
    // A day and those whose place it shares.
    const neighbours = [0, 1, 255, 256, 512, -256].flatMap((days) => [days * day, days * day + day - 1])
    for (const time of [...edges, ...neighbours]) expect(rfc3339(new Date(time))).toBe(new Date(time).toISOString())
  })
  it("are none outside of the years that a store can have", () => {
    const decode = Schema.decodeUnknownOption(Schema.toCodecJson(NamedTime))
    const isTime = (text: string) => decode(text)._tag === "Some"
    for (const text of ["0001-01-01", "9999-12-31T23:59:59.999Z", "2026-11-23T03:00:00+14:00"])
      expect(isTime(text), text).toBe(true)
    for (const text of ["-271821-04-20", "-005000-01-01T00:00:00Z", "0000-12-31", "+010000-01-01T00:00:00Z", "never"])
      expect(isTime(text), text).toBe(false)
  })
  it("are answered, and read back", () => {
    const codec = Schema.toCodecJson(Schema.Struct({ at: Timestamp, ended_at: TimestampOrNull }))
    const at = new Date(1_790_000_000_123)
    for (const ended_at of [null, at]) {
      const encoded = Schema.encodeUnknownSync(codec)({ at, ended_at })
      expect(encoded).toEqual({ at: "2026-09-21T14:13:20.123Z", ended_at: ended_at?.toISOString() ?? null })
      expect(Schema.decodeUnknownSync(codec)(encoded)).toEqual({ at, ended_at })
    }
    expect(rfc3339(new Date(Number.NaN))).toBe("Invalid Date")
  })
})
