import { connect } from "node:net"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { plainRequest, type PlainResponse } from "./PlainRequest.ts"

let service: TestService
let session: string
let handle: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
})

const raw = (method: string, path: string, headers?: Record<string, string>, body?: string) =>
  plainRequest(service.base, method, path, headers, body)

const bearer = () => ({ authorization: `Bearer ${session}` })
const codeOf = ({ body }: PlainResponse) => JSON.parse(body.toString()).code

describe("Path", () => {
  it("with a long parameter reaches its endpoint", async () => {
    const address = `${"a".repeat(60)}@${"b".repeat(60)}.${"c".repeat(50)}.example.org`
    const path = `/api/identities/${handle}/allowed-recipients`
    const added = await call(service.base, "POST", path, { token: session, body: { address } })
    expect(added.status).toBe(201)
    const one = `${path}/${encodeURIComponent(address)}`
    expect(added.headers.get("location")).toBe(one)
    expect((await call(service.base, "DELETE", one, { token: session })).status).toBe(204)
  })

  it.each([
    ["with a trailing slash", "/api/identities/"],
    ["with an empty segment", "/api//identities"],
    ["with an empty segment for a name", "/api/identities//card"],
    ["malformed", "/api/identities/%zz"],
    ["with parameters of its own", "/api/auth/whoami;v=1"],
    ["with a fragment", "/api/auth/whoami#me"],
    ["of no resource", "*"],
    ["malformed UTF-8", "/api/identities/%ff%fe"],
  ])("%s is a 404 problem", async (_, path) => {
    const answer = await raw("GET", path, bearer())
    expect([answer.status, answer.headers["content-type"]]).toEqual([404, "application/problem+json"])
    expect(codeOf(answer)).toBe("not_found")
    expect(answer.headers["request-id"]).toMatch(/^req_/)
  })
})

describe("Method", () => {
  it.each(["/api/healthz", "/api/openapi.json", "/api/docs", "/", "/terms", "/problems/not_found"])(
    "HEAD of %s equals GET without a body",
    async (path) => {
      const [head, get] = [await raw("HEAD", path), await raw("GET", path)]
      expect([head.status, head.body.length]).toEqual([get.status, 0])
      expect(head.headers["content-type"]).toBe(get.headers["content-type"])
    },
  )

  it("HEAD with a credential equals GET without a body, and a stream ends", async () => {
    const json = "application/json"
    for (const [path, type] of [
      ["/api/auth/whoami", json],
      ["/api/identities", json],
      [`/api/identities/${handle}/card`, json],
      ["/api/events/stream", "text/event-stream"],
      ["/api/audit/export", "application/jsonl"],
    ] as const) {
      const head = await raw("HEAD", path, bearer())
      expect([head.status, head.body.length, head.headers["content-type"]], path).toEqual([200, 0, type])
    }
    expect((await raw("HEAD", "/api/nothing")).status).toBe(404)
    expect((await raw("HEAD", "/api/mcp")).status).toBe(405)
  })

  it.each([
    ["/api/keys", "GET, HEAD, POST, OPTIONS"],
    ["/api/mcp", "POST, OPTIONS"],
    ["/auth/device", "GET, HEAD, POST, OPTIONS"],
    ["/api/docs", "GET, HEAD, OPTIONS"],
  ])("OPTIONS of %s lists the others", async (path, allow) => {
    const answer = await raw("OPTIONS", path)
    expect([answer.status, answer.headers["allow"], answer.body.length]).toEqual([204, allow, 0])
    const wrong = await raw("PROPFIND", path)
    expect([wrong.status, wrong.headers["allow"]]).toEqual([405, allow])
  })

  it("OPTIONS of an unknown path is a 404, and the card answers a preflight", async () => {
    expect((await raw("OPTIONS", "/api/nothing")).status).toBe(404)
    const preflight = await raw("OPTIONS", `/@${handle}/agent-card.json`, {
      origin: "https://agents.example",
      "access-control-request-method": "GET",
      "access-control-request-headers": "a2a-version",
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, HEAD",
      "access-control-allow-headers": "*",
    })
  })
})

describe("Request body", () => {
  it("that is compressed is rejected with the accepted encodings", async () => {
    const answer = await raw(
      "POST",
      "/api/keys",
      { ...bearer(), "content-type": "application/json", "content-encoding": "gzip" },
      "\u001f\u008b",
    )
    expect([answer.status, codeOf(answer), answer.headers["accept-encoding"]]).toEqual([
      415,
      "unsupported_media_type",
      "identity",
    ])
  })

  it("whose `Content-Encoding` is `identity` is accepted", async () => {
    const answer = await raw(
      "POST",
      "/api/keys",
      { ...bearer(), "content-type": "application/json", "content-encoding": "Identity" },
      '{"name":"k"}',
    )
    expect(answer.status).toBe(201)
  })

  it("that is too large is rejected before it is sent", async () => {
    const socket = connect(service.httpPort, "127.0.0.1")
    const received: Array<string> = []
    socket.on("data", (chunk: Buffer) => received.push(chunk.toString()))
    socket.write(
      `POST /api/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${session}\r\nContent-Type: application/json\r\n` +
        `Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n`,
    )
    await new Promise((resolve) => socket.once("close", resolve))
    expect(received.join("")).toMatch(/^HTTP\/1\.1 413 /)
    expect(received.join("")).toMatch(/^connection: close\r$/im)
    expect(received.join("")).toContain('"payload_too_large"')
  })

  it("that is large is not read from anonymous clients, which get a 401", async () => {
    const json = { "content-type": "application/json", authorization: `Bearer svc_admin_${"x".repeat(49)}` }
    const large = (size: number) => JSON.stringify({ name: "x".repeat(size) })
    for (const path of ["/api/keys", "/api/mcp", `/api/identities/${handle}/messages/send`]) {
      // The service reads no more of the body than the connection buffers.
      const socket = connect(service.httpPort, "127.0.0.1")
      const firstChunk = new Promise<string>((resolve) =>
        socket.once("data", (chunk: Buffer) => resolve(chunk.toString())),
      )
      socket.on("error", () => {})
      const fields = Object.entries(json).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${fields.join("")}Content-Length: 1000000\r\n\r\n{`)
      expect(await firstChunk, path).toMatch(/^HTTP\/1\.1 401 [^]*"code":"unauthenticated"/)
      socket.destroy()
    }
    const open = await raw("POST", "/api/contact", json, large(100_000))
    expect([open.status, codeOf(open)]).toEqual([413, "payload_too_large"])
    const known = await raw("POST", "/api/keys", { ...json, ...bearer() }, large(100_000))
    expect([known.status, codeOf(known)]).toEqual([400, "invalid_request"])
  })

  it("with too many values is rejected from anonymous clients too, also without a `Content-Length`", async () => {
    const headers = { "content-type": "application/json", "transfer-encoding": "chunked" }
    const answer = await raw("POST", "/api/contact", headers, JSON.stringify({ name: Array(5_001).fill(0) }))
    expect([answer.status, JSON.parse(answer.body.toString()).detail]).toEqual([
      400,
      "The request body contains more than 5000 values.",
    ])
  })

  it("is requested with 100 Continue if it is accepted", async () => {
    const socket = connect(service.httpPort, "127.0.0.1")
    const first = new Promise<string>((resolve) => socket.once("data", (chunk: Buffer) => resolve(chunk.toString())))
    socket.write(
      `POST /api/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${session}\r\nContent-Type: application/json\r\n` +
        `Content-Length: 12\r\nExpect: 100-continue\r\n\r\n`,
    )
    expect(await first).toMatch(/^HTTP\/1\.1 100 /)
    socket.destroy()
  })
})

describe("Response", () => {
  it("with a secret is not cacheable", async () => {
    const link = await call(service.base, "POST", "/api/auth/magic-link", {
      body: { email: "no-store@example.org", tos_accepted: true },
    })
    const token = new URL(link.body.dev_magic_link).searchParams.get("token")
    const consumed = await call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })
    const device = await call(service.base, "POST", "/api/auth/device", { body: { name: "laptop" } })
    const code = device.body.user_code
    await call(service.base, "POST", `/api/auth/device/${code}/approve`, { token: session })
    const polled = await call(service.base, "POST", "/api/auth/device/token", {
      body: { device_code: device.body.device_code },
    })
    expect(polled.status).toBe(200)
    for (const { headers } of [link, consumed, device, polled]) expect(headers.get("cache-control")).toBe("no-store")
  })

  it("201 and 202 have a Location", async () => {
    const at = `/api/identities/${handle}`
    const post = (path: string, body: unknown = undefined) => call(service.base, "POST", path, { token: session, body })
    const device = await post("/api/auth/device", { name: "laptop" })
    expect(device.headers.get("location")).toBe(`/api/auth/device/${device.body.user_code}`)
    const made = await post("/api/identities", { handle: `${handle}more` })
    expect([made.status, made.headers.get("location")]).toEqual([202, `/api/identities/${handle}more`])
    const retried = await post(`${at}/retry`)
    expect([retried.status, retried.headers.get("location")]).toEqual([202, at])
    const exported = await post("/api/exports")
    expect(exported.headers.get("location")).toBe(`/api/exports/${exported.body.id}`)
    const hook = await post(`${at}/webhooks`, { url: "http://127.0.0.1:9/", event_types: ["*"] })
    const tested = await post(`${at}/webhooks/${hook.body.id}/test`)
    expect([tested.status, tested.headers.get("location")]).toEqual([202, `${at}/webhooks/${hook.body.id}/deliveries`])
    const secret = await call(service.base, "PUT", "/api/vault/secrets/loc", { token: session, body: { value: "v" } })
    expect([secret.status, secret.headers.get("location")]).toEqual([201, "/api/vault/secrets/loc/value"])
    const link = await post("/api/auth/magic-link", { email: "location@example.org", tos_accepted: true })
    expect([link.status, link.headers.get("location")]).toEqual([202, "/api/auth/session"])
  })

  it("of a repeat is marked as replayed", async () => {
    const repeated = () =>
      call(service.base, "POST", `/api/identities/${handle}/retry`, {
        token: session,
        headers: { "idempotency-key": "again" },
      })
    const [first, second] = [await repeated(), await repeated()]
    expect([first, second].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"])
  })

  it("to an invalid body uses terms of the request", async () => {
    const wrong = async (body: unknown) =>
      (await call(service.base, "POST", "/api/keys", { token: session, body })).body.errors
    const takes = "`name`, `scopes`, `expires_at`, `expires_in_days` and `networks`"
    expect(await wrong({ name: "a", colour: "red" })).toEqual([
      { path: "/colour", message: `unknown member; the body takes ${takes}` },
    ])
    expect(await wrong({})).toEqual([{ path: "/name", message: "missing" }])
    expect((await wrong({ name: 7 }))[0].message).toBe("expected text")
    expect((await wrong({ name: "" }))[0].message).toBe("expected a length of at least 1")
    expect((await wrong({ name: "a", scopes: [] }))[0].message).toBe("expected a length of at least 1")
    const query = await call(service.base, "GET", "/api/keys?limit=many", { token: session })
    expect(query.body.errors).toEqual([{ path: "/limit", message: "expected a number" }])
  })
})

describe("DELETE with If-Match", () => {
  const remove = (path: string, tag: string) =>
    call(service.base, "DELETE", path, { token: session, headers: { "if-match": tag } })

  it("of a changed version is a 412, and of the current version a deletion", async () => {
    const hook = await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: session,
      body: { url: "http://127.0.0.1:9/", event_types: ["*"] },
    })
    await call(service.base, "PUT", "/api/vault/secrets/match", { token: session, body: { value: "v" } })
    await call(service.base, "PUT", `/api/identities/${handle}/ai-disclosure`, { token: session, body: { text: "t" } })
    const key = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "match" } })
    for (const [path, read] of [
      [`/api/identities/${handle}/webhooks/${hook.body.id}`],
      ["/api/vault/secrets/match", "/api/vault/secrets/match/value"],
      [`/api/identities/${handle}/ai-disclosure`],
      [`/api/keys/${key.body.api_key.id}`],
    ] as const) {
      const { headers } = await call(service.base, "GET", read ?? path, { token: session })
      expect((await remove(path, '"v999"')).body.code, path).toBe("precondition_failed")
      // Weak tags never match (RFC 9110 section 13.1.1).
      expect((await remove(path, `W/${headers.get("etag")}`)).body.code, path).toBe("precondition_failed")
      expect((await remove(path, headers.get("etag")!)).status, path).toBe(204)
    }
  })
})
