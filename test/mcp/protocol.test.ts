/** Messages of the Model Context Protocol without a server: what each malformed one is answered, and what the instructions say. */
import { instructionsFor, interpret, type Served } from "@svc/api/mcp/Protocol"
import * as Resources from "@svc/api/mcp/Resources"
import { scopesOf, unlimited } from "@svc/domain/account/Scope"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import { apiVersion } from "@svc/domain/Version"
import { describe, expect, it } from "vitest"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON-RPC
type Json = any
const meta = "io.modelcontextprotocol/"
const modern = "2026-07-28"
const claimed = { [`${meta}protocolVersion`]: modern, [`${meta}clientCapabilities`]: {} }
const request = (method: unknown, params: Json = {}, more: Json = {}) => ({
  jsonrpc: "2.0",
  id: 7,
  method,
  params,
  ...more,
})
const ofModern = (method: string, params: Json = {}, more: Json = {}) =>
  request(method, { _meta: claimed, ...params }, more)
const headers = (method: string, more: Json = {}) => ({ "mcp-protocol-version": modern, "mcp-method": method, ...more })
const read = (message: unknown, given: Json = {}) =>
  interpret(typeof message === "string" ? message : JSON.stringify(message), given)

describe("A message that is not valid", () => {
  it.each<[what: string, message: unknown, headers: Json, status: number, id: unknown, code: number, says: RegExp]>([
    ["no JSON", "{", {}, 400, null, -32700, /Parse error/],
    ["a batch", [request("ping")], {}, 400, null, -32600, /no batch/],
    ["no object", "7", {}, 400, null, -32600, /Invalid request/],
    ["another version of JSON-RPC", { ...request("ping"), jsonrpc: "1.0" }, {}, 400, null, -32600, /Invalid request/],
    ["no method", request(undefined), {}, 400, 7, -32600, /Invalid request/],
    ["an id of null", request("ping", {}, { id: null }), {}, 400, null, -32600, /the id is/],
    ["a fraction as id", request("ping", {}, { id: 1.5 }), {}, 400, null, -32600, /the id is/],
    ["an id that is too long", request("ping", {}, { id: "x".repeat(1001) }), {}, 400, null, -32600, /the id is/],
    ["an unknown method", request(`x${"y".repeat(200)}`), {}, 200, 7, -32601, /^Method not found: xy{99}$/],
    ["an unknown version", request("ping/x"), { "mcp-protocol-version": "2020-01-01" }, 400, 7, -32022, /Unsupported/],
    ["a tool without a name", request("tools/call", { name: 7 }), {}, 200, 7, -32602, /`name` is a string/],
    ["arguments that are a list", request("tools/call", { name: "x", arguments: [] }), {}, 200, 7, -32602, /an object/],
    [
      "an unknown prompt",
      request("prompts/get", { name: "x" }),
      {},
      200,
      7,
      -32602,
      /^Unknown prompt. The prompts are /,
    ],
    ["an unknown resource", request("resources/read", { uri: "svc://x" }), {}, 200, 7, -32602, /not found/],
    ["a resource that is no text", request("resources/read", { uri: 7 }), {}, 200, 7, -32602, /not found/],
    ["no header of the version", ofModern("tools/list"), {}, 400, 7, -32020, /MCP-Protocol-Version is missing/],
    [
      "another version in the header",
      ofModern("tools/list"),
      headers("tools/list", { "mcp-protocol-version": "2025-11-25" }),
      400,
      7,
      -32020,
      /not that of _meta/,
    ],
    [
      "an earlier version in _meta",
      request("tools/list", { _meta: { ...claimed, [`${meta}protocolVersion`]: "2025-11-25" } }),
      headers("tools/list", { "mcp-protocol-version": "2025-11-25" }),
      400,
      7,
      -32022,
      /Unsupported/,
    ],
    [
      "no version in _meta",
      request("tools/list"),
      headers("tools/list"),
      400,
      7,
      -32602,
      /_meta has no .*protocolVersion/,
    ],
    [
      "no capabilities",
      request("tools/list", { _meta: { [`${meta}protocolVersion`]: modern } }),
      headers("tools/list"),
      400,
      7,
      -32602,
      /_meta has no .*clientCapabilities/,
    ],
    [
      "another method in the header",
      ofModern("tools/list"),
      headers("tools/call"),
      400,
      7,
      -32020,
      /Mcp-Method is not the method/,
    ],
    [
      "another name in the header",
      ofModern("tools/call", { name: "a" }),
      headers("tools/call", { "mcp-name": "b" }),
      400,
      7,
      -32020,
      /Mcp-Name is not the `name`/,
    ],
    [
      "malformed base64 in the header",
      ofModern("tools/call", { name: "a" }),
      headers("tools/call", { "mcp-name": "=?base64?YQ?=" }),
      400,
      7,
      -32020,
      /Mcp-Name/,
    ],
    [
      "no UTF-8 in the header",
      ofModern("tools/call", { name: "a" }),
      headers("tools/call", { "mcp-name": "=?base64?/w==?=" }),
      400,
      7,
      -32020,
      /Mcp-Name/,
    ],
    [
      "another uri in the header",
      ofModern("resources/read", { uri: "a" }),
      headers("resources/read", { "mcp-name": "b" }),
      400,
      7,
      -32020,
      /`uri`/,
    ],
    [
      "another prompt in the header",
      ofModern("prompts/get", { name: "a" }),
      headers("prompts/get", { "mcp-name": "b" }),
      400,
      7,
      -32020,
      /`name`/,
    ],
    [
      "an unknown method of the newest version",
      ofModern("ping"),
      headers("ping"),
      404,
      7,
      -32601,
      /Method not found: ping/,
    ],
    [
      "a subscription to no list",
      ofModern("subscriptions/listen", { notifications: { resourceSubscriptions: "x" } }),
      headers("subscriptions/listen"),
      200,
      7,
      -32602,
      /at most 50/,
    ],
    [
      "a subscription to 51",
      ofModern("subscriptions/listen", {
        notifications: { resourceSubscriptions: Array.from({ length: 51 }, String) },
      }),
      headers("subscriptions/listen"),
      200,
      7,
      -32602,
      /at most 50/,
    ],
    [
      "a subscription to a number",
      ofModern("subscriptions/listen", { notifications: { resourceSubscriptions: [7] } }),
      headers("subscriptions/listen"),
      200,
      7,
      -32602,
      /at most 50/,
    ],
    [
      "a subscription without a body",
      ofModern("subscriptions/listen"),
      headers("subscriptions/listen"),
      200,
      7,
      -32602,
      /at most 50/,
    ],
  ])("is refused by name: %s", (_, message, given, status, id, code, says) => {
    expect(read(message, given)).toMatchObject({
      _tag: "Answer",
      status,
      body: { jsonrpc: "2.0", id, error: { code, message: expect.stringMatching(says) } },
    })
  })

  it("names the supported versions", () => {
    const answer: Json = read(ofModern("tools/list"), headers("tools/list", { "mcp-protocol-version": modern }))
    expect(answer._tag).toBe("List")
    const unknown: Json = read(request("x"), { "mcp-protocol-version": "2020-01-01" })
    expect(unknown.body.error.data).toEqual({
      supported: [modern, "2025-11-25", "2025-06-18", "2025-03-26"],
      requested: "2020-01-01",
    })
  })
})

describe("A message", () => {
  it("that is a notification or a response is accepted without a body", () => {
    for (const message of [
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 1, result: {} },
      { jsonrpc: "2.0", id: 1, error: {} },
    ])
      expect(read(message)).toEqual({ _tag: "Answer", status: 202 })
  })

  it("with any valid id gets a response with the same id", () => {
    for (const id of [0, -1, "", "x".repeat(1000)])
      expect(read(request("ping", {}, { id }))).toEqual({
        _tag: "Answer",
        status: 200,
        body: { jsonrpc: "2.0", id, result: {} },
      })
  })

  it("that initializes gets the requested revision, or the newest one with sessions", () => {
    const chosen = (protocolVersion: string) => {
      const served = read(request("initialize", { protocolVersion })) as Extract<Served, { _tag: "Opening" }>
      return served.answer("Hello").body
    }
    for (const version of ["2025-11-25", "2025-06-18", "2025-03-26"])
      expect(chosen(version)).toMatchObject({ result: { protocolVersion: version, instructions: "Hello" } })
    // The client cannot know yet which revisions the server has.
    expect(read(request("initialize"), { "mcp-protocol-version": "2020-01-01" })._tag).toBe("Opening")
    for (const version of [modern, "1.0"])
      expect(chosen(version)).toMatchObject({
        result: { protocolVersion: "2025-11-25", serverInfo: { name: "agent-identity", version: apiVersion } },
      })
  })

  it("calls a tool with its arguments, whose name may be encoded in a header", () => {
    expect(read(request("tools/call", { name: "a" }))).toMatchObject({ _tag: "Call", name: "a", input: {} })
    const encoded = `=?base64?${Buffer.from("ä").toString("base64")}?=`
    const given = headers("tools/call", { "mcp-name": encoded })
    expect(read(ofModern("tools/call", { name: "ä", arguments: { x: 1 } }), given)).toMatchObject({
      _tag: "Call",
      name: "ä",
      input: { x: 1 },
      unknown: { body: { error: { code: -32602, message: "Unknown tool: ä" } } },
    })
  })

  it("lists resources page by page, and subscribes to each once", () => {
    expect(read(request("resources/list"))).toMatchObject({ _tag: "Resources", input: { limit: 50 } })
    expect(read(request("resources/list", { cursor: "c" }))).toMatchObject({ input: { limit: 50, cursor: "c" } })
    const fifty = { notifications: { resourceSubscriptions: Array.from({ length: 50 }, String) } }
    expect(read(ofModern("subscriptions/listen", fifty), headers("subscriptions/listen"))).toMatchObject({
      _tag: "Listen",
    })
    const subscription = { notifications: { resourceSubscriptions: ["a", "b", "a"] } }
    const listen: Json = read(ofModern("subscriptions/listen", subscription), headers("subscriptions/listen"))
    expect(listen).toMatchObject({ _tag: "Listen", uris: ["a", "b"] })
    expect(listen.replies.updated("a")).toMatchObject({
      method: "notifications/resources/updated",
      params: { uri: "a", _meta: { [`${meta}subscriptionId`]: 7 } },
    })
    expect(listen.replies.acknowledged(["a"])).toMatchObject({
      params: { notifications: { resourceSubscriptions: ["a"] } },
    })
    expect(listen.replies.ended).toMatchObject({ id: 7, result: { resultType: "complete" } })
    expect(
      read(ofModern("subscriptions/listen", { notifications: {} }), headers("subscriptions/listen")),
    ).toMatchObject({
      uris: [],
    })
  })

  it("that may be cached says for how long", () => {
    const lifetime = (method: string) => (read(ofModern(method), headers(method)) as Json).body.result
    for (const method of ["prompts/list", "resources/templates/list"])
      expect(lifetime(method)).toMatchObject({ ttlMs: 3_600_000, cacheScope: "private", resultType: "complete" })
    for (const [method, ttlMs] of [
      ["resources/list", 60_000],
      ["tools/list", 60_000],
      ["server/discover", 3_600_000],
    ] as const) {
      const served: Json = read(ofModern(method), headers(method))
      expect(served.answer([]).body.result, method).toMatchObject({ ttlMs, cacheScope: "private" })
    }
  })

  it("that reads a resource calls its tool, and returns the content or the problem", () => {
    const uri = "svc://identities/ada/card"
    const served: Json = read(ofModern("resources/read", { uri }), headers("resources/read", { "mcp-name": uri }))
    expect(served).toMatchObject({ _tag: "Call", name: "svc_card_get", input: { handle: "ada" } })
    expect(served.read("{}", false).body.result).toMatchObject({
      contents: [{ uri, mimeType: "application/json", text: "{}" }],
      ttlMs: 0,
    })
    const problem = { code: "not_found" }
    expect(served.read(JSON.stringify(problem), true).body.error).toMatchObject({
      code: -32602,
      data: { uri, problem },
    })
  })

  it("lists the resources of an Identity without its single messages", () => {
    expect(Resources.listOf(["ada", "bob"]).map(({ uri }) => uri.replace("svc://identities/", ""))).toEqual(
      ["ada", "bob"].flatMap((handle) => [handle, `${handle}/messages`, `${handle}/card`]),
    )
  })
})

describe("The instructions for a model", () => {
  const identities = (count: number) =>
    Array.from({ length: count }, (_, n): IdentityRef => ({ id: `${n}`, handle: `A${n}`, canonical: `a${n}` }) as never)
  const of = (scopes: string | undefined, who: ReadonlyArray<IdentityRef> | null) =>
    instructionsFor({ identities: who, scopes: scopes === undefined ? unlimited : scopesOf(scopes) })

  it("say as whom it acts, and what it may do", () => {
    expect(of(undefined, null)).toContain("You act for the account holder; `handle` selects the Identity.")
    expect(of(undefined, null)).not.toMatch(/You may read only|Your scopes/)
    expect(of(undefined, identities(1))).toContain('You act as @A0: omit `handle`, or pass "A0".')
    expect(of(undefined, identities(2))).toContain("You act as @A0, @A1: pass one of them")
    expect(of(undefined, identities(20))).toContain("@A19: pass one of them")
    expect(of(undefined, identities(21))).toContain("@A19 and 1 more (`svc_identity_list`)")
    expect(of(undefined, identities(23))).toContain("@A19 and 3 more (`svc_identity_list`)")
    expect(of("mail:read card:read", null)).toMatch(
      /You may read only: (?:mail:read, card:read|card:read, mail:read)\./,
    )
    expect(of("mail:send", null)).toContain("Your scopes are limited: mail:send.")
    expect(of("card:read mail:send", null)).toContain("Your scopes are limited")
  })
})
