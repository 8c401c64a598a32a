/**
 * Compatibility of releases that run side by side: this version reads everything that an earlier release wrote, and that release reads
 * everything that this version writes. docs/upgrade.md has the rules, and the steps for an intended change.
 */
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { frames, releases } from "./Golden.ts"
import { encodedKinds } from "./EncodedKinds.ts"
import { makeTable, incompatibilities } from "./Shape.ts"

const golden = releases()
const today = makeTable()
const shapes = new Map(Object.entries(encodedKinds).map(([name, { schema }]) => [name, today.add(schema)]))

it("at least one release is recorded", () => {
  expect(golden.length).toBeGreaterThan(0)
  for (const release of golden) expect(Object.keys(release.kept).length).toBeGreaterThan(100)
})

describe.each(golden.map((release) => [release.version, release] as const))("with release %s", (_, release) => {
  const both = Object.entries(release.kept).filter(([name]) => name in encodedKinds)

  it("this version encodes every envelope between processes identically", () => {
    expect(frames()).toEqual(release.frames)
  })

  it.each(both)("this one reads its %s", (name, { samples }) => {
    expect(samples.length).toBeGreaterThan(0)
    for (const sample of samples) encodedKinds[name]!.read(sample)
  })

  it("this version knows every message and stored value of the release", () => {
    const removed = Object.keys(release.kept).filter((name) => !(name in encodedKinds))
    expect(removed).toEqual([])
    const found = both.flatMap(([name, { shape }]) =>
      incompatibilities({ table: today.table, at: shapes.get(name)! }, { table: release.shapes, at: shape }).map(
        (what) => `${name} ${what}`,
      ),
    )
    expect(found).toEqual([])
  })

  it("the release knows every message, response and stored value of this version", () => {
    const found = both.flatMap(([name, { shape }]) =>
      incompatibilities({ table: release.shapes, at: shape }, { table: today.table, at: shapes.get(name)! }).map(
        (what) => `${name} ${what}`,
      ),
    )
    expect(found).toEqual([])
  })
})

describe("the comparison", () => {
  const A = Schema.TaggedStruct("A", { n: Schema.Number })
  const B = Schema.TaggedStruct("B", { n: Schema.Number })
  const before = Schema.Struct({
    id: Schema.String,
    size: Schema.Number,
    kind: Schema.Literals(["a", "b"]),
    of: Schema.Union([A, B]),
    many: Schema.Array(Schema.Struct({ at: Schema.Date })),
  })
  const { fields } = before
  const found = (after: Schema.Constraint) => {
    const [old, fresh] = [makeTable(), makeTable()]
    const sides = [
      { table: old.table, at: old.add(before) },
      { table: fresh.table, at: fresh.add(after) },
    ] as const
    return [incompatibilities(sides[1], sides[0]), incompatibilities(sides[0], sides[1])]
  }

  it.each<[string, Schema.Constraint, ReadonlyArray<string>, ReadonlyArray<string>]>([
    ["nothing", Schema.Struct({ ...fields }), [], []],
    ["an optional member more", Schema.Struct({ ...fields, extra: Schema.optionalKey(Schema.String) }), [], []],
    [
      "another order",
      Schema.Struct({
        of: Schema.Union([B, A]),
        many: fields.many,
        kind: fields.kind,
        size: fields.size,
        id: fields.id,
      }),
      [],
      [],
    ],
    ["a required member more", Schema.Struct({ ...fields, more: Schema.String }), [".more: is missing"], []],
    [
      "a member that may be absent now",
      Schema.Struct({ ...fields, id: Schema.optionalKey(Schema.String) }),
      [],
      [".id: is missing"],
    ],
    [
      "a literal more",
      Schema.Struct({ ...fields, kind: Schema.Literals(["a", "b", "c"]) }),
      [],
      ['.kind: "c" is not known'],
    ],
    ["a literal less", Schema.Struct({ ...fields, kind: Schema.Literals(["a"]) }), ['.kind: "b" is not known'], []],
    [
      "a member of a union more",
      Schema.Struct({ ...fields, of: Schema.Union([A, B, Schema.TaggedStruct("C", {})]) }),
      [],
      [".of: C is not known"],
    ],
    [
      "a member of a union that asks for more",
      Schema.Struct({
        ...fields,
        of: Schema.Union([A, Schema.TaggedStruct("B", { n: Schema.Number, m: Schema.Number })]),
      }),
      [".of.m: is missing"],
      [],
    ],
    [
      "another type",
      Schema.Struct({ ...fields, size: Schema.Int }),
      [".size: Int cannot read Number"],
      [".size: Number cannot read Int"],
    ],
    [
      "another type within a list",
      Schema.Struct({ ...fields, many: Schema.Array(Schema.Struct({ at: Schema.String })) }),
      [".many[].at: String cannot read effect/schema/Date"],
      [".many[].at: effect/schema/Date cannot read String"],
    ],
  ])("sees %s", (_, after, byNew, byOld) => {
    expect(found(after)).toEqual([byNew, byOld])
  })
})
