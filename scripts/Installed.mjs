// Which packages of the lock file are installed. Plain JavaScript without dependencies, since any Node must be able to read
// it before anything is installed.
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")

/** The file that names the lock file of the last installation, and whether it was "run" (what the service needs) or "all". */
export const stamp = join(root, "node_modules", ".setup-stamp")

export const lockHash = createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .update(`${process.platform}-${process.arch}`)
  .digest("hex")

/** Returns the last installation; `part` is undefined if there was none. */
export const installed = () => {
  const [hash, part] = existsSync(stamp) ? readFileSync(stamp, "utf8").split(" ") : []
  return { part, isCurrent: hash === lockHash }
}
