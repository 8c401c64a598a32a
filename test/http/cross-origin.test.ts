/** The responses that pages of other origins may read (CORS). */
import { preflight, readable } from "@svc/api/http/CrossOrigin"
import { describe, expect, it } from "vitest"

const book = {
  environment: "production",
  baseUrl: "https://id.example",
  profileBase: "https://at.example",
  mcpOrigins: ["https://listed.example"],
} as never
const from = (origin?: string) => ({ headers: origin === undefined ? {} : { origin } }) as never

describe("A page of another origin", () => {
  it.each([
    ["/@ada/agent-card.json", "GET, HEAD", "*"],
    ["/api/openapi.json", "GET, HEAD", "*"],
    ["/.well-known/oauth-authorization-server", "GET, HEAD", "*"],
    ["/.well-known/oauth-protected-resource/api/mcp", "GET, HEAD", "*"],
    ["/api/oauth/token", "POST", "*, authorization"],
    ["/api/oauth/userinfo", "GET, HEAD, POST", "*, authorization"],
    ["/api/identities", "GET, HEAD, POST, PUT, PATCH, DELETE", "*, authorization"],
    ["/api/auth/whoami", "GET, HEAD, POST, PUT, PATCH, DELETE", "*, authorization"],
    ["/api/auth/device/token", "GET, HEAD, POST, PUT, PATCH, DELETE", "*, authorization"],
  ])("may read %s by %s", (path, methods, headers) => {
    expect(preflight(book, from("https://page.example"), path)).toEqual({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": methods,
      "access-control-allow-headers": headers,
      "access-control-max-age": "86400",
    })
    const response = readable(book, from("https://page.example"), path)
    expect(response?.["access-control-allow-origin"]).toBe("*")
    for (const name of ["etag", "request-id", "retry-after", "www-authenticate"])
      expect(response?.["access-control-expose-headers"]).toContain(name)
  })

  it.each(["/", "/@ada", "/auth/sign-in", "/api/contact", "/api/hits", "/api/auth/magic-link", "/api/oauth/other"])(
    "may not read %s",
    (path) => {
      expect(preflight(book, from("https://page.example"), path)).toEqual({})
      expect(readable(book, from("https://page.example"), path)).toBeUndefined()
    },
  )

  it.each([
    ["https://id.example", true],
    ["https://at.example", true],
    ["https://listed.example", true],
    ["https://page.example", false],
    ["http://localhost:3000", false],
    [undefined, false],
  ])("may call the MCP server if it is of the service or listed: %s", (origin, may) => {
    const headers = { "access-control-allow-origin": origin, vary: "origin" }
    const found = preflight(book, from(origin), "/api/mcp")
    if (may) expect(found).toMatchObject({ ...headers, "access-control-allow-methods": "POST" })
    else expect(found).toEqual({})
    const response = readable(book, from(origin), "/api/mcp")
    if (may) expect(response).toMatchObject(headers)
    else expect(response).toBeUndefined()
  })
})

it("A request of a program gets no headers for pages", () => {
  expect(readable(book, from(), "/api/identities")).toBeUndefined()
})
