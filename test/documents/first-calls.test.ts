/** The README's first calls, as they stand there, typed into a shell beside a service that has just started. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort } from "../harness/Ports.ts"
import { startService, type TestService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
const home = mkdtempSync(path.join(os.tmpdir(), "svc-first-calls-"))
let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await service.stop()
  rmSync(home, { recursive: true, force: true })
})

const section = (heading: string) =>
  readFileSync(path.join(root, "README.md"), "utf8").split(`\n## ${heading}\n`)[1]!.split("\n## ")[0]!

const blocks = (text: string) => [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block!)

describe.skipIf(process.platform === "win32")("the README", () => {
  it("has first calls that run one after the other, and answer what it says", { timeout: 180_000 }, async () => {
    const receiver = await freePort()
    const steps = [...blocks(section("First calls")), ...blocks(section("MCP"))].map((block) =>
      // The third terminal.
      block.includes("createServer(") ? `${block.trimEnd()} &` : block,
    )
    expect(steps.length).toBeGreaterThan(7)
    const script = [
      "set -eo pipefail",
      "trap 'kill $(jobs -p)' EXIT",
      // What npm would run, without its set-up.
      `npm() { [ "$1 $2 $3 $4" = "run -s svc --" ] || return 1; shift 4; "${process.execPath}" "${path.join(root, "packages", "cli", "src", "main.mjs")}" "$@"; }`,
      ...steps,
    ]
      .join("\n")
      .replaceAll("localhost:8080", `localhost:${service.httpPort}`)
      .replaceAll("127.0.0.1:2525", `127.0.0.1:${service.smtpPort}`)
      .replaceAll("9999", String(receiver))
    const env = {
      PATH: `${path.dirname(process.execPath)}:${process.env["PATH"]}`,
      HOME: home,
      SVC_API_URL: service.base,
    }
    const shell = spawn("bash", { env, detached: true, stdio: ["pipe", "pipe", "pipe"] })
    let [said, wrong] = ["", ""]
    shell.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()))
    shell.stderr.on("data", (chunk: Buffer) => (wrong += chunk.toString()))
    shell.stdin.end(script)
    try {
      const [code] = await once(shell, "exit", { signal: AbortSignal.timeout(150_000) })
      expect({ code, wrong }).toEqual({ code: 0, wrong: "" })
    } catch (error) {
      throw new Error(`${said}\n${wrong}`, { cause: error })
    } finally {
      try {
        process.kill(-shell.pid!, "SIGKILL")
      } catch {
        // It has ended.
      }
    }
    // An Identity, its mail with the receiver told of it, what another was written, its secret, a tool's answer.
    for (const part of [
      '"handle": "ada"',
      '"subject": "Hello"',
      "type: 'email.received'",
      '"address": "grace@mail.localhost"',
      "s3cret",
      '"email": "ada@mail.localhost"',
    ]) {
      expect(said).toContain(part)
    }
    expect(said).not.toContain('"agent_hint"')
  })
})
