import { resolve } from "@svc/api/limits/ClientAddress"
import ipaddr from "ipaddr.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, newHandle } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await startService({
    env: {
      SVC_LIMIT_CALLS: "60",
      SVC_LIMIT_HANDLE_CHECK: "5",
      SVC_LIMIT_HITS: "3",
      SVC_LIMIT_MAGIC_LINK: "4",
      SVC_PAGE_VIEW_CEILING: "2",
      SVC_TRUSTED_PROXIES: "127.0.0.1",
    },
  })
})
afterAll(() => service.stop())

/** Windows are minutes: a test that begins at the end of one waits for the next. */
const earlyInTheMinute = async () => {
  const left = 60_000 - (Date.now() % 60_000)
  if (left < 15_000) await new Promise((resolve) => setTimeout(resolve, left))
}
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

describe("limits", () => {
  it("let through a quota of an Org's calls a minute, and say when to come back", { timeout: 60_000 }, async () => {
    await earlyInTheMinute()
    const token = await newcomer("192.0.2.1")
    const calls = await Promise.all(
      Array.from({ length: 100 }, () => call(service.base, "GET", "/api/auth/whoami", { token })),
    )
    const passed = calls.filter(({ status }) => status === 200)
    expect(passed.length).toBeLessThanOrEqual(60)
    expect(passed.length).toBeGreaterThanOrEqual(1)
    expect(passed[0]!.headers.get("ratelimit-policy")).toBe('"calls";q=60;w=60')
    expect(passed[0]!.headers.get("ratelimit")).toMatch(/^"calls";r=\d+;t=\d+$/)
    const refused = calls.find(({ status }) => status === 429)!
    expect(refused.body).toMatchObject({ code: "rate_limited", agent_hint: "wait" })
    expect(Number(refused.headers.get("retry-after"))).toBe(refused.body.retry_after_seconds)
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60)
    expect(refused.headers.get("ratelimit-policy")).toBe('"calls";q=60;w=60')
    expect(refused.headers.get("ratelimit")).toMatch(/^"calls";r=0;t=\d+$/)
  })

  it("count what is dear by itself, and every Org for itself", { timeout: 60_000 }, async () => {
    await earlyInTheMinute()
    const token = await newcomer("192.0.2.2")
    const other = await newcomer("192.0.2.2")
    const checks = await Promise.all(
      Array.from({ length: 12 }, () => call(service.base, "GET", "/api/handles/free-name", { token })),
    )
    expect(checks.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(5)
    expect(checks.some(({ headers }) => headers.get("ratelimit-policy")?.includes('"handle_check";q=5') === true)).toBe(
      true,
    )
    const refused = checks.find(({ status }) => status === 429)!
    expect(refused.headers.get("ratelimit")).toMatch(/"handle_check";r=0;t=\d+$/)
    expect((await call(service.base, "GET", "/api/auth/whoami", { token: other })).status).toBe(200)
  })

  it("count the public by client, over processes where a mail is sent", { timeout: 60_000 }, async () => {
    await earlyInTheMinute()
    const hit = (address: string) =>
      call(service.base, "POST", "/api/hits", {
        body: { host: "localhost", path: "/", language: "en" },
        headers: from(address),
      })
    const hits = [await hit("192.0.2.3"), await hit("192.0.2.3"), await hit("192.0.2.3"), await hit("192.0.2.3")]
    expect(hits.map(({ status }) => status)).toEqual([204, 204, 204, 429])
    expect(hits[3]!.headers.get("ratelimit-policy")).toBe('"hits";q=3;w=60')
    expect(hits[3]!.headers.get("ratelimit")).toMatch(/^"hits";r=0;t=\d+$/)
    expect((await hit("192.0.2.4")).status).toBe(204)
    const link = (n: number) =>
      call(service.base, "POST", "/api/auth/magic-link", {
        body: { email: `limit-${n}@example.org`, tos_accepted: true },
        headers: from("192.0.2.5"),
      })
    const links = await Promise.all([1, 2, 3, 4, 5, 6].map(link))
    expect(links.filter(({ status }) => status === 202)).toHaveLength(4)
    const kept = await service.query((sql) => sql<{ key: Uint8Array }>`select key from public_limit`)
    for (const { key } of kept) expect(Buffer.from(key).toString("latin1")).not.toContain("192.0.2")
  })
})

describe("page views", () => {
  it("are counted under a ceiling of rows, and only of our own sites", async () => {
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

describe("the client's address", () => {
  const trusted = ["10.0.0.0/8", "2001:db8::/32"].map((network) => ipaddr.parseCIDR(network))
  it.each([
    ["203.0.113.9", {}, "203.0.113.9"],
    ["203.0.113.9", { "x-forwarded-for": "192.0.2.1" }, "203.0.113.9"],
    ["10.0.0.1", { "x-forwarded-for": "192.0.2.1" }, "192.0.2.1"],
    ["10.0.0.1", { "x-forwarded-for": "1.1.1.1, 192.0.2.1, 10.0.0.2" }, "192.0.2.1"],
    ["::ffff:10.0.0.1", { forwarded: 'for=192.0.2.60;proto=http, for="10.9.9.9:4711"' }, "192.0.2.60"],
    ["10.0.0.1", { forwarded: 'for="[2a00:1450:4001:80e::200e]:443"' }, "10752:5200:16385:2062::/64"],
    ["10.0.0.1", { "x-forwarded-for": "nonsense" }, "10.0.0.1"],
  ])("of %s with %j is %s", (peer, headers, address) => expect(resolve(trusted, peer, headers)).toBe(address))
})
