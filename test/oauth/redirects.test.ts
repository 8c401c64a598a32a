import type { AddressBook } from "@svc/domain/Addresses"
import { isDocument } from "@svc/domain/oauth/Client"
import { isAcceptable, matches } from "@svc/domain/oauth/Redirect"
import { isOurs } from "@svc/domain/oauth/Resource"
import { describe, expect, it } from "vitest"

const book = {
  environment: "production",
  baseUrl: "https://id.example.org",
  profileBase: "https://people.example.org",
  tunnelDomain: "tunnel.example.org",
} as AddressBook

describe("Production", () => {
  it.each([
    ["https://claude.ai/api/mcp/auth_callback", true],
    ["http://localhost/callback", true],
    ["http://[::1]:1/", true],
    ["cursor://anysphere.cursor-mcp/oauth/callback", true],
    ["com.example.app:/callback", true],
    ["http://claude.ai/", false],
    ["https://id.example.org/auth/sign-in", false],
    ["https://people.example.org/@ada", false],
    ["https://ada.tunnel.example.org/cb", false],
    ["https://ada.TUNNEL.example.org.:8443/cb", false],
    ["https://tunnel.example.org.evil.example/cb", true],
    ["https://a b.example/", false],
    ["https://example.org/\u00e9", false],
    ["https:example.org/cb", false],
    ["https:///example.org/cb", false],
  ])("accepts %s as a redirect address: %s", (redirect, may) => expect(isAcceptable(book, redirect)).toBe(may))

  it.each([
    ["https://claude.ai/oauth/mcp-oauth-client-metadata", true],
    ["http://claude.ai/oauth/client", false],
    ["https://claude.ai/", false],
    ["https://claude.ai", false],
    ["https://claude.ai/a/../b", false],
    ["https://claude.ai/a#b", false],
    ["https://user@claude.ai/a", false],
    ["https://ada.tunnel.example.org/client.json", false],
    [`https://claude.ai/${"x".repeat(500)}`, false],
  ])("accepts %s as the address of a client document: %s", (id, may) => expect(isDocument(book, id)).toBe(may))

  it.each([
    ["https://id.example.org", true],
    ["https://ID.example.org/", true],
    ["https://id.example.org/api/mcp/", true],
    ["https://id.example.org/api", false],
    ["https://id.example.org/api/mcp?x", false],
    ["https://id.example.org.evil.example/api/mcp", false],
    ["nonsense", false],
  ])("accepts %s as the resource: %s", (resource, ours) => expect(isOurs(book, resource)).toBe(ours))

  it("ignores the port for local programs only", () => {
    expect(matches("http://127.0.0.1:9/cb", ["http://127.0.0.1/cb"])).toBe(true)
    expect(matches("http://127.0.0.1:9/cb", ["http://localhost/cb"])).toBe(false)
    expect(matches("https://app.example:9/cb", ["https://app.example/cb"])).toBe(false)
  })
})
