/** Runs the first calls of docs/first-calls.md and docs/webhooks.md as they are written, in one shell, against a new service. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort } from "../harness/Ports.ts"
import { startService, type OwnService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
const home = mkdtempSync(path.join(os.tmpdir(), "svc-first-calls-"))
let service: OwnService
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await service.stop()
  rmSync(home, { recursive: true, force: true })
})

const read = (document: string) => readFileSync(path.join(root, document), "utf8")

const blocks = (text: string) => [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block!)

describe.skipIf(process.platform === "win32")("The first calls", () => {
  it("run one after the other and return what the documents show", async () => {
    const receiver = await freePort()
    const calls = blocks(read("docs/first-calls.md"))
    const webhooks = blocks(read("docs/webhooks.md"))
    // The Webhook is registered before the first mail arrives. The reader runs its receiver in another terminal, so it runs in the
    // background here.
    const mail = calls.findIndex((block) => block.includes("smtp://"))
    const steps = calls
      .toSpliced(mail, 0, ...webhooks)
      .map((block) => (block.includes("createServer(") ? `${block.trimEnd()} &` : block))
    expect(steps.length).toBeGreaterThan(7)
    const script = [
      "set -eo pipefail",
      "trap 'kill $(jobs -p)' EXIT",
      // Runs the program that npm would run, without npm's setup.
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
    let [output, wrong] = ["", ""]
    shell.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
    shell.stderr.on("data", (chunk: Buffer) => (wrong += chunk.toString()))
    shell.stdin.end(script)
    try {
      const [code] = await once(shell, "exit", { signal: AbortSignal.timeout(150_000) })
      expect({ code, wrong }).toEqual({ code: 0, wrong: "" })
    } catch (error) {
      throw new Error(`${output}\n${wrong}`, { cause: error })
    } finally {
      try {
        process.kill(-shell.pid!, "SIGKILL")
      } catch {
        // The process has already ended.
      }
    }
    // The Identity, its mail, the Webhook's delivery, mail to the second Identity, the secret and the result of the tool.
    for (const part of [
      '"handle": "ada"',
      '"subject": "Hello"',
      "type: 'email.received'",
      '"address": "grace@mail.localhost"',
      "s3cret",
      '"email": "ada@mail.localhost"',
    ]) {
      expect(output).toContain(part)
    }
    expect(output).not.toContain('"agent_hint"')
  })
})
