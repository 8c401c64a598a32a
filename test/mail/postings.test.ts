/** Search segments: their construction and their answers. */
import * as RecentTexts from "@svc/cluster/mail/search/RecentTexts"
import * as Grams from "@svc/cluster/mail/search/Grams"
import * as Postings from "@svc/cluster/mail/search/Postings"
import * as Segments from "@svc/cluster/mail/search/Segments"
import { describe, expect, it } from "@effect/vitest"
import { randomBelow, positionsOf, randomText } from "./RandomTexts.ts"

/** Returns the positions that a segment of these texts reports, and the size of its buckets. */
const segment = (texts: ReadonlyArray<string>) => {
  const postings = Postings.make()
  for (const [place, text] of texts.entries()) postings.add(place, text)
  const buckets = new Map([...postings.buckets()].map(({ bucket, entries }) => [bucket, entries]))
  const search = (part: string) => {
    const found = Postings.everywhere()
    for (const one of Grams.gramsOf([part])) {
      const entries = buckets.get(one.bucket)
      if (entries === undefined) return []
      Postings.narrow(found, entries, one)
    }
    return Postings.placesOf(found).filter((place) => place < texts.length)
  }
  return { search, sizes: [...buckets.values()].map(({ length }) => length) }
}

describe("A segment", () => {
  it("misses no text that contains the term, from two characters on, including at its end", () => {
    const draw = randomBelow(1)
    for (let round = 0; round < 3; round++) {
      const texts = Array.from({ length: Postings.places }, () => randomText(draw, 2 + draw(120)))
      const { search } = segment(texts)
      for (let n = 0; n < 40; n++) {
        const text = [...texts[draw(texts.length)]!]
        const length = 2 + draw(8)
        const from = n % 3 === 0 ? Math.max(0, text.length - length) : draw(text.length)
        const part = text.slice(from, from + length).join("")
        expect(Grams.gramsOf([part]).length > 0, JSON.stringify(part)).toBe(part.length > 1)
        const found = new Set(search(part))
        expect(
          positionsOf(texts, part).filter((place) => !found.has(place)),
          JSON.stringify(part),
        ).toEqual([])
      }
    }
  })

  it("is the same for a text that is added in pieces", () => {
    const text = randomText(randomBelow(5), 1_000)
    const bucketsOf = (pieces: number) => {
      const postings = Postings.make()
      for (let at = 0; at < text.length; at += pieces) postings.add(7, text, at, at + pieces)
      return [...postings.buckets()].map(({ bucket, entries }) => [bucket, [...entries].toSorted()])
    }
    const complete = bucketsOf(text.length)
    for (const pieces of [1, 2, 3, 64, 999]) expect(bucketsOf(pieces), `${pieces}`).toEqual(complete)
  })

  it("contains nothing of the previously built one", () => {
    const draw = randomBelow(6)
    const [one, other] = [randomText(draw, 400), randomText(draw, 400)]
    const postings = Postings.make()
    const bucketsOf = (place: number, text: string) => {
      postings.clear()
      postings.add(place, text)
      return [...postings.buckets()]
    }
    const first = bucketsOf(3, one)
    expect(bucketsOf(9, other)).not.toEqual(first)
    expect(bucketsOf(3, one)).toEqual(first)
  })

  it("is exact for two or three ASCII characters", () => {
    const draw = randomBelow(2)
    const texts = Array.from({ length: Postings.places }, () =>
      Array.from({ length: draw(60) }, () => String.fromCharCode(97 + draw(20))).join(""),
    )
    for (const part of ["ab", "qr", "xyz", "abc", "kml", "tss", "gh"]) {
      expect(segment(texts).search(part), part).toEqual(positionsOf(texts, part))
    }
  })

  it("of texts with too many trigrams is less precise, but never misses a text", () => {
    const draw = randomBelow(3)
    const texts = Array.from({ length: 3 }, () =>
      Array.from({ length: 150_000 }, () => String.fromCharCode(32 + draw(0xa000))).join(""),
    )
    const { search, sizes } = segment(texts)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(32 * 1024)
    expect(sizes).toContain(0)
    for (const [place, text] of texts.entries()) {
      expect(search(text.slice(149_000, 149_008))).toContain(place)
    }
  })
})

describe("Recently stored texts", () => {
  it("are cached up to a total size, the newest first, without large ones", () => {
    const fresh = RecentTexts.make({ inAll: 10, inOne: 6 })
    for (const [id, text] of Object.entries({ a: "1234", b: "1234567", c: "12\ud8004", d: "123" })) fresh.keep(id, text)
    expect(["a", "b", "c", "d"].map(fresh.take)).toEqual([undefined, undefined, "12\ufffd4", "123"])
    expect(fresh.take("d")).toBeUndefined()
    for (const text of ["123456", "1234"]) fresh.keep("e", text)
    fresh.keep("f", "123456")
    expect(["e", "f"].map(fresh.take)).toEqual(["1234", "123456"])
  })
})

describe("The spans of a Mailbox", () => {
  it("cover segments and gaps between them, newest first, without omission", () => {
    const spans = (low: number, high: number) =>
      [...Segments.spans({ complete: 4, missing: new Set([2]) }, low, high)].map(({ first, last, isBuilt }) => [
        first,
        last,
        isBuilt,
      ])
    expect(spans(0, 1_100)).toEqual([
      [1_025, 1_099, false],
      [769, 1_024, true],
      [513, 768, false],
      [1, 512, true],
    ])
    expect(spans(0, 0x7fffffff)[0]).toEqual([1_025, 0x7ffffffe, false])
    expect(spans(300, 310)).toEqual([[301, 309, true]])
    expect(spans(511, 514)).toEqual([
      [513, 513, false],
      [512, 512, true],
    ])
    expect(spans(7, 8)).toEqual([])
  })
})
