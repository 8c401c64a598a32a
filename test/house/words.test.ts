/** Comments, test titles, texts and documents use the words of the field (CONTRIBUTING.md "Language"). */
import { globSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { root, sources } from "./Imports.ts"
import { avoided } from "./Words.ts"

/** Matches the space between two words, or a line break followed by the beginning of the next comment line. */
const gap = String.raw`(?:[ \t]+|[ \t]*\n[ \t]*(?:\*|//|#|>)?[ \t]*)`

const pattern = new RegExp(
  String.raw`\b(${Object.keys(avoided)
    .map((phrase) => phrase.replaceAll(" ", gap))
    .join("|")})\b`,
  "gi",
)

/** Lists the avoided phrases of a text with their lines and replacements. */
const findings = (file: string, text: string) =>
  [...text.matchAll(pattern)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length
    const phrase = match[1]!.toLowerCase().replaceAll(/[\s*/#>]+/g, " ")
    return `${file}:${line} "${phrase}": write "${avoided[phrase]}"`
  })

const written = [
  ...sources(),
  ...globSync(["*.md", "docs/**/*.md"], { cwd: root }).map((file) => file.replaceAll("\\", "/")),
].filter((file) => file !== "test/house/Words.ts" && file !== "test/house/words.test.ts")

describe("Words", () => {
  it("are those of the field in every source and document", () => {
    expect(written.length).toBeGreaterThan(500)
    expect(written.flatMap((file) => findings(file, readFileSync(path.join(root, file), "utf8")))).toEqual([])
  })

  it("are found across the lines of a comment", () => {
    expect(findings("a.ts", "const a = 1\n/**\n * The name is taken for\n * ever.\n */\n")).toEqual([
      'a.ts:3 "for ever": write "permanently, or: forever"',
    ])
  })
})
