/**
 * Builds the documentation site if a page or the theme changed since the last build. `node packages/site/build.ts FOLDER
 * ADDRESS` also copies it with the pages as Markdown to a folder, which any web server can serve at `/docs/`. `ADDRESS` is the
 * service that its navigation leads to.
 */
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { service } from "./.vitepress/home.ts"
import { cache, dist, isBuilt, wanted } from "./sources.mjs"

const started = process.cwd()
if (!isBuilt()) {
  const stamp = wanted()
  // The bundler reads the tsconfig.json of its working directory.
  process.chdir(import.meta.dirname)
  const { build } = await import("vitepress")
  const fresh = join(cache, `building-${process.pid}`)
  await build(import.meta.dirname, { outDir: fresh })
  writeFileSync(join(fresh, ".stamp"), stamp)
  const old = join(cache, `old-${process.pid}`)
  mkdirSync(cache, { recursive: true })
  if (existsSync(dist)) renameSync(dist, old)
  renameSync(fresh, dist)
  rmSync(old, { recursive: true, force: true })
}

const [argument, address = "http://localhost:8080"] = process.argv.slice(2)
if (argument !== undefined) {
  const folder = resolve(started, argument)
  cpSync(dist, folder, { recursive: true })
  for (const file of globSync("**/*.{html,js}", { cwd: folder }).map((one) => join(folder, one))) {
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(service, address))
  }
  const docs = join(import.meta.dirname, "../../docs")
  for (const file of globSync("**/*.md", { cwd: docs })) cpSync(join(docs, file), join(folder, file))
}
