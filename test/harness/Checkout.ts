/** Checks out an earlier commit of this repository next to it, with the packages that are installed here. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const root = path.join(import.meta.dirname, "..", "..")

const git = (...words: ReadonlyArray<string>) => execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim()

/** Returns the latest release, or an earlier commit before the first release. */
export const lastRelease = (): string => {
  try {
    return execFileSync("git", ["describe", "--tags", "--abbrev=0", "HEAD~1"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim()
  } catch {
    return git("rev-parse", "--short", "HEAD~10")
  }
}

export const checkOut = (revision: string) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "svc-checkout-"))
  const archive = execFileSync("git", ["archive", revision], { cwd: root, maxBuffer: 1024 ** 3 })
  execFileSync("tar", ["-x", "-C", folder], { input: archive })
  const modules = path.join(folder, "node_modules")
  mkdirSync(path.join(modules, "@svc"), { recursive: true })
  for (const name of readdirSync(path.join(root, "node_modules"))) {
    if (name !== "@svc" && name !== ".cache")
      symlinkSync(path.join(root, "node_modules", name), path.join(modules, name))
  }
  for (const name of readdirSync(path.join(folder, "packages"))) {
    symlinkSync(path.join(folder, "packages", name), path.join(modules, "@svc", name))
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
