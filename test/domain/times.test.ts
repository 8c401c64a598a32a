/** Times as text, compared with the platform's own formatting for every possible Date. */
import { rfc3339 } from "@svc/domain/Rfc3339"
import { FilterTime, NamedTime, Timestamp, TimestampOrNull } from "@svc/domain/Timestamp"
import { Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

const lastOfAll = 8.64e15
const day = 86_400_000

describe("times as text", () => {
  it("equal those of the platform for any time and in any order", () => {
    const between = (min: number, max: number) =>
      fc.date({ min: new Date(min), max: new Date(max), noInvalidDate: true })
    const anyDate = fc.oneof(between(-lastOfAll, lastOfAll), between(Date.UTC(2026, 0), Date.UTC(2028, 0)))
    const same = (date: Date) => void expect(rfc3339(date)).toBe(date.toISOString())
    fc.assert(fc.property(anyDate, same), { numRuns: 5_000 })
    const edges = [0, -1, 1, -lastOfAll, lastOfAll, Date.UTC(-1, 0), Date.UTC(10_000, 0), Date.UTC(10_000, 0) - 1]
    // A day and the days that share its cache slot.
    const neighbours = [0, 1, 255, 256, 512, -256].flatMap((days) => [days * day, days * day + day - 1])
    for (const time of [...edges, ...neighbours]) expect(rfc3339(new Date(time))).toBe(new Date(time).toISOString())
  })
  const decode = Schema.decodeUnknownOption(Schema.toCodecJson(NamedTime))
  const isTime = (text: string) => decode(text)._tag === "Some"

  it("are accepted with a zone, between the years 1 and 9999", () => {
    for (const text of ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "2026-11-23T03:00:00+14:00"])
      expect(isTime(text), text).toBe(true)
    for (const text of ["2024-02-29t12:00:00.123456789z", "2026-11-23T23:59:59-23:59"])
      expect(isTime(text), text).toBe(true)
    for (const text of ["-005000-01-01T00:00:00Z", "0000-12-31T00:00:00Z", "+010000-01-01T00:00:00Z", "never"])
      expect(isTime(text), text).toBe(false)
  })

  it("are rejected unless they are an RFC 3339 date and time of an existing day", () => {
    const wrong = [
      "foo 2030",
      "1 Jan 2030",
      "2030",
      "2030-01",
      "2030-01-01",
      "2030-01-01T00:00:00",
      "2030-01-01T00:00Z",
      "2030-01-01 00:00:00Z",
      "2030-02-31T00:00:00Z",
      "2023-02-29T00:00:00Z",
      "2030-13-01T00:00:00Z",
      "2030-04-31T00:00:00+01:00",
      "2030-01-01T24:00:00Z",
      "2030-01-01T00:60:00Z",
      "2016-12-31T23:59:60Z",
      "2030-01-01T00:00:00+24:00",
      "2030-01-01T00:00:00+0100",
      " 2030-01-01T00:00:00Z",
      "2030-01-01T00:00:00Z.",
      "1893456000",
      "",
    ]
    expect(wrong.filter(isTime)).toEqual([])
  })

  it("may be a day in a filter, which starts in UTC", () => {
    const read = Schema.decodeUnknownOption(Schema.toCodecJson(FilterTime))
    const day = read("2026-02-28")
    expect(day._tag === "Some" && day.value.toISOString()).toBe("2026-02-28T00:00:00.000Z")
    expect(read("2026-02-28T01:00:00+01:00")).toEqual(day)
    for (const text of ["0001-01-01", "9999-12-31", "0001-01-01T00:00:00Z"]) expect(read(text)._tag, text).toBe("Some")
    for (const text of ["2026-02-31", "2026-2-28", "2026-02-28T00:00:00", "foo 2030", "0000-12-31", ""])
      expect(read(text)._tag, text).toBe("None")
    expect(isTime("2026-02-28")).toBe(false)
  })

  it("are parsed to the same instant in any time zone", () => {
    const minutes = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 })
    const date = fc.date({ min: new Date(Date.UTC(1, 1)), max: new Date(Date.UTC(9990, 0)), noInvalidDate: true })
    const inZone = (at: Date, offset: number) => {
      const local = new Date(at.getTime() + offset * 60_000).toISOString().slice(0, -1)
      const [hours, rest] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
      return `${local}${offset < 0 ? "-" : "+"}${String(hours).padStart(2, "0")}:${String(rest).padStart(2, "0")}`
    }
    const isSame = (at: Date, offset: number) => {
      const read = decode(inZone(at, offset))
      expect(read._tag === "Some" && read.value.getTime()).toBe(at.getTime())
    }
    const early = date.filter((at) => at.getTime() > Date.UTC(1900, 0))
    fc.assert(fc.property(early, minutes, isSame), { numRuns: 2_000 })
  })

  it("are returned in responses and parsed again", () => {
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
