/** docs/crash-matrix.md refers to existing tests by their titles, and describes every fault row and its patches. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { patchFolder, patches, rowOf } from "../faults/Mutants.ts"
import { rows } from "../faults/Rows.ts"

const root = path.join(import.meta.dirname, "..", "..")
const lines = readFileSync(path.join(root, "docs", "crash-matrix.md"), "utf8").split("\n")

/** Returns the text of a test and of the files in the folder with the same name, whose tests it may run. */
const textOf = (file: string): string => {
  const folder = path.join(root, "test", file.replace(/\.test\.ts$/, ""))
  const parts = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : []
  return [
    path.join(root, "test", file),
    ...parts.filter((part) => part.isFile()).map(({ name }) => path.join(folder, name)),
  ]
    .map((name) => readFileSync(name, "utf8"))
    .join("\n")
}

/** Returns each test of a line as its file and title; a title without a file belongs to the file before it. */
const testsIn = (line: string) => {
  const found: Array<{ readonly file: string; readonly title: string | undefined }> = []
  for (const [, file, title] of line.matchAll(/`?\b([a-z-]+(?:\/[a-z-]+)+\.test\.ts)\b`?|"([^"]+)"/g)) {
    const last = found.at(-1)
    if (file !== undefined) found.push({ file, title: undefined })
    else if (last !== undefined) found.push({ file: last.file, title })
  }
  return found
}

describe("docs/crash-matrix.md", () => {
  it("refers to existing tests by their titles", () => {
    const named = lines.flatMap(testsIn)
    expect(named.length).toBeGreaterThan(200)
    const missing = named.filter(
      ({ file, title }) =>
        !existsSync(path.join(root, "test", file)) || (title !== undefined && !textOf(file).includes(title)),
    )
    expect(missing).toEqual([])
  })

  it("describes every fault row and what its patches break", () => {
    const described = Object.keys(rows).map((row) => lines.filter((line) => line.startsWith(`| \`${row}\` |`)).length)
    expect(described).toEqual(described.map(() => 1))
    const undescribed = patches().filter((patch) => {
      const [breaks] = readFileSync(path.join(patchFolder, patch), "utf8").split("\n", 1)
      return !lines.some((line) => line.startsWith(`| \`${rowOf(patch)}\` |`) && line.includes(breaks!))
    })
    expect(undescribed).toEqual([])
  })
})
