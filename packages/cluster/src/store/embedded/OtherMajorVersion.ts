/**
 * The database of another major version of PostgreSQL beside ours: folders are named by the version (`pg18`), and its data is
 * of no use to another one's binaries.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { hasData } from "./Server.ts"

export interface OtherMajorVersion {
  readonly home: string
  readonly major: number
}

/** The latest of them; undefined where there is none. */
export const find = (home: string): OtherMajorVersion | undefined => {
  const [own, folder] = [path.basename(home), path.dirname(home)]
  if (!fs.existsSync(folder)) return undefined
  return fs
    .readdirSync(folder)
    .filter((name) => /^pg\d+$/.test(name) && name !== own)
    .map((name) => ({ home: path.join(folder, name), major: Number(name.slice(2)) }))
    .filter((one) => hasData(one.home))
    .toSorted((one, other) => other.major - one.major)[0]
}

/** A start beside the data of another major version alone would serve an empty database in its place. */
export const refuse = (home: string): void => {
  if (hasData(home)) return
  const former = find(home)
  if (former === undefined) return
  const ours = Number(path.basename(home).slice(2))
  throw new Error(
    former.major < ours
      ? `${path.dirname(home)} holds a database of PostgreSQL ${former.major}, and this version brings ${ours}: stop the service, and run \`svc upgrade-store\` once. (Or take a backup with the version that made it, move ${path.basename(former.home)} away, and restore it with this one: svc backup, svc restore.)`
      : `${path.dirname(home)} holds a database of PostgreSQL ${former.major}, and this version brings ${ours}, which cannot read it: run the version that made it.`,
  )
}
