// A build of a package: where it is stored, and whether the last one matches the sources. Plain JavaScript without
// dependencies, because the set-up runs it before every start on any version of Node.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")

const files = (path) =>
  statSync(path).isDirectory()
    ? readdirSync(path)
        .sort()
        .flatMap((name) => (name === "node_modules" ? [] : files(join(path, name))))
    : [path]

/** Returns the build with this name of the files and folders `sources`. */
export const buildOf = (name, sources) => {
  /** Builds are stored here and never committed. */
  const cache = join(root, "node_modules/.cache", name)
  const dist = join(cache, "dist")
  const stamp = join(dist, ".stamp")
  /** Returns a hash of all sources, which changes with any byte of them. */
  const wanted = () => {
    const hash = createHash("sha256")
    for (const file of [...sources.filter(existsSync).flatMap(files), join(root, "package-lock.json")]) {
      hash.update(relative(root, file)).update(readFileSync(file))
    }
    return hash.digest("hex")
  }
  return { cache, dist, wanted, isBuilt: () => existsSync(stamp) && readFileSync(stamp, "utf8") === wanted() }
}
