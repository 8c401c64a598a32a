/** What `svc` sends: a server records the requests and answers like the service. */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { runSvc } from "../harness/Svc.ts"

interface Seen {
  readonly route: string
  readonly version: string | undefined
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON
  readonly body: any
}
let seen: Array<Seen> = []

const key = {
  key: "svc_admin_x",
  api_key: { id: "k", name: "ci", scopes: ["mail:read"], expires_at: null },
}
const grants = { grants: [], next_cursor: null }

/** Answers of the MCP server by method; a notification has none. */
const mcpAnswers: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: "2025-06-18" },
  ping: {},
}

const server = createServer(async (request, response) => {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  const body = text === "" ? undefined : JSON.parse(text)
  const version = request.headers["mcp-protocol-version"]
  seen.push({
    route: `${request.method} ${request.url}`,
    version: typeof version === "string" ? version : undefined,
    body,
  })
  const answer = (status: number, content?: object) =>
    response.writeHead(status, { "content-type": "application/json" }).end(content && JSON.stringify(content))
  if (request.url === "/api/mcp") {
    const result = mcpAnswers[body.method]
    return result === undefined ? answer(202) : answer(200, { jsonrpc: "2.0", id: body.id, result })
  }
  if (request.method === "DELETE") return answer(204)
  return request.method === "POST" ? answer(201, key) : answer(200, grants)
})

let api: string
let home: string
beforeAll(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), "svc-requests-"))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  rmSync(home, { recursive: true })
  await new Promise((resolve) => server.close(resolve))
})
beforeEach(() => {
  seen = []
})

const svc = (input: string, ...words: ReadonlyArray<string>) =>
  runSvc({ home, input, env: { SVC_KEY: "svc_admin_key", SVC_API_URL: api } }, ...words)

describe("svc keys create", () => {
  it.each([
    [["--expires", "2w", "--network", "10.0.0.0/8, 2001:db8::/32"], "/api/keys", { expires_in_days: 14 }],
    [["--expires", "30", "--scope", "mail:read,card:write"], "/api/keys", { expires_in_days: 30 }],
    [["--identity", "ada"], "/api/identities/ada/keys", {}],
  ])("%j asks for a key with these rights", { timeout: 60_000 }, async (flags, route, rights) => {
    const { code, out, errors } = await svc("", "keys", "create", "ci", ...flags)
    expect([code, out], errors).toEqual([0, "svc_admin_x\n"])
    const networks = flags.includes("--network") ? { networks: ["10.0.0.0/8", "2001:db8::/32"] } : {}
    const scopes = flags.includes("--scope") ? { scopes: ["mail:read", "card:write"] } : {}
    expect(seen).toEqual([
      { route: `POST ${route}`, version: undefined, body: { name: "ci", ...rights, ...networks, ...scopes } },
    ])
  })

  it("asks for nothing if the lifetime is not 1 to 365 days", { timeout: 60_000 }, async () => {
    for (const lifetime of ["0", "366", "53w", "2y"])
      expect((await svc("", "keys", "create", "ci", "--expires", lifetime)).code, lifetime).toBe(2)
    expect(seen).toEqual([])
  })
})

describe("svc grants revoke", () => {
  it("ends the access of the one app that it names", { timeout: 60_000 }, async () => {
    expect((await svc("", "grants", "revoke", "a/b")).code).toBe(0)
    expect(seen.map(({ route }) => route)).toEqual(["DELETE /api/grants/a%2Fb"])
  })
})

describe("svc mcp", () => {
  it(
    "names the negotiated revision in later messages, and prints no answer to a notification",
    { timeout: 60_000 },
    async () => {
      const messages = [
        { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18" } },
        { jsonrpc: "2.0", method: "notifications/initialized" },
        { jsonrpc: "2.0", id: 2, method: "ping" },
      ]
      const { code, out } = await svc(messages.map((message) => `${JSON.stringify(message)}\n`).join(""), "mcp")
      expect(code).toBe(0)
      const printed = out.trim().split("\n")
      expect(printed.map((line) => JSON.parse(line).id).toSorted()).toEqual([1, 2])
      // Messages after the first are sent concurrently.
      expect(seen.map(({ body, version }) => `${body.method} ${version}`).toSorted()).toEqual([
        "initialize undefined",
        "notifications/initialized 2025-06-18",
        "ping 2025-06-18",
      ])
    },
  )
})

describe("An address of the API", () => {
  it.each(["http://user@127.0.0.1", "http://:secret@127.0.0.1", "http://127.0.0.1/?key=secret", "http://127.0.0.1/#a"])(
    "with a secret is refused without repeating it: %s",
    { timeout: 60_000 },
    async (address) => {
      const { code, errors } = await runSvc({ home, env: { SVC_KEY: "k" } }, "whoami", "--api", address)
      expect(code).toBe(2)
      expect(errors).toContain("must not contain")
      expect(errors).not.toContain("secret")
    },
  )
})
