/**
 * Tests how `node packages/cli/src/main.mjs` finds a suitable Node, in a copy of the launcher with a command of the
 * test.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { oldNode } from "../harness/Packages.ts"
import { program } from "../harness/Svc.ts"

/** Prints its arguments and the input line, then waits for SIGTERM and exits with 3. */
const command = `
const [input] = await new Promise((resolve) => process.stdin.once("data", (chunk) => resolve(String(chunk).split("\\n"))))
process.on("SIGTERM", () => process.exit(3))
process.stdout.write(JSON.stringify({ node: process.execPath, words: process.argv.slice(2), input }) + "\\n")
if (process.argv.includes("--wait")) setInterval(() => {}, 1000)
else process.exit(5)
`

/** Installs the Node of this test run, as the set-up installs one from npm. */
const setup = `
import { mkdirSync, symlinkSync } from "node:fs"
const bin = new URL("../node_modules/node-" + process.platform + "-" + process.arch + "/bin/", import.meta.url)
mkdirSync(bin, { recursive: true })
symlinkSync(${JSON.stringify(process.execPath)}, new URL("node", bin))
console.log("installing with " + process.argv[2])
`

const root = path.join(import.meta.dirname, "..", "..")

let copy: string
beforeEach(() => {
  copy = mkdtempSync(path.join(tmpdir(), "svc-launcher-"))
  const source = path.join(copy, "packages", "cli", "src")
  mkdirSync(path.join(copy, "scripts"))
  cpSync(path.dirname(program), source, { recursive: true, filter: (file) => !file.endsWith(".ts") })
  writeFileSync(path.join(source, "svc.ts"), command)
  writeFileSync(path.join(copy, "scripts", "setup.mjs"), setup)
})
afterEach(() => rmSync(copy, { recursive: true, force: true }))

const main = () => path.join(copy, "packages", "cli", "src", "main.mjs")
const run = (node: string, ...words: ReadonlyArray<string>) =>
  spawnSync(node, [main(), ...words], { input: "hello\n", encoding: "utf8" })

describe("the launcher of a checkout", () => {
  it("runs the command with a supported Node", () => {
    const { status, stdout } = run(process.execPath, "whoami")
    expect([status, JSON.parse(stdout)]).toEqual([5, { node: process.execPath, words: ["whoami"], input: "hello" }])
  })

  it.skipIf(oldNode === undefined)("installs and starts the right Node when started with Node 20", () => {
    const first = run(oldNode!, "mcp", "--api", "http://localhost:1")
    expect(first.stderr).toBe("installing with run\n")
    expect(first.status).toBe(5)
    expect(JSON.parse(first.stdout)).toMatchObject({ words: ["mcp", "--api", "http://localhost:1"], input: "hello" })
    const second = run(oldNode!, "whoami")
    expect([second.status, second.stderr, JSON.parse(second.stdout).words]).toEqual([5, "", ["whoami"]])
  })

  it("sets the checkout up again after an update, which may need packages that are not installed", () => {
    const lock = path.join(copy, "package-lock.json")
    cpSync(path.join(root, "scripts", "Installed.mjs"), path.join(copy, "scripts", "Installed.mjs"))
    writeFileSync(lock, "{}")
    mkdirSync(path.join(copy, "node_modules"), { recursive: true })
    const stamp = path.join(copy, "node_modules", ".setup-stamp")
    // Packages that somebody installed without the set-up are not touched.
    expect(run(process.execPath, "whoami").stderr).toBe("")
    writeFileSync(stamp, "an-older-lock-file all")
    expect(run(process.execPath, "whoami")).toMatchObject({ status: 5, stderr: "installing with run\n" })
  })

  it.skipIf(oldNode === undefined)("passes SIGTERM on and exits with the command's exit code", async () => {
    run(oldNode!)
    const child = spawn(oldNode!, [main(), "--wait"], { stdio: "pipe" })
    child.stdin.write("hello\n")
    await once(child.stdout, "data")
    child.kill("SIGTERM")
    expect(await once(child, "exit")).toEqual([3, null])
  })

  it.skipIf(oldNode === undefined)("explains in one sentence what to do if no Node can be installed", () => {
    writeFileSync(path.join(copy, "scripts", "setup.mjs"), "process.exit(1)")
    const { status, stderr } = run(oldNode!, "whoami")
    expect(status).toBe(1)
    expect(stderr).toMatch(
      /^svc: Node 24 or later is required, but this is v2\d\.[\d.]+: run `npm start` once[^\n]*\n$/,
    )
  })
})
