/** docs/promises.md mentions every fault row and no row that does not exist. Another test checks the names of its files. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { expect, it } from "vitest"
import { rows } from "../faults/Rows.ts"

const root = path.join(import.meta.dirname, "..", "..")
const read = (...parts: ReadonlyArray<string>) => readFileSync(path.join(root, ...parts), "utf8")

it("docs/promises.md names every fault row, and no missing row", () => {
  const there = Object.keys(rows)
  const namedRows = [...read("docs", "promises.md").matchAll(/faults ((?:`[a-z-]+`(?:, )?)+)/g)].flatMap(([, list]) =>
    [...list!.matchAll(/[a-z-]+/g)].map(([name]) => name),
  )
  expect([...new Set(namedRows)].sort()).toEqual(there.sort())
})
