/** The account that the server runs as, and the location of its data. PostgreSQL refuses to run as root. */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Account, windows } from "./Binaries.ts"

/** Returns the account for the server if this process is root: the owner of the existing data, otherwise `postgres`, otherwise `nobody`. */
export const unprivileged = (directory: string): Account => {
  if (windows || process.getuid!() !== 0) return {}
  for (const known of [directory, process.cwd()]) {
    const stat = fs.statSync(known, { throwIfNoEntry: false })
    if (stat !== undefined && stat.uid !== 0) return { uid: stat.uid, gid: stat.gid }
  }
  const accounts = fs
    .readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
  const row = accounts.find(([name]) => name === "postgres") ?? accounts.find(([name]) => name === "nobody")
  if (row === undefined) {
    throw new Error(
      "This is root, and there is no account postgres or nobody to run PostgreSQL as. Set DATABASE_URL to use a server of your own.",
    )
  }
  return { uid: Number(row[2]), gid: Number(row[3]) }
}

const reaches = (account: Account, directory: string) =>
  account.uid === undefined ||
  spawnSync("/bin/sh", ["-c", 'cd "$1"', "sh", directory], { ...account, cwd: "/", stdio: "ignore" }).status === 0

/**
 * Returns the server's home below `directory`. If the account cannot access that (a project below /root), the home is a folder in /var/lib
 * that is named after the directory, so that the next start finds it and two projects never share one.
 */
export const home = (directory: string, account: Account): string => {
  fs.mkdirSync(directory, { recursive: true })
  if (reaches(account, directory)) return path.join(directory, "pg18")
  const name = createHash("sha256").update(fs.realpathSync(directory)).digest("hex").slice(0, 12)
  return path.join("/var/lib", `svc-postgres-${name}`, "pg18")
}
