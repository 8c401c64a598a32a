/** `svc mcp`: what it sends for each line, and what it prints for each response. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { text } from "node:stream/consumers"
import { expect, it } from "vitest"
import { eventually } from "../harness/Service.ts"
import { startSvc } from "../harness/Svc.ts"

const version = "2026-07-28"
const _meta = { "io.modelcontextprotocol/protocolVersion": version }

it("`svc mcp` relays messages with the headers of their revision and ends with its input", async () => {
  const asked: Array<{ readonly url: string; readonly headers: IncomingHttpHeaders; readonly message: any }> = []
  const cancelled: Array<unknown> = []
  const server = createServer(async (request, response) => {
    const message = JSON.parse(await text(request))
    asked.push({ url: request.url!, headers: request.headers, message })
    const { id, method } = message
    if (method === "subscriptions/listen" && message.params.silent) {
      return void response.once("close", () => cancelled.push(id))
    }
    if (method === "subscriptions/listen") {
      response.writeHead(200, { "content-type": "text/event-stream" })
      return void response.write(`: hello\n\ndata: {"stream":${id}}\n\n`)
    }
    if (method.startsWith("notifications/")) return void response.writeHead(202).end()
    const [status, body] =
      method === "initialize"
        ? [200, { jsonrpc: "2.0", id, result: { protocolVersion: "2025-11-25" } }]
        : method === "refused"
          ? [401, { title: "Unauthenticated", detail: "The key was revoked." }]
          : method === "titled"
            ? [503, { title: "Unavailable" }]
            : method === "cut"
              ? [200, "no JSON"]
              : [200, { jsonrpc: "2.0", id, result: {} }]
    response
      .writeHead(status as number, { "content-type": "application/json" })
      .end(method === "cut" ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const home = mkdtempSync(path.join(tmpdir(), "svc-relay-"))
  const svc = startSvc(
    { home, env: { SVC_KEY: "svc_admin_x" }, input: null },
    "mcp",
    "--api",
    api,
    "--tools",
    "mail,vault",
  )
  try {
    const lines = () =>
      svc
        .out()
        .split("\n")
        .filter((line) => line !== "")
    let expected = 0
    /** Writes a line, and returns the message that is printed for it. */
    const say = async (message: object, prints = true) => {
      svc.input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
      if (!prints) return undefined
      expected++
      await eventually(
        async () => lines().length,
        (count) => count === expected,
      )
      return JSON.parse(lines().at(-1)!)
    }
    const failed = (id: unknown, message: string) => ({ jsonrpc: "2.0", id, error: { code: -32000, message } })

    svc.input.write("\n   \n")
    expect(await say({ id: 0, method: "ping" })).toEqual({ jsonrpc: "2.0", id: 0, result: {} })
    expect(await say({ id: 1, method: "initialize" })).toMatchObject({ id: 1 })
    await say({ method: "notifications/initialized" }, false)
    await say({ id: 2, method: "ping" })
    expect(await say({ id: 3, method: "refused" })).toEqual(failed(3, "The key was revoked."))
    expect(await say({ id: "4", method: "titled" })).toEqual(failed("4", "Unavailable"))
    expect(await say({ id: 5, method: "cut" })).toEqual(failed(5, "The service rejected the request"))
    const named = ["svc_whoami", "=?base64?eA==?=", "läuft", " x", "a b"]
    for (const name of named) await say({ id: 6, method: "tools/call", params: { name, _meta } })
    await say({ id: 7, method: "resources/read", params: { uri: "svc://x", _meta } })
    expect(await say({ id: 8, method: "subscriptions/listen", params: { _meta } })).toEqual({ stream: 8 })

    // The service has not responded to these subscriptions yet. The client cancels one, and leaves the other.
    const silent = { _meta, silent: true }
    for (const id of [9, 10]) await say({ id, method: "subscriptions/listen", params: silent }, false)
    await eventually(
      async () => asked.length,
      (count) => count === 16,
    )
    await say({ method: "notifications/cancelled", params: { requestId: 9 } }, false)
    await eventually(
      async () => cancelled.length,
      (count) => count === 1,
    )
    expect(cancelled).toEqual([9])

    // A subscription is open. The command ends with its client, after it has printed the responses in flight.
    svc.input.end()
    expect(await svc.ended).toBe(0)
    expect([lines().length, svc.errors()]).toEqual([expected, ""])

    expect(new Set(asked.map(({ url }) => url))).toEqual(new Set(["/api/mcp?tools=mail%2Cvault"]))
    expect(new Set(asked.map(({ headers }) => headers.authorization))).toEqual(new Set(["Bearer svc_admin_x"]))
    const of = (field: string) => asked.map(({ headers }) => headers[field])
    const base64 = (text: string) => `=?base64?${Buffer.from(text).toString("base64")}?=`
    // Only messages after the negotiation have the negotiated revision, and those that claim one have theirs.
    const negotiated = Array.from({ length: 5 }, () => "2025-11-25")
    const claimed = Array.from({ length: 9 }, () => version)
    expect(of("mcp-protocol-version")).toEqual([undefined, undefined, ...negotiated, ...claimed, "2025-11-25"])
    expect(of("mcp-method").slice(7)).toEqual([
      ...named.map(() => "tools/call"),
      "resources/read",
      "subscriptions/listen",
      "subscriptions/listen",
      "subscriptions/listen",
      undefined,
    ])
    expect(of("mcp-name").slice(7, 14)).toEqual([
      "svc_whoami",
      base64(named[1]!),
      base64(named[2]!),
      base64(named[3]!),
      "a b",
      "svc://x",
      undefined,
    ])
  } finally {
    svc.stop("SIGKILL")
    server.closeAllConnections()
    server.close()
    rmSync(home, { recursive: true })
  }
})
