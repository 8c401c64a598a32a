// Locates the bundle of the `svc` command: the same modules in few files, because finding about 1,500 files takes most
// of a start. `scripts/bundle.ts` builds it before a start, and it is used while no source has changed. Plain
// JavaScript without dependencies, since the set-up runs it before every start with any Node.
import { existsSync, readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, "..", "..", "..")

/**
 * Folder of the bundles. Each bundle has a subfolder at the same depth as the modules of a package; the stamp names the
 * latest bundle and its sources.
 */
export const directory = join(root, "node_modules", ".cache", "bundle")
export const stampFile = join(directory, "stamp.json")

/** Entry modules of processes and threads, by their names in the bundle. */
export const entries = {
  svc: join(here, "svc.ts"),
  Worker: join(root, "packages", "mail-gateway", "src", "mail", "judging", "Worker.ts"),
  ComposingWorker: join(root, "packages", "mail-gateway", "src", "mail", "composing", "ComposingWorker.ts"),
}

/** Returns a mark that changes whenever the file changes. */
export const markOf = (source) => {
  const { size, mtimeMs } = statSync(join(root, source))
  return `${size}/${mtimeMs}`
}

/** Returns the URL of the bundled command, or undefined if there is no bundle or a source has changed. */
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
