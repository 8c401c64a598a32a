/** docs/promises.md names fault rows that there are, and leaves out none; the files it names are looked for with all documents'. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { expect, it } from "vitest"
import { rows } from "../faults/Rows.ts"

const root = path.join(import.meta.dirname, "..", "..")
const read = (...parts: ReadonlyArray<string>) => readFileSync(path.join(root, ...parts), "utf8")

it("docs/promises.md names every fault row, and none that is not there", () => {
  const there = Object.keys(rows)
  const said = [...read("docs", "promises.md").matchAll(/faults ((?:`[a-z-]+`(?:, )?)+)/g)].flatMap(([, list]) =>
    [...list!.matchAll(/[a-z-]+/g)].map(([name]) => name),
  )
  expect([...new Set(said)].sort()).toEqual(there.sort())
})
