/** Every path responds to unsupported methods with the supported ones, whatever the names of its parameters are. */
import { Api } from "@svc/domain/Api"
import { beforeAll, expect, it } from "vitest"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

const endpoints = Object.values(Api.groups).flatMap((group) =>
  Object.values(group.endpoints).map(({ method, path }): readonly [string, string] => [method, path]),
)

it("OPTIONS lists the method of each endpoint, and other methods are a 405", async () => {
  for (const [method, path] of endpoints) {
    const url = `${service.base}${path.replace(/:\w+/g, "x")}`
    const options = await fetch(url, { method: "OPTIONS" })
    expect([path, options.status]).toEqual([path, 204])
    expect(options.headers.get("allow")?.split(", ")).toContain(method)
    // Scripts of other origins may read what is public, and call the API with a key of their own.
    const isOpen =
      path === "/@:handle/agent-card.json" ||
      (path.startsWith("/api/") &&
        !/^\/api\/(contact|hits|auth\/(magic-link|sessions?|registration|tos|device\/:userCode))/.test(path))
    expect([path, options.headers.get("access-control-allow-origin")]).toEqual([path, isOpen ? "*" : null])
    const allowed = options.headers.get("allow")!
    const other = ["GET", "POST", "PUT", "PATCH", "DELETE"].find((one) => !allowed.split(", ").includes(one))!
    const refused = await fetch(url, { method: other })
    expect([path, other, refused.status, refused.headers.get("allow")]).toEqual([path, other, 405, allowed])
  }
})

it("OPTIONS and a 405 list the methods of pages, documents and the endpoints of OAuth", async () => {
  const get = "GET, HEAD, OPTIONS"
  for (const [path, methods] of [
    ["/", get],
    ["/auth/sign-in", "GET, HEAD, POST, OPTIONS"],
    ["/auth/connectors/callback", "GET, HEAD, POST, OPTIONS"],
    ["/@x/agent-card.json", get],
    ["/@x/did.json", get],
    ["/docs", get],
    ["/docs/x/y", get],
    ["/console/x", get],
    ["/mail/config-v1.1.xml", get],
    ["/.well-known/openid-configuration", get],
    ["/.well-known/oauth-protected-resource/api/mcp", get],
    ["/.well-known/webfinger", get],
    ["/api/mcp", "POST, OPTIONS"],
    ["/api/oauth/token", "POST, OPTIONS"],
    ["/api/oauth/userinfo", "GET, HEAD, POST, OPTIONS"],
  ] as const) {
    const options = await fetch(`${service.base}${path}`, { method: "OPTIONS" })
    const refused = await fetch(`${service.base}${path}`, { method: "DELETE" })
    const allow = [options, refused].map(({ headers }) => headers.get("allow"))
    expect([path, options.status, refused.status, ...allow]).toEqual([path, 204, 405, methods, methods])
  }
  const options = await fetch(`${service.base}/api/oauth/userinfo`, { method: "OPTIONS" })
  expect(options.headers.get("access-control-allow-headers")).toBe("*, authorization")
})

it("A path below an endpoint, and one with an empty segment, do not exist", async () => {
  const deepest = endpoints
    .map(([, path]) => path)
    .toSorted((one, other) => other.split("/").length - one.split("/").length)
  for (const path of [`${deepest[0]}/x`, "/api/keys/", "/api//keys", "/api/keys//x"]) {
    const answer = await fetch(`${service.base}${path.replace(/:\w+/g, "x")}`, { method: "PUT" })
    expect([path, answer.status]).toEqual([path, 404])
  }
})
