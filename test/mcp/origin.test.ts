/** The origins whose pages may call the MCP server. */
import { mayCallMcp } from "@svc/api/http/CrossOrigin"
import type { AddressBook } from "@svc/domain/Addresses"
import { expect, it } from "vitest"

const book = {
  baseUrl: "https://id.example.org",
  profileBase: "https://people.example.org",
  mcpOrigins: ["https://inspector.example"],
} as unknown as AddressBook

it.each([
  ["https://id.example.org", true, true],
  ["https://people.example.org", true, true],
  ["https://inspector.example", true, true],
  ["https://inspector.example:8443", false, false],
  ["https://id.example.org.evil.example", false, false],
  ["null", false, false],
  ["http://localhost:5173", false, true],
  ["http://127.0.0.1", false, true],
  ["http://[::1]:1", false, true],
])("The origin %s is accepted in production: %s, in Development: %s", (origin, inProduction, inDevelopment) => {
  expect(mayCallMcp({ ...book, environment: "production" }, origin)).toBe(inProduction)
  expect(mayCallMcp({ ...book, environment: "development" }, origin)).toBe(inDevelopment)
})

it("Every origin is accepted if the operator lists *", () => {
  const open = { ...book, environment: "production", mcpOrigins: ["*"] } as const
  expect(mayCallMcp(open, "https://any.example")).toBe(true)
})
