// The source files of the console, and whether the last build matches them. Plain JavaScript without dependencies, because
// the set-up runs it before every start on any version of Node.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, "../..")

/** Builds are stored here and never committed. */
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
