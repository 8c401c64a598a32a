/** `svc` when its output cannot be written: a full disk, a closed pipe. */
import { spawn, spawnSync } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const main = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.mjs")
const server = createServer((_, response) =>
  response.writeHead(200, { "content-type": "application/json" }).end('{"identities":[],"next_cursor":null}'),
)
let env: Record<string, string>
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  env = { PATH: process.env["PATH"] ?? "", SVC_API_URL: `http://127.0.0.1:${port}`, SVC_KEY: "svc_admin_x" }
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

type End = { readonly code: number | null; readonly signal: string | null; readonly said: string }

const ended = (child: ReturnType<typeof spawn>) =>
  new Promise<End>((resolve) => {
    let errors = ""
    child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()))
    child.once("close", (code, signal) => resolve({ code, signal, said: errors }))
  })

const onFullDisk = async (...args: ReadonlyArray<string>) => {
  const full = openSync("/dev/full", "w")
  try {
    return await ended(spawn(process.execPath, args, { env, stdio: ["ignore", full, "pipe"] }))
  } finally {
    closeSync(full)
  }
}

const commands = [
  ["identity", "list"],
  ["dns", "--address", "203.0.113.7"],
]

describe.skipIf(process.platform !== "linux")("a command whose output cannot be written", () => {
  it.each(commands)("fails with one sentence and an exit code on a full disk: svc %s %s", async (...command) => {
    expect(await onFullDisk(main, ...command)).toEqual({
      code: 1,
      signal: null,
      said: "svc: the output cannot be written: the disk is full. The command may have taken effect.\n",
    })
  })

  it.each(commands)(
    "fails with one sentence and an exit code if its reader has gone: svc %s %s",
    async (...command) => {
      const child = spawn(process.execPath, [main, ...command], { env, stdio: ["ignore", "pipe", "pipe"] })
      child.stdout.destroy()
      expect(await ended(child)).toEqual({
        code: 1,
        signal: null,
        said: "svc: the output cannot be written: the reader has closed it. The command may have taken effect.\n",
      })
    },
  )

  it("keeps the exit code if the reason cannot be written", () => {
    const full = openSync("/dev/full", "w")
    const { status } = spawnSync(process.execPath, [main, "whoami"], {
      env: { ...env, SVC_KEY: "a b" },
      stdio: ["ignore", "ignore", full],
    })
    closeSync(full)
    expect(status).toBe(2)
  })

  it("keeps running if it is a service, which does not need its log", async () => {
    const program = `
      import { guardOutput } from "@svc/cli/Output"
      import { requestLine, writesAs } from "@svc/cli/Logging"
      guardOutput()
      writesAs(["api"])
      const line = requestLine("Info")
      const entry = { method: "GET", route: "/", status: 200, duration_ms: 1, request_id: "req_1", credential: null }
      const twice = setInterval(() => line(entry), 10)
      setTimeout(() => (clearInterval(twice), process.exit(7)), 300)
    `
    expect(await onFullDisk("--input-type=module", "-e", program)).toEqual({
      code: 7,
      signal: null,
      said: "svc: the log cannot be written: the disk is full. The service continues without it.\n",
    })
  })
})
