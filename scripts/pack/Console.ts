/** What the last build of the console made: not what it kept of former ones. */
import { readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { dist } from "../../packages/console/sources.mjs"

export { dist }

/** Its files, by their names below {@link dist}. */
export const own = (): ReadonlyArray<string> => {
  const made = new Set(JSON.parse(readFileSync(path.join(dist, "own.json"), "utf8")) as ReadonlyArray<string>)
  return readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "own.json" && entry.name !== ".stamp")
    .map((entry) => path.relative(dist, path.join(entry.parentPath, entry.name)))
    .filter((name) => !name.startsWith("assets") || made.has(path.basename(name)))
}
