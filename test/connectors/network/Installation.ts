/**
 * Brings the network's servers to this machine: three hundred packages that only these tests want, so they are no part of
 * the workspace. They are installed on first use, as the lock file in `packages/` has them, into a folder of the
 * cache that is named after what is in it. Large ones that the servers never come to are left out (`packages/unused`).
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

/** The URL of the folder that the network's packages are in, or why they are not. */
export type Installed = { readonly packages: string } | { readonly missing: string }

const wanted = async () => {
  const hash = createHash("sha256")
  for (const file of files) hash.update(await readFile(path.join(packages, file)))
  return `bluesky-network-${hash.digest("hex").slice(0, 16)}`
}

/**
 * What an npm around us was told (its prefix, its workspace) is not meant for another folder; the way to its registry is, and
 * the authority that vouches for it.
 */
export const environmentOf = (around: NodeJS.ProcessEnv): NodeJS.ProcessEnv => {
  const way = /^npm_config_(?:registry|cache|ca|cafile|cert|key|strict_ssl|userconfig|.*proxy)$/i
  return Object.fromEntries(Object.entries(around).filter(([name]) => !/^npm_/i.test(name) || way.test(name)))
}

/** npm itself, as whoever runs the tests has it. No install script runs: nothing here needs one. */
const npm = (folder: string) =>
  new Promise<string | undefined>((resolve) => {
    const own = process.env["npm_execpath"]
    const told = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder]
    const options = {
      cwd: folder,
      env: environmentOf(process.env),
      stdio: ["ignore", "ignore", "pipe"] as ["ignore", "ignore", "pipe"],
    }
    const child =
      own === undefined
        ? spawn("npm", told, { ...options, shell: process.platform === "win32" })
        : spawn(process.execPath, [own, ...told], options)
    let said = ""
    child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2_000)))
    child.on("error", (error) => resolve(error.message))
    child.on("exit", (code) => resolve(code === 0 ? undefined : said || `npm ended with ${code}`))
  })

/** Another test process may be at it: whoever comes second waits, unless the first one is gone. */
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
  // Of a lock file that has changed since, and of installs that were cut short.
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

/** Installs what is missing. Tests without it are skipped, and say why. */
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
