import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { patched, patches, rowOf } from "./Mutants.ts"
import { rows } from "./Rows.ts"

const root = path.join(import.meta.dirname, "..", "..")

describe("fault row", () => {
  it.each(Object.keys(rows))("%s has a patch that removes what it protects", (row) => {
    expect(patches().map(rowOf)).toContain(row)
  })
})

describe("fault patch", () => {
  it.each(patches())("%s belongs to a row and applies", (patch) => {
    expect(rowOf(patch)).toBeDefined()
    expect(patched(root, patch).size).toBeGreaterThan(0)
  })
})
