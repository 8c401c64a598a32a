/**
 * The bundle of the `svc` command: the same modules in few files, since finding some 1,500 files is most of a start.
 * `scripts/bundle.ts` makes it before a start; it serves as long as every source is what it was made of.
 */
import { readFileSync, statSync } from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"

const root = path.join(import.meta.dirname, "..", "..", "..")

/** What was bundled: paths below the root, with their size and time. */
export interface Stamp {
  /** The folder of the bundle, below {@link directory}. */
  readonly folder: string
  readonly sources: ReadonlyArray<readonly [path: string, mark: string]>
}

export const directory = path.join(root, "node_modules", ".cache", "bundle")
export const stampFile = path.join(directory, "stamp.json")
/** Modules that a process or a thread begins with; in the bundle they have these names. */
export const entries = {
  svc: path.join(import.meta.dirname, "svc.ts"),
  Worker: path.join(root, "packages", "mail-gateway", "src", "mail", "judging", "Worker.ts"),
}

/** Changes whenever the file does. */
export const markOf = (source: string): string => {
  const { size, mtimeMs } = statSync(path.join(root, source))
  return `${size}/${mtimeMs}`
}

/** The URL of the command's bundle; undefined where there is none, or a source changed since. */
export const current = (): string | undefined => {
  try {
    const stamp: Stamp = JSON.parse(readFileSync(stampFile, "utf8"))
    const isCurrent = stamp.sources.every(([source, mark]) => markOf(source) === mark)
    return isCurrent ? pathToFileURL(path.join(directory, stamp.folder, "svc.mjs")).href : undefined
  } catch {
    return undefined
  }
}
