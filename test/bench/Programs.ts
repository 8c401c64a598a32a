/** Optional programs of the machine. */
import { accessSync, constants } from "node:fs"
import * as path from "node:path"

export const programs = (name: string): string | undefined => {
  for (const directory of [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin"]) {
    try {
      accessSync(path.join(directory, name), constants.X_OK)
      return path.join(directory, name)
    } catch {
      // The program is not in this folder.
    }
  }
  return undefined
}
