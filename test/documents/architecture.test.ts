/** docs/architecture.md mentions every folder of the packages, and no folder that does not exist. */
import { existsSync, globSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"

const root = path.join(import.meta.dirname, "..", "..")
const text = readFileSync(path.join(root, "docs", "architecture.md"), "utf8")
const part = text.split("\n## Where things stand\n")[1]!.split("\n## ")[0]!
const named = new Set([...part.matchAll(/`([^`]+)`/g)].map(([, name]) => name!))

/** Returns paths below `packages`, with `/` on every system. */
const foldersOf = (pattern: string) =>
  globSync(pattern, { cwd: path.join(root, "packages"), withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)

describe("docs/architecture.md", () => {
  it("names every folder of every package", () => {
    const folders = [...new Set([...foldersOf("*/src/*"), ...foldersOf("*").map((name) => `packages/${name}`)])]
    expect(folders.length).toBeGreaterThan(60)
    expect(folders.filter((name) => !named.has(name))).toEqual([])
  })

  it("names no missing folder", () => {
    const there = new Set([
      ...foldersOf("*"),
      ...foldersOf("*/src/*"),
      ...foldersOf("*/src/*/*"),
      "test",
      "examples",
      "bench",
      "faults",
    ])
    // Names of the library and the command, which look like folders.
    const others = new Set(["effect", "svc"])
    const folders = [...named].filter((name) => /^[a-z-]+$/.test(name) && !others.has(name))
    expect(folders.length).toBeGreaterThan(60)
    expect(folders.filter((name) => !there.has(name))).toEqual([])
  })

  it("names existing files, also by the end of their path", () => {
    const files = [...text.matchAll(/`((?:domain|cluster|api|mail-gateway|tunnel-edge|cli)\/[\w/-]+\.ts)`/g)]
      .map(([, file]) => file!)
      .filter((file) => !file.includes("/notes/"))
    expect(files.length).toBeGreaterThan(10)
    const missing = files.filter((file) => {
      const [name, ...rest] = file.split("/")
      return !existsSync(path.join(root, "packages", name!, "src", ...rest))
    })
    expect(missing).toEqual([])
  })
})
