// The bundle of the `svc` command: the same modules in few files, since finding some 1,500 files is most of a start.
// `scripts/bundle.ts` makes it before a start; it serves as long as every source is what it was made of. Plain JavaScript
// without dependencies, since the set-up asks it before every start, on whatever Node the machine has.
import { existsSync, readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, "..", "..", "..")

/**
 * Where bundles stand, each in a folder of its own, which is as far below the root as the modules of a package's folders
 * are; the stamp names the newest and what it was made of.
 */
export const directory = join(root, "node_modules", ".cache", "bundle")
export const stampFile = join(directory, "stamp.json")

/** Modules that a process or a thread begins with; in the bundle they have these names. */
export const entries = {
  svc: join(here, "svc.ts"),
  Worker: join(root, "packages", "mail-gateway", "src", "mail", "judging", "Worker.ts"),
  ComposingWorker: join(root, "packages", "mail-gateway", "src", "mail", "composing", "ComposingWorker.ts"),
}

/** Changes whenever the file does. */
export const markOf = (source) => {
  const { size, mtimeMs } = statSync(join(root, source))
  return `${size}/${mtimeMs}`
}

/** The URL of the command's bundle; undefined where there is none, or a source changed since. */
export const current = () => {
  try {
    const { folder, sources } = JSON.parse(readFileSync(stampFile, "utf8"))
    const command = join(directory, folder, "svc.mjs")
    const isCurrent = existsSync(command) && sources.every(([source, mark]) => markOf(source) === mark)
    return isCurrent ? pathToFileURL(command).href : undefined
  } catch {
    return undefined
  }
}
