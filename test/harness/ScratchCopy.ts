/** A copy of the checkout for planted bugs. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const root = path.join(import.meta.dirname, "..", "..")

const namesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

const copyCheckout = (): string => {
  const copy = mkdtempSync(path.join(os.tmpdir(), "svc-mutants-"))
  const skipped = new Set(["node_modules", ".git", ".data"])
  const modules = (folder: string) => {
    mkdirSync(path.join(copy, folder), { recursive: true })
    for (const name of readdirSync(path.join(root, folder))) {
      const [from, to] = [path.join(root, folder, name), path.join(copy, folder, name)]
      if (name === "@svc" || name === "@agent-identity") cpSync(from, to, { recursive: true, verbatimSymlinks: true })
      else if (name !== ".cache") symlinkSync(from, to)
    }
  }
  cpSync(root, copy, {
    recursive: true,
    filter: (from) =>
      !path
        .relative(root, from)
        .split(path.sep)
        .some((part) => skipped.has(part)),
  })
  modules("node_modules")
  for (const parent of ["packages", "."])
    for (const { name } of readdirSync(path.join(root, parent), { withFileTypes: true }))
      if (!skipped.has(name) && namesIn(path.join(root, parent, name)).includes("node_modules"))
        modules(path.join(parent, name, "node_modules"))
  return copy
}

/**
 * Copies the checkout without build results and stored data, and returns the folder. External packages are links; the
 * packages of the checkout are copies. The folder is removed when the process ends.
 */
export const scratchCopy = (): string => {
  const folder = copyCheckout()
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130))
  return folder
}
