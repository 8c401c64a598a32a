/** `svc` with another server at the API's address: a captive portal, a proxy, a server of another kind. */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { runHere } from "../harness/Commands.ts"

const answers: Readonly<Record<string, (response: ServerResponse) => unknown>> = {
  page: (response) =>
    response.writeHead(200, { "content-type": "text/html" }).end("<html>Sign in to the network</html>"),
  nothing: (response) => response.writeHead(200).end(),
  null: (response) => response.writeHead(200, { "content-type": "application/json" }).end("null"),
  list: (response) => response.writeHead(200, { "content-type": "application/json" }).end("[]"),
  "an answer that breaks off": (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "1000" })
    response.write('{"identities":[]', () => response.destroy())
  },
  "a redirect": (response) => response.writeHead(302, { location: "/welcome" }).end(),
}
let requests = 0
const server = createServer((request, response) => {
  requests++
  const [, kind = "", ...rest] = decodeURIComponent(request.url ?? "").split("/")
  if (rest[0] === undefined) return void response.writeHead(200, { "content-type": "application/json" }).end("{}")
  if (kind === "other") return void response.writeHead(200, { "content-type": "application/json" }).end('{"a":1}')
  if (kind === "device") {
    const device = {
      device_code: "code",
      user_code: "\u001b[2JCODE",
      verification_uri: "http://a/\u009b2J",
      verification_uri_complete: "http://a/\u001b]0;owned\u0007",
      expires_at: "2026-11-23T00:00:00.000Z",
      interval_seconds: 1,
    }
    const polled = { title: "No", detail: "no", code: "device_code_denied", agent_hint: "stop" }
    const isPoll = request.url!.endsWith("/token")
    const type = isPoll ? "application/problem+json" : "application/json"
    return void response
      .writeHead(isPoll ? 400 : 201, { "content-type": type })
      .end(JSON.stringify(isPoll ? polled : device))
  }
  if (kind === "names") {
    return void response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ identities: [{ "\u001b[2Jkey": 1, handle: "\u009b2Jada" }], next_cursor: "\u001b[2J" }))
  }
  if (kind === "orders") {
    const problem = {
      title: "\u001b]0;owned\u0007No",
      detail: "Not\u001b[2J\n\nso",
      code: "conflict",
      agent_hint: "stop",
    }
    return void response.writeHead(409, { "content-type": "application/problem+json" }).end(JSON.stringify(problem))
  }
  answers[kind]!(response)
})
let base: string
let home: string
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  home = mkdtempSync(path.join(os.tmpdir(), "svc-home-"))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(home, { recursive: true, force: true })
})

const within =
  (env: Readonly<Record<string, string>>) =>
  (api: string, ...args: ReadonlyArray<string>) =>
    runHere({ home, env: { SVC_KEY: "svc_admin_x", SVC_API_URL: api, ...env } }, ...args)
const svc = within({})

describe("a response of another server", () => {
  it.each(Object.keys(answers))("%s: is reported in one sentence", async (kind) => {
    const api = `${base}/${encodeURIComponent(kind)}`
    const commands = [
      ["identity", "delete", "ada"],
      ["grants", "revoke", "x"],
    ]
    for (const result of await Promise.all(commands.map((command) => svc(api, ...command)))) {
      expect(result).toMatchObject({ code: 3, out: "" })
      expect(result.errors).toMatch(/^svc: http:\/\/127\.0\.0\.1:\d+\/\S+ \S[^\n]*\n$/)
    }
  })

  it("is rejected even if it is a JSON object", async () => {
    for (const command of [
      ["whoami"],
      ["login"],
      ["keys", "create", "ci"],
      ["grants", "list"],
      ["tunnel", "3000"],
      ["audit"],
    ]) {
      const result = await svc(`${base}/other`, ...command)
      expect([command, result.code, result.out]).toEqual([command, 3, ""])
      expect(result.errors).toMatch(/^svc: \S+ returned a response that is not from this service\.\n$/)
    }
  })

  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  const orders = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

  it("cannot control the terminal by escape sequences", async () => {
    const [login, table, json] = await Promise.all([
      svc(`${base}/device`, "login"),
      svc(`${base}/names`, "identity", "list"),
      svc(`${base}/names`, "identity", "list", "--json"),
    ])
    expect(login.out).toContain("CODE")
    expect(table.out).toContain("2Jada")
    expect(JSON.parse(json.out).identities).toEqual([{ "\u001b[2Jkey": 1, handle: "\u009b2Jada" }])
    for (const { out, errors } of [login, table, json]) expect(out + errors).not.toMatch(orders)
  })

  it("no key is requested if it could not be stored", async () => {
    const before = requests
    const result = await within({ XDG_CONFIG_HOME: "/dev/null" })(`${base}/device`, "login")
    expect(result).toMatchObject({ code: 1, out: "" })
    expect(result.errors).toMatch(
      /^svc: The login cannot be stored in \/dev\/null\/svc\/login\.json \([^\n]+\): make [^\n]+\n$/,
    )
    expect(requests).toBe(before)
  })

  it("a problem cannot control the terminal and is printed in one line", async () => {
    const result = await svc(`${base}/orders`, "identity", "list")
    expect(result).toMatchObject({ code: 1, out: "" })
    expect(result.errors).toBe("svc: \ufffd]0;owned\ufffdNo: Not\ufffd[2J so (conflict, stop)\n")
  })
})

it("an address with credentials is rejected without a request and not repeated", async () => {
  const before = requests
  for (const command of [["whoami"], ["identity", "list"], ["login"]]) {
    const result = await svc(base.replace("//", "//ada:countess@"), ...command)
    expect(result).toMatchObject({ code: 2, out: "" })
    expect(result.errors).toMatch(/^svc: [^\n]+\n$/)
    expect(result.errors).not.toContain("countess")
  }
  expect(requests).toBe(before)
})
