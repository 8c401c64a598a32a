// `npm pack` of a workspace whose library part is used outside this checkout: Node strips no types under node_modules, so
// the package carries JavaScript and a package.json that names it. Run as prepack; with --restore as postpack.
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"

const kept = "package.json.kept"

if (process.argv.includes("--restore")) {
  if (existsSync(kept)) renameSync(kept, "package.json")
  rmSync("dist", { recursive: true, force: true })
} else {
  execFileSync("npx", ["tsc", "-p", "tsconfig.pack.json"], { stdio: "inherit" })
  const text = readFileSync("package.json", "utf8")
  const { packed, private: _, scripts: __, ...manifest } = JSON.parse(text)
  writeFileSync(kept, text)
  const dependencies = Object.fromEntries(packed.dependencies.map((name) => [name, manifest.dependencies[name]]))
  writeFileSync("package.json", `${JSON.stringify({ ...manifest, exports: packed.exports, dependencies }, null, 2)}\n`)
}
