/**
 * Makes the bundle of the `svc` command (`packages/cli/src/Bundle.mjs`) if a source changed since the last one. Without it
 * everything runs from the sources.
 */
import { globSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { current, directory, entries, markOf, type Stamp, stampFile } from "../packages/cli/src/Bundle.mjs"
import { bundle, root } from "./Bundling.ts"

/** Number of bundles to keep. A running service still loads parts of its bundle. */
const kept = 4

const make = async () => {
  const folder = `${Date.now().toString(36)}-${process.pid}`
  await bundle({ entries, folder: path.join(directory, folder) })
  // A change of the installed packages shows in the lock file.
  const sources = [
    ...globSync("packages/*/{src/**/*.{ts,mjs},package.json}", { cwd: root }),
    "package-lock.json",
    "scripts/bundle.ts",
    "scripts/Bundling.ts",
  ].sort()
  const stamp: Stamp = { folder, sources: sources.map((source) => [source, markOf(source)]) }
  const fresh = `${stampFile}.${process.pid}`
  writeFileSync(fresh, JSON.stringify(stamp))
  renameSync(fresh, stampFile)
}

const removeOld = () => {
  const folders = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => path.join(directory, name))
    .sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)
  for (const old of folders.slice(kept)) rmSync(old, { recursive: true, force: true })
}

if (current() === undefined) {
  mkdirSync(directory, { recursive: true })
  await make()
  removeOld()
}
