import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { ask } from "../harness/Public.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

const main = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.ts")
let service: TestService
let session: string
let home: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
  home = mkdtempSync(path.join(os.tmpdir(), "svc-home-"))
})
afterAll(async () => {
  await service.stop()
  rmSync(home, { recursive: true, force: true })
})

const environment = () => ({ PATH: process.env["PATH"] ?? "", XDG_CONFIG_HOME: home, HOME: home })

const svc = (...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [main, ...args], { env: environment(), stdio: ["ignore", "pipe", "pipe"] })
  let out = ""
  let errors = ""
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()))
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  return { out: () => out, errors: () => errors, ended, stop: () => child.kill() }
}

describe("svc", () => {
  it(
    "without a login says so, without a service too, and what it does not understand",
    { timeout: 30_000 },
    async () => {
      const stranger = svc("whoami", "--api", service.base)
      const nonsense = svc("tunnel", "nonsense")
      const nowhere = svc("login", "--api", "http://127.0.0.1:9")
      expect(await Promise.all([stranger.ended, nonsense.ended, nowhere.ended])).toEqual([2, 2, 3])
      expect(stranger.errors()).toContain("svc login")
    },
  )

  it("logs in by device, keeps the key for its owner only, and uses it", { timeout: 60_000 }, async () => {
    const login = svc("login", "--api", `${service.base}/`, "--name", "my laptop")
    const code = await eventually(
      async () => /approve the code (\w{4}-\w{4})/.exec(login.out())?.[1],
      (found) => found !== undefined,
    )
    await call(service.base, "POST", `/api/auth/device/${code}/approve`, { token: session })
    expect(await login.ended).toBe(0)
    const file = path.join(home, "svc", "login.json")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const who = svc("whoami", "--json")
    expect(await who.ended).toBe(0)
    expect(JSON.parse(who.out()).caller).toMatchObject({ kind: "admin_key", key_name: "my laptop" })
  })

  it("serves MCP over standard input and output", { timeout: 30_000 }, async () => {
    const { handle } = await makeIdentity(service.base, session)
    const client = new Client({ name: "test", version: "1" })
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [main, "mcp"], env: environment() }) as never,
    )
    const { tools } = await client.listTools()
    expect(tools).toHaveLength(21)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => client.callTool({ name: "svc_identity_get", arguments: { handle } })),
    )
    for (const answer of answers) expect(answer.structuredContent).toMatchObject({ handle })
    const refused = await client.callTool({ name: "svc_identity_get", arguments: { handle: "nobody-here" } })
    expect(refused).toMatchObject({ isError: true, structuredContent: { code: "not_found" } })
    await client.close()
  })

  it("gives a local port a public address", { timeout: 30_000 }, async () => {
    const { handle } = await makeIdentity(service.base, session)
    const origin = createServer((_, outgoing) => outgoing.end("from the laptop"))
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve))
    const { port } = origin.address() as AddressInfo
    const tunnel = svc("tunnel", String(port), "--handle", handle)
    await eventually(
      async () => tunnel.out(),
      (out) => out.includes(`http://${handle}.tunnel.localhost`),
    )
    expect((await ask(service.edgePort, handle, "/some/path")).body).toBe("from the laptop")
    await eventually(
      async () => tunnel.out(),
      (out) => out.includes("GET /some/path"),
    )
    tunnel.stop()
    await tunnel.ended
    origin.close()
  })

  it("logs out", { timeout: 30_000 }, async () => {
    expect(await svc("logout").ended).toBe(0)
    expect(await svc("whoami", "--api", service.base).ended).toBe(2)
  })
})
