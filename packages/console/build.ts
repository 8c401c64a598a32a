/**
 * Builds the console if its sources changed since the last build, and compresses the output. The build is moved into place
 * by one rename, so that the service never reads half a build.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { cache, dist, isBuilt, wanted } from "./sources.mjs"

const compress = (folder: string) => {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/\.(js|css|html|svg)$/.test(name)) continue
    const file = join(folder, name)
    const bytes = readFileSync(file)
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
    writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }))
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
  }
}

if (!isBuilt()) {
  const stamp = wanted()
  // A test serves the same build, so the environment of the caller does not matter.
  process.env["NODE_ENV"] = "production"
  const { build } = await import("vite")
  const fresh = join(cache, `building-${process.pid}`)
  process.env["CONSOLE_OUT"] = fresh
  await build({ configFile: join(import.meta.dirname, "vite.config.ts"), logLevel: "error" })
  compress(fresh)
  writeFileSync(join(fresh, "own.json"), JSON.stringify(readdirSync(join(fresh, "assets"))))
  // The assets of the previous build are kept for open tabs; those of older builds are removed.
  const before = join(dist, "own.json")
  if (existsSync(before)) {
    for (const name of JSON.parse(readFileSync(before, "utf8")) as ReadonlyArray<string>) {
      cpSync(join(dist, "assets", name), join(fresh, "assets", name), { force: false })
    }
  }
  writeFileSync(join(fresh, ".stamp"), stamp)
  const old = join(cache, `old-${process.pid}`)
  mkdirSync(cache, { recursive: true })
  if (existsSync(dist)) renameSync(dist, old)
  renameSync(fresh, dist)
  rmSync(old, { recursive: true, force: true })
}
