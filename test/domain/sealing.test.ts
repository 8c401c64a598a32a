import { randomBytes } from "node:crypto"
import * as Cursors from "@svc/cluster/sealing/Cursors"
import { parseMasterKeys, type Place, Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

const keyText = () => randomBytes(32).toString("base64")
const sealingOf = (text: string) =>
  Effect.runPromise(
    Effect.flatMap(parseMasterKeys(text), (keys) => Effect.provide(Effect.service(Sealing), Sealing.layer(keys))),
  )
const place: fc.Arbitrary<Place> = fc
  .record({
    table: fc.string(),
    column: fc.string(),
    row: fc.string(),
    org: fc.uuid(),
    names: fc.option(fc.array(fc.string(), { maxLength: 3 })),
  })
  .map(({ names, ...at }) => (names === null ? at : { ...at, names }))
const opens = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.runSync(Effect.map(Effect.result(effect), ({ _tag }) => _tag === "Success"))

describe("a sealed value", () => {
  it("opens only at its place, and not if any byte was changed", async () => {
    const sealing = await sealingOf(keyText())
    const { dataKey } = await Effect.runPromise(sealing.makeDataKey("org"))
    fc.assert(
      fc.property(place, place, fc.uint8Array({ maxLength: 300 }), fc.nat(), (at, elsewhere, value, flip) => {
        const sealed = Effect.runSync(sealing.seal(dataKey, at, value))
        expect(Effect.runSync(sealing.open(dataKey, at, sealed))).toEqual(value)
        fc.pre(JSON.stringify(at) !== JSON.stringify(elsewhere))
        expect(opens(sealing.open(dataKey, elsewhere, sealed))).toBe(false)
        const altered = sealed.slice()
        altered[flip % altered.length]! ^= 1
        expect(opens(sealing.open(dataKey, at, altered))).toBe(false)
        expect(opens(sealing.open(dataKey, at, sealed.slice(0, flip % sealed.length)))).toBe(false)
      }),
    )
  })

  it("opens only with the key that sealed it, also if the account has had another key", async () => {
    const sealing = await sealingOf(keyText())
    const made = [
      await Effect.runPromise(sealing.makeDataKey("org")),
      await Effect.runPromise(sealing.makeDataKey("org")),
    ]
    const at = { table: "table", column: "column", row: "row", org: "org" }
    const values = made.map(({ dataKey }) => Effect.runSync(sealing.seal(dataKey, at, new Uint8Array(8))))
    // Opened keys are kept in memory; the second round finds them there.
    for (let round = 0; round < 2; round++)
      for (const [one, { sealed }] of made.entries()) {
        const dataKey = Effect.runSync(sealing.openDataKey("org", sealed))
        expect(values.map((value) => opens(sealing.open(dataKey, at, value)))).toEqual([one === 0, one === 1])
      }
  })

  it("does not open if any part of its place differs", async () => {
    const sealing = await sealingOf(keyText())
    const { dataKey } = await Effect.runPromise(sealing.makeDataKey("org"))
    const opensElsewhere = (at: Place, elsewhere: Place) =>
      opens(
        Effect.flatMap(sealing.seal(dataKey, at, new Uint8Array(8)), (sealed) =>
          sealing.open(dataKey, elsewhere, sealed),
        ),
      )
    const at = { table: "table", column: "column", row: "row", org: "org", names: ["identity", "secret", "name"] }
    expect(opensElsewhere(at, { ...at })).toBe(true)
    for (const part of ["table", "column", "row", "org"])
      expect(opensElsewhere(at, { ...at, [part]: "another" }), part).toBe(false)
    for (const index of at.names.keys()) {
      expect(opensElsewhere(at, { ...at, names: at.names.with(index, "another") }), `names[${index}]`).toBe(false)
    }
    // Labeling the value as the first format, which bound fewer parts, does not help.
    const sealed = Effect.runSync(sealing.seal(dataKey, at, new Uint8Array(8)))
    const { names: _, ...first } = at
    expect(opens(sealing.open(dataKey, first, Uint8Array.from([1, ...sealed.slice(1)])))).toBe(false)
    // Moving characters between adjacent parts does not help either.
    expect(opensElsewhere({ ...at, column: "a", row: "bc" }, { ...at, column: "ab", row: "c" })).toBe(false)
  })

  it("differs each time that the same value is sealed", async () => {
    const sealing = await sealingOf(keyText())
    const { dataKey } = await Effect.runPromise(sealing.makeDataKey("org"))
    const at = { table: "t", column: "c", row: "r", org: "o" }
    const one = Effect.runSync(sealing.seal(dataKey, at, new Uint8Array(8)))
    expect(Effect.runSync(sealing.seal(dataKey, at, new Uint8Array(8)))).not.toEqual(one)
  })
})

describe("master keys", () => {
  it("open values of a former key only while both are listed", async () => {
    const [former, present] = [keyText(), keyText()]
    const before = await sealingOf(`a:${former}`)
    const { sealed } = await Effect.runPromise(before.makeDataKey("org"))
    expect(opens((await sealingOf(`b:${present},a:${former}`)).openDataKey("org", sealed))).toBe(true)
    expect(opens((await sealingOf(`b:${present}`)).openDataKey("org", sealed))).toBe(false)
    expect(opens(before.openDataKey("another org", sealed))).toBe(false)
  })

  it("are rejected if they are malformed", async () => {
    const good = keyText()
    for (const text of [
      "",
      "short",
      `${good}x`,
      `a:${good},a:${keyText()}`,
      `${"i".repeat(65)}:${good}`,
      `ä:${good}`,
      good.replace(/./, "*"),
    ]) {
      expect(opens(parseMasterKeys(text)), text).toBe(false)
    }
  })

  it("reject a stamp in which any byte was changed", async () => {
    const sealing = await sealingOf(keyText())
    const stamped = Buffer.from(sealing.stamp("cursor", "place"), "base64url")
    for (let at = 0; at < stamped.length; at++) {
      const other = Buffer.from(stamped)
      other[at]! ^= 1
      expect(sealing.unstamp("cursor", other.toString("base64url")), `byte ${at}`).toBeUndefined()
    }
    for (let length = 0; length < stamped.length; length++)
      expect(sealing.unstamp("cursor", stamped.subarray(0, length).toString("base64url"))).toBeUndefined()
  })

  it("accept their own stamps for the same purpose only", async () => {
    const sealing = await sealingOf(keyText())
    const other = await sealingOf(keyText())
    fc.assert(
      fc.property(fc.string(), (text) => {
        const stamped = sealing.stamp("cursor", text)
        expect(stamped).toMatch(/^[\w-]+$/)
        if (text !== "") expect(sealing.unstamp("cursor", stamped)).toBe(text)
        expect(sealing.unstamp("other", stamped)).toBeUndefined()
        expect(other.unstamp("cursor", stamped)).toBeUndefined()
      }),
    )
  })
})

describe("a list in pages", () => {
  const numbers = ["1", "2", "3", "4", "5"]
  const pagesOf = async () => {
    const sealing = await sealingOf(keyText())
    const asked: Array<number> = []
    const page = (list: string, limit: number, cursor?: string) =>
      Cursors.page(
        sealing,
        list,
        { limit, cursor },
        (behind = "0", atMost) => (
          asked.push(atMost),
          Effect.succeed(numbers.filter((n) => n > behind).slice(0, atMost))
        ),
        (row) => row,
        (row) => `#${row}`,
      )
    return { asked, page }
  }

  it("has a cursor as long as entries follow, which continues that list only", async () => {
    const { asked, page } = await pagesOf()
    const first = Effect.runSync(page("list", 3))
    expect(first).toEqual({ entries: ["#1", "#2", "#3"], next_cursor: expect.any(String) })
    expect(Effect.runSync(page("list", 2, first.next_cursor!))).toEqual({ entries: ["#4", "#5"], next_cursor: null })
    expect([Effect.runSync(page("list", 5)).next_cursor, Effect.runSync(page("list", 4)).next_cursor]).toEqual([
      null,
      expect.any(String),
    ])
    // One row more than shown says whether another page follows.
    expect(asked).toEqual([4, 3, 6, 5])
    for (const [list, cursor] of [
      ["other", first.next_cursor!],
      ["list", "3"],
      ["list", ""],
    ] as const)
      expect(Effect.runSync(Effect.flip(page(list, 3, cursor)))).toMatchObject({ code: "invalid_cursor" })
    expect(asked).toHaveLength(4)
  })

  it("is read to its end, page by page", async () => {
    const { asked, page } = await pagesOf()
    const all = Cursors.all(({ cursor }) => page("list", 2, cursor))
    expect(Effect.runSync(all)).toEqual(["#1", "#2", "#3", "#4", "#5"])
    expect(asked).toEqual([3, 3, 3])
  })

  it("is another list with another filter, whatever the order and the size of its pages", () => {
    const named = (filter: object) => Cursors.filteredList("list", filter)
    expect([named({}), named({ a: undefined, limit: 5, offset: 1, cursor: "c", after: "x" })]).toEqual(["list", "list"])
    expect(named({ a: 1, b: "2" })).toBe(named({ b: "2", limit: 7, a: 1, c: undefined }))
    const different = [{}, { a: 1 }, { a: "1" }, { a: 2 }, { b: 1 }, { a: 1, b: 2 }, { a: false }, { a: null }].map(
      named,
    )
    expect(new Set(different).size).toBe(different.length)
  })
})
