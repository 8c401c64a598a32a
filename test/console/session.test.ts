/** The session cookie is only accepted if the browser says that a page of this origin made the call. */
import type { Addresses } from "@svc/domain/Addresses"
import { remember, withSession } from "@svc/api/account/ConsoleSession"
import { Cookies, HttpServerRequest, HttpServerResponse } from "effect/http"
import { beforeAll, describe, expect, it } from "vitest"
import { buildConsole } from "../harness/Console.ts"
import { call, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let cookie: string
beforeAll(async () => {
  buildConsole()
  service = await sharedService()
  cookie = `svc_session=${(await signUp(service.base)).session}`
})

const status = async (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
  (await call(service.base, method, path, { headers, ...(body === undefined ? {} : { body }) })).status

const same = { "sec-fetch-site": "same-origin" }
const console_ = { ...same, "svc-console": "1" }

describe("The session cookie", () => {
  it.each([
    ["a page of this origin", same, 200],
    ["a page of the same site, such as a tunnel", { "sec-fetch-site": "same-site" }, 401],
    ["a foreign page", { "sec-fetch-site": "cross-site" }, 401],
    ["a typed address", { "sec-fetch-site": "none" }, 401],
    ["a program without fetch metadata", {}, 401],
  ] as const)("authorizes a read of %s: %j → %i", async (_, headers, expected) =>
    expect(await status("GET", "/api/auth/session", { ...headers, cookie })).toBe(expected),
  )

  it.each([
    ["with the header that no form can send", console_, 201],
    ["without it", same, 401],
    ["from the same site", { "sec-fetch-site": "same-site", "svc-console": "1" }, 401],
    ["from a foreign page", { "sec-fetch-site": "cross-site", "svc-console": "1" }, 401],
  ] as const)("authorizes a change %s: %j → %i", async (_, headers, expected) =>
    expect(await status("POST", "/api/keys", { ...headers, cookie }, { name: "one" })).toBe(expected),
  )

  it("does not override another credential", async () =>
    expect(await status("GET", "/api/auth/session", { ...same, cookie, authorization: "Bearer svc_sess_no" })).toBe(
      401,
    ))

  it("opens the live stream, and is deleted at sign-out", async () => {
    const owner = await signUp(service.base)
    const own = { ...console_, cookie: `svc_session=${owner.session}` }
    const stopped = new AbortController()
    const stream = await fetch(`${service.base}/api/events/stream`, { headers: own, signal: stopped.signal })
    expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"])
    stopped.abort()
    const out = await call(service.base, "DELETE", "/api/auth/session", { headers: own })
    expect([out.status, out.headers.get("clear-site-data")]).toEqual([204, '"cache"'])
    expect(out.headers.get("set-cookie")).toBe("svc_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax")
    expect(await status("GET", "/api/auth/session", own)).toBe(401)
  })

  it("has the __Host- prefix under https", () => {
    const book = { baseUrl: "https://id.example.org" } as Addresses["Service"]
    const asked = (cookie: string) =>
      withSession(
        book,
        HttpServerRequest.fromWeb(
          new Request("https://id.example.org/api/auth/session", { headers: { cookie, ...same } }),
        ),
      ).headers["authorization"]
    expect(asked("__Host-svc_session=abc")).toBe("Bearer abc")
    expect(asked("svc_session=abc")).toBeUndefined()
  })
})

const tagWith = (coding: string) => (coding === "" ? /^"[^;"]+"$/ : new RegExp(`^"[^;"]+;${coding}"$`))

describe("The build of the console", () => {
  it("is served with the right headers and encodings, and nothing beside it", async () => {
    const page = await fetch(`${service.base}/console/identities/ada`)
    const html = await page.text()
    expect(page.status).toBe(200)
    expect(page.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; script-src 'self'; .*trusted-types 'none'$/,
    )
    expect(page.headers.get("cache-control")).toBe("no-cache")
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/)
    const repeated = await fetch(`${service.base}/console/`, {
      headers: { "if-none-match": page.headers.get("etag")! },
    })
    expect(repeated.status).toBe(304)
    const script = /src="(\/console\/assets\/[^"]+)"/.exec(html)![1]!
    const tags = new Map<string, string>()
    for (const coding of ["br", "gzip", "identity"]) {
      const asset = await fetch(`${service.base}${script}`, { headers: { "accept-encoding": coding } })
      tags.set(coding, asset.headers.get("etag")!)
      expect(asset.headers.get("content-encoding")).toBe(coding === "identity" ? null : coding)
      expect(asset.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
      expect(asset.headers.get("vary")).toBe("accept-encoding")
      expect((await asset.text()).length).toBeGreaterThan(10_000)
    }
    // Each encoding has a tag of its own, and a cache that has any of them knows the file.
    expect([...tags.values()]).toEqual(["br", "gzip", ""].map((coding) => expect.stringMatching(tagWith(coding))))
    for (const tag of tags.values()) {
      const headers = { "accept-encoding": "gzip", "if-none-match": tag }
      expect((await fetch(`${service.base}${script}`, { headers })).status, tag).toBe(304)
    }
    expect((await fetch(`${service.base}${script}`, { method: "HEAD" })).status).toBe(200)
    for (const path of [
      "/console/assets/nothing.js",
      "/console/assets/..%2f.stamp",
      "/console/assets/%2e%2e%2findex.html",
    ]) {
      expect((await fetch(`${service.base}${path}`)).status, path).toBe(404)
    }
  })

  it("is cached by the browser, also with a cookie", async () => {
    const asset = /src="(\/console\/assets\/[^"]+)"/.exec(await (await fetch(`${service.base}/console/`)).text())![1]!
    const response = await fetch(`${service.base}${asset}`, { headers: { ...same, cookie } })
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
  })
})

describe("The cookie of a new session", () => {
  it.each([
    ["https://id.example", "__Host-svc_session", true],
    ["http://localhost:8080", "svc_session", false],
  ])("of %s is %s, httpOnly and SameSite", (baseUrl, name, secure) => {
    const response = remember({ baseUrl } as Addresses["Service"], "svc_sess_x")(HttpServerResponse.empty())
    const cookies = Cookies.toSetCookieHeaders(response.cookies)
    const session = cookies.find((text) => text.startsWith(`${name}=svc_sess_x;`))
    expect(session).toMatch(/; HttpOnly(;|$)/)
    expect(session).toMatch(/; SameSite=Lax(;|$)/)
    expect(session).toMatch(/; Path=\/(;|$)/)
    expect(session).not.toMatch(/Domain=/)
    expect(/; Secure(;|$)/.test(session!)).toBe(secure)
  })
})
