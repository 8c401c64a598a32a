/** Messages, metrics and settings that docs/troubleshooting.md quotes exist in the sources. */
import { globSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"

const root = path.join(import.meta.dirname, "..", "..")
const text = readFileSync(path.join(root, "docs", "troubleshooting.md"), "utf8")

/** All sources as one text, with concatenated string literals joined. */
const sources = globSync("packages/*/src/**/*.ts", { cwd: root })
  .map((name) => readFileSync(path.join(root, name), "utf8"))
  .join("\n")
  .replaceAll(/["`] \+\s*["`]/g, "")
  .replaceAll("\\`", "`")

const rows = text
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| you see") && !line.startsWith("| part"))
const spans = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span!)

describe("docs/troubleshooting.md", () => {
  it("quotes messages of the program", () => {
    const quoted = rows.flatMap((row) => spans(row.split(" | ")[0]!))
    expect(quoted.length).toBeGreaterThan(50)
    // An ellipsis in a quote replaces a variable part.
    const untrue = quoted.filter((message) =>
      message.split("…").some((part) => part.trim().length > 1 && !sources.includes(part.trim())),
    )
    expect(untrue).toEqual([])
  })

  it("names existing metrics", () => {
    const table = readFileSync(path.join(root, "docs", "operations.md"), "utf8")
    const named = [...text.matchAll(/`((?:svc|nodejs|effect|http|process)_[a-z_]+)`/g)].map(([, name]) => name!)
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((name) => !table.includes(`\`${name}\``))).toEqual([])
  })
})
