/** The official conformance suite of MCP, as far as it applies to a server with tools only. */
import { execFile } from "node:child_process"
import { createServer, request as httpRequest, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import * as path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let proxy: Server
let proxyUrl: string

/** The conformance suite cannot send a credential; this proxy adds one. */
const credentialProxy = (token: () => string) =>
  createServer((incoming, outgoing) => {
    const target = new URL(service.base)
    const upstream = httpRequest(
      {
        host: "127.0.0.1",
        port: target.port,
        path: incoming.url,
        method: incoming.method,
        headers: { ...incoming.headers, authorization: `Bearer ${token()}` },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      },
    )
    incoming.pipe(upstream)
  })

beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  proxy = credentialProxy(() => session)
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/api/mcp`
})
afterAll(() => void proxy.close())

describe("Conformance suite", () => {
  const run = promisify(execFile)
  const cli = path.join(
    import.meta.dirname,
    "..",
    "..",
    "node_modules",
    "@modelcontextprotocol",
    "conformance",
    "dist",
    "index.js",
  )
  const scenario = async (name: string, version?: string) => {
    const { stdout } = await run(process.execPath, [
      cli,
      "server",
      "--url",
      proxyUrl,
      "--scenario",
      name,
      ...(version === undefined ? [] : ["--spec-version", version]),
    ]).catch((error: { stdout: string; stderr: string }) => ({ stdout: `${error.stdout}\n${error.stderr}` }))
    return stdout
  }
  it.each([
    ["http-header-validation", "2026-07-28"],
    ["tools-list", "2026-07-28"],
    ["tools-list", "2025-11-25"],
    ["dns-rebinding-protection", "2025-11-25"],
    ["server-initialize", "2025-11-25"],
    ["ping", "2025-11-25"],
  ])("%s (%s)", async (name, version) => {
    const output = await scenario(name, version)
    expect(output).toMatch(/Passed: (\d+)\/\1\b/)
    expect(output).toMatch(/\b0 failed/)
  })

  /** Checks that need the suite's own fixture tools. */
  const notOurs = [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
  ]
  it.each(["server-stateless", "caching"])("%s, as far as it applies to tools", async (name) => {
    const output = await scenario(name, "2026-07-28")
    const failed = [...output.matchAll(/\[(sep-[\w-]+)\s*\][^\n]*FAILURE/g)].map(([, check]) => check!)
    expect(output).toMatch(/Passed: \d+\/\d+/)
    expect(failed.filter((check) => !notOurs.includes(check))).toEqual([])
  })
})
