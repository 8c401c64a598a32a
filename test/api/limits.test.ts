import { resolve } from "@svc/api/limits/ClientAddress"
import ipaddr from "ipaddr.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type ApiResponse, call, newHandle } from "../harness/Client.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
beforeAll(async () => {
  service = await startService({
    env: {
      SVC_LIMIT_CALLS: "600",
      SVC_LIMIT_HANDLE_CHECK: "5",
      SVC_LIMIT_HITS: "3",
      SVC_LIMIT_STREAMS_CREDENTIAL: "2",
      SVC_LIMIT_STREAMS_ORG: "3",
      SVC_PAGE_VIEW_CEILING: "2",
      SVC_TRUSTED_PROXIES: "127.0.0.1",
    },
  })
})
afterAll(() => service.stop())

const from = (address: string) => ({ "x-forwarded-for": address })
const newcomer = async (address: string) => {
  const email = `${newHandle("limit")}@example.org`
  const link = await call(service.base, "POST", "/api/auth/magic-link", {
    body: { email, tos_accepted: true },
    headers: from(address),
  })
  const token = new URL(link.body.dev_magic_link).searchParams.get("token")
  return (await call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })).body
    .session_token as string
}

/** Repeats calls until one is rejected. The time window may end in between. */
const untilRefused = async (once: () => Promise<ApiResponse>) => {
  const first = await once()
  for (let n = 0; n < 100; n++) {
    const answer = await once()
    if (answer.status === 429) return { first, refused: answer }
  }
  throw new Error("a hundred calls were let through")
}

describe("Limits", () => {
  it("report what is left of each and when to retry", async () => {
    const token = await newcomer("192.0.2.1")
    const whoami = await call(service.base, "GET", "/api/auth/whoami", { token })
    expect(whoami.headers.get("ratelimit-policy")).toBe('"calls";q=600;w=60')
    expect(whoami.headers.get("ratelimit")).toMatch(/^"calls";r=\d+;t=\d+$/)
    const { first, refused } = await untilRefused(() => call(service.base, "GET", "/api/handles/free-name", { token }))
    expect(first.headers.get("ratelimit-policy")).toContain('"handle_check";q=5;w=60')
    expect(refused.body).toMatchObject({ code: "rate_limited", agent_hint: "wait" })
    expect(Number(refused.headers.get("retry-after"))).toBe(refused.body.retry_after_seconds)
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60)
    expect(refused.headers.get("ratelimit-policy")).toContain("q=")
    expect(refused.headers.get("ratelimit")).toMatch(/;r=0;t=\d+$/)
    const other = await newcomer("192.0.2.2")
    expect((await call(service.base, "GET", "/api/handles/free-name", { token: other })).status).toBe(200)
  })

  it("count every message of an MCP client, including lists", async () => {
    const token = await newcomer("192.0.2.7")
    const rpc = (method: string, params: object = {}) =>
      call(service.base, "POST", "/api/mcp", { token, body: { jsonrpc: "2.0", id: 1, method, params } })
    const left = async (method: string, params?: object) => {
      const { status, headers } = await rpc(method, params)
      expect([status, headers.get("ratelimit-policy")]).toEqual([200, '"calls";q=600;w=60'])
      return Number(/r=(\d+)/.exec(headers.get("ratelimit")!)![1])
    }
    const remaining = [
      await left("initialize"),
      await left("tools/list"),
      await left("tools/call", { name: "svc_whoami", arguments: {} }),
      await left("tools/call", { name: "svc_no_such_tool", arguments: {} }),
      await left("ping"),
    ]
    // A minute may end in between; within a minute, each call uses one unit.
    const steps = remaining.slice(1).map((now, at) => remaining[at]! - now)
    expect(steps.filter((step) => step > 0).every((step) => step === 1)).toBe(true)
    expect(steps.filter((step) => step < 0).length).toBeLessThanOrEqual(1)
    expect(steps).not.toContain(0)
    const pinged = async () => (await rpc("ping")).status
    let status = await pinged()
    for (let n = 0; n < 1300 && status === 200; n++) status = await pinged()
    expect(status).toBe(429)
    const refused = await rpc("initialize")
    // The time window that was used up may have ended.
    if (refused.status === 429) {
      expect(refused.body).toMatchObject({ code: "rate_limited", agent_hint: "wait" })
      expect(Number(refused.headers.get("retry-after"))).toBe(refused.body.retry_after_seconds)
      expect(refused.headers.get("ratelimit")).toMatch(/^"calls";r=0;t=\d+$/)
    }
  })

  it("count anonymous calls by client", async () => {
    const hit = (address: string) =>
      call(service.base, "POST", "/api/hits", {
        body: { host: "localhost", path: "/", language: "en" },
        headers: from(address),
      })
    const { first, refused } = await untilRefused(() => hit("192.0.2.3"))
    expect([first.status, refused.body.code]).toEqual([204, "rate_limited"])
    expect(refused.headers.get("ratelimit")).toMatch(/^"hits";r=0;t=\d+$/)
    expect((await hit("192.0.2.4")).status).toBe(204)
  })

  it("of open streams apply per credential and per Org, and an ended stream makes room", async () => {
    const session = await newcomer("192.0.2.5")
    const { body: admin } = await call(service.base, "POST", "/api/keys", {
      token: session,
      body: { name: "listener" },
    })
    // A response that is garbage-collected closes its stream, so all are kept until the end.
    const opened: Array<{ readonly response: Response; readonly close: () => void }> = []
    const open = async (token: string) => {
      const controller = new AbortController()
      const response = await fetch(`${service.base}/api/events/stream`, {
        headers: { authorization: `Bearer ${token}` },
        signal: controller.signal,
      })
      const stream = { response, close: () => controller.abort() }
      opened.push(stream)
      return stream
    }
    const refusal = async (token: string) => {
      const { response } = await open(token)
      expect(response.status).toBe(429)
      const { code, detail } = (await response.json()) as { code: string; detail: string }
      return { status: response.status, retryAfter: response.headers.get("retry-after"), code, detail }
    }
    const first = await open(session)
    await open(session)
    expect(await refusal(session)).toMatchObject({
      status: 429,
      code: "rate_limited",
      retryAfter: "30",
      detail: "At most 2 streams of one credential may be open at once.",
    })
    const another = await open(admin.key)
    expect([another.response.status, first.response.status]).toEqual([200, 200])
    expect(await refusal(admin.key)).toMatchObject({
      status: 429,
      detail: "At most 3 streams of one Org may be open at once.",
    })
    // A rejected call uses no unit, and another Org has its own limit.
    expect((await open(await newcomer("192.0.2.6"))).response.status).toBe(200)
    first.close()
    await eventually(
      async () => (await open(session)).response.status,
      (status) => status === 200,
    )
    for (const { close } of opened) close()
  })
})

describe("Page views", () => {
  it("are limited in rows and only counted for own sites", async () => {
    const view = (host: string, path: string) =>
      call(service.base, "POST", "/api/hits", {
        body: { host, path, language: "de-AT" },
        headers: from(`198.51.100.${path.length}`),
      })
    for (const [host, path] of [
      ["localhost", "/a"],
      ["LOCALHOST", "/a"],
      ["elsewhere.example", "/a"],
      ["localhost", "/bb"],
      ["localhost", "/ccc"],
    ] as const) {
      expect((await view(host, path)).status).toBe(204)
    }
    const rows = await service.query(
      (sql) =>
        sql<{ path: string; views: bigint }>`select path, views from page_view where language = 'de-at' order by path`,
    )
    expect(rows.map(({ path, views }) => [path, Number(views)])).toContainEqual(["/a", 2])
    expect(rows.length).toBeLessThanOrEqual(2)
    expect(
      (await call(service.base, "POST", "/api/hits", { body: { host: "localhost" }, headers: from("198.51.100.77") }))
        .status,
    ).toBe(400)
  })
})

describe("Client address", () => {
  const networks = ["10.0.0.0/8", "2001:db8::/32"].map((network) => ipaddr.parseCIDR(network))
  it.each([
    ["203.0.113.9", {}, "203.0.113.9"],
    ["203.0.113.9", { "x-forwarded-for": "192.0.2.1" }, "203.0.113.9"],
    ["10.0.0.1", { "x-forwarded-for": "192.0.2.1" }, "192.0.2.1"],
    ["10.0.0.1", { "x-forwarded-for": "1.1.1.1, 192.0.2.1, 10.0.0.2" }, "192.0.2.1"],
    ["10.0.0.1", { "x-forwarded-for": "nonsense" }, "10.0.0.1"],
    // Headers that the proxy did not write can be forged by the client.
    ["10.0.0.1", { "x-forwarded-for": "192.0.2.1", forwarded: "for=198.51.100.7" }, "192.0.2.1"],
    ["10.0.0.1", { forwarded: "for=198.51.100.7" }, "10.0.0.1"],
  ])("of %s with %j is %s", (peer, headers, address) =>
    expect(resolve({ networks, header: "x-forwarded-for" }, peer, headers)).toBe(address),
  )
  it.each([
    ["::ffff:10.0.0.1", { forwarded: 'for=192.0.2.60;proto=http, for="10.9.9.9:4711"' }, "192.0.2.60"],
    ["10.0.0.1", { forwarded: 'for="[2a00:1450:4001:80e::200e]:443"' }, "10752:5200:16385:2062::/64"],
    ["10.0.0.1", { forwarded: "for=192.0.2.60", "x-forwarded-for": "198.51.100.7" }, "192.0.2.60"],
  ])("of %s with %j is %s where the proxies write Forwarded", (peer, headers, address) =>
    expect(resolve({ networks, header: "forwarded" }, peer, headers)).toBe(address),
  )
  it("is read from a header of any name", () =>
    expect(resolve({ networks, header: "cf-connecting-ip" }, "10.0.0.1", { "cf-connecting-ip": "192.0.2.9" })).toBe(
      "192.0.2.9",
    ))
})
