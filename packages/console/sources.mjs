// What the console is made of, and whether what was built is made of that. Plain JavaScript without dependencies, since the
// set-up asks it before every start, on whatever Node the machine has.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, "../..")

/** Where builds stand; nothing built is committed. */
export const cache = join(root, "node_modules/.cache/console")
export const dist = join(cache, "dist")
const stamp = join(dist, ".stamp")

const files = (path) =>
  statSync(path).isDirectory()
    ? readdirSync(path)
        .sort()
        .flatMap((name) => (name === "node_modules" ? [] : files(join(path, name))))
    : [path]

/** Modules of the contract that the console loads into the browser. */
export const shared = [
  "Phrases.ts",
  "account/Scope.ts",
  "audit/AuditSentences.ts",
  "connectors/PlatformNames.ts",
  "events/EventSentences.ts",
].map((name) => join(root, "packages", "domain", "src", name))

/** Returns a hash of all sources, which changes with any byte of them. */
export const wanted = () => {
  const hash = createHash("sha256")
  for (const file of [...files(here), ...shared.filter(existsSync), join(root, "package-lock.json")]) {
    hash.update(relative(root, file)).update(readFileSync(file))
  }
  return hash.digest("hex")
}

export const isBuilt = () => existsSync(stamp) && readFileSync(stamp, "utf8") === wanted()
