/**
 * Installs the network's servers: three hundred packages that only these tests use and that are therefore not part of the workspace. The
 * first use installs the versions of the lock file in `packages/` into a cache folder that is named after the hash of that file. Large
 * packages that the servers never load are left out (`packages/unused`).
 */
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { existsSync } from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"

const files = [
  "package.json",
  "package-lock.json",
  ".npmrc",
  ...["better-sqlite3", "unused"].flatMap((name) => [`${name}/package.json`, `${name}/index.cjs`]),
  "unused/nothing.cjs",
]
const packages = path.join(import.meta.dirname, "packages")
const cache = path.join(import.meta.dirname, "..", "..", "..", "node_modules", ".cache")

/** The URL of the folder with the network's packages, or why they are missing. */
export type Installed = { readonly packages: string } | { readonly missing: string }

const wanted = async () => {
  const hash = createHash("sha256")
  for (const file of files) hash.update(await readFile(path.join(packages, file)))
  return `bluesky-network-${hash.digest("hex").slice(0, 16)}`
}

/**
 * Removes the settings of a surrounding npm run, such as its prefix and workspace. Settings for the registry, proxies and certificates
 * stay.
 */
export const environmentOf = (around: NodeJS.ProcessEnv): NodeJS.ProcessEnv => {
  const way = /^npm_config_(?:registry|cache|ca|cafile|cert|key|strict_ssl|userconfig|.*proxy)$/i
  return Object.fromEntries(Object.entries(around).filter(([name]) => !/^npm_/i.test(name) || way.test(name)))
}

/** Runs the npm that runs the tests. Install scripts are disabled; no package needs one. */
const npm = (folder: string) =>
  new Promise<string | undefined>((resolve) => {
    const own = process.env["npm_execpath"]
    const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder]
    const options = {
      cwd: folder,
      env: environmentOf(process.env),
      stdio: ["ignore", "ignore", "pipe"] as ["ignore", "ignore", "pipe"],
    }
    const child =
      own === undefined
        ? spawn("npm", args, { ...options, shell: process.platform === "win32" })
        : spawn(process.execPath, [own, ...args], options)
    let output = ""
    child.stderr.on("data", (chunk: Buffer) => (output = (output + chunk.toString()).slice(-2_000)))
    child.on("error", (error) => resolve(error.message))
    child.on("exit", (code) => resolve(code === 0 ? undefined : output || `npm ended with ${code}`))
  })

/** Runs with a lock file, since another test process may install at the same time. A lock of a process that has ended is ignored. */
const locked = async <A>(lock: string, run: () => Promise<A>): Promise<A> => {
  for (;;) {
    try {
      await writeFile(lock, String(process.pid), { flag: "wx" })
      break
    } catch {
      const holder = Number(await readFile(lock, "utf8").catch(() => "0"))
      if (holder > 0 && !isAlive(holder)) await rm(lock, { force: true })
      else await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  try {
    return await run()
  } finally {
    await rm(lock, { force: true })
  }
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const install = async (folder: string): Promise<string | undefined> => {
  // Removes folders of former lock files and of interrupted installations.
  for (const old of await readdir(cache)) {
    if (old.startsWith("bluesky-network-") && !old.endsWith(".lock")) {
      await rm(path.join(cache, old), { recursive: true, force: true })
    }
  }
  const made = `${folder}.partial`
  for (const file of files) {
    await mkdir(path.dirname(path.join(made, file)), { recursive: true })
    await cp(path.join(packages, file), path.join(made, file))
  }
  const failed = await npm(made)
  if (failed === undefined) await rename(made, folder)
  return failed
}

/** Installs the packages if they are missing. If that fails, the tests are skipped and state the reason. */
export const installed = async (): Promise<Installed> => {
  const folder = path.join(cache, await wanted())
  await mkdir(cache, { recursive: true })
  const failed = await locked(path.join(cache, "bluesky-network.lock"), async () =>
    existsSync(folder) ? undefined : await install(folder),
  )
  if (failed !== undefined) {
    const missing = `The Bluesky network could not be installed, its tests are skipped: ${failed.trim()}`
    console.warn(missing)
    return { missing }
  }
  return { packages: pathToFileURL(path.join(folder, "node_modules")).href }
}
