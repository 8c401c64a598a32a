/** docs/promises.md names fault rows that there are, and leaves out none; the files it names are looked for with all documents'. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { expect, it } from "vitest"

const root = path.join(import.meta.dirname, "..", "..")
const read = (...parts: ReadonlyArray<string>) => readFileSync(path.join(root, ...parts), "utf8")

it("docs/promises.md names every fault row, and none that is not there", () => {
  const rows = read("test", "faults", "main.ts").split("await run({")[1]!
  const there = [...rows.matchAll(/^ {2}"?([a-z][a-z-]*)"?(?:: [\w.]+)?,$/gm)].map(([, name]) => name!)
  const said = [...read("docs", "promises.md").matchAll(/faults ((?:`[a-z-]+`(?:, )?)+)/g)].flatMap(([, list]) =>
    [...list!.matchAll(/[a-z-]+/g)].map(([name]) => name),
  )
  expect([...new Set(said)].sort()).toEqual(there.sort())
})
