/** Size limits of the console, in bytes over the wire (gzip). */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { gzipSync } from "node:zlib"
import { beforeAll, describe, expect, it } from "vitest"
import { buildConsole, built } from "../harness/Console.ts"

interface Chunk {
  readonly file: string
  readonly isEntry?: boolean
  readonly isDynamicEntry?: boolean
  readonly imports?: ReadonlyArray<string>
  readonly css?: ReadonlyArray<string>
  readonly assets?: ReadonlyArray<string>
}

const kilo = 1000

describe("The build of the console", () => {
  let manifest: Readonly<Record<string, Chunk>>
  beforeAll(() => {
    buildConsole()
    manifest = JSON.parse(readFileSync(path.join(built, "manifest.json"), "utf8"))
  })
  const size = (file: string) => gzipSync(readFileSync(path.join(built, file)), { level: 9 }).length
  /** Returns a chunk and all chunks that it imports. */
  const complete = (name: string, seen = new Set<string>()): ReadonlySet<string> => {
    if (seen.has(name)) return seen
    seen.add(name)
    for (const one of manifest[name]!.imports ?? []) complete(one, seen)
    return seen
  }
  const entry = () => Object.keys(manifest).find((name) => manifest[name]!.isEntry === true)!

  it("loads at most 45 kB of script first and has at most 10 kB of styles", () => {
    const script = [...complete(entry())].reduce((sum, name) => sum + size(manifest[name]!.file), 0)
    expect(script).toBeLessThanOrEqual(45 * kilo)
    const styles = new Set(
      Object.values(manifest).flatMap(({ file, css }) => [...(file.endsWith(".css") ? [file] : []), ...(css ?? [])]),
    )
    expect(styles.size).toBeGreaterThan(0)
    expect([...styles].reduce((sum, file) => sum + size(file), 0)).toBeLessThanOrEqual(10 * kilo)
  })

  it("adds at most 25 kB of script per page and has one font of at most 50 kB", () => {
    const first = complete(entry())
    for (const name of Object.keys(manifest).filter((name) => manifest[name]!.isDynamicEntry === true)) {
      const added = [...complete(name)].filter((one) => !first.has(one))
      expect(
        added.reduce((sum, one) => sum + size(manifest[one]!.file), 0),
        name,
      ).toBeLessThanOrEqual(25 * kilo)
    }
    const fonts = Object.values(manifest).filter(({ file }) => file.endsWith(".woff2"))
    expect(fonts).toHaveLength(1)
    expect(readFileSync(path.join(built, fonts[0]!.file)).length).toBeLessThanOrEqual(50 * kilo)
  })

  it("does not contain Effect", () => {
    for (const { file } of Object.values(manifest)) {
      if (file.endsWith(".js"))
        expect(readFileSync(path.join(built, file), "utf8"), file).not.toMatch(/effect\/Schema|~effect/)
    }
  })
})
