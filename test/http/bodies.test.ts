import { hasMoreValues, largestOf } from "@svc/api/http/Bodies"
import { expect, it } from "vitest"

it("Value count of a JSON text adds commas and opening brackets outside strings", () => {
  expect(hasMoreValues("[1,2,3]", 4)).toBe(false)
  expect(hasMoreValues("[1,2,3,4]", 4)).toBe(true)
  expect(hasMoreValues(JSON.stringify(["a,b,c,d", 'x",",",",y', "[{[\\"]), 4)).toBe(false)
  expect(hasMoreValues("[".repeat(4), 4)).toBe(true)
  expect(hasMoreValues(JSON.stringify({ a: { b: [1, 2] }, c: ["\\", 3] }), 3)).toBe(true)
})

it("Pages and OAuth endpoints have the small limit with any credential", () => {
  const largest = (url: string, headers: Record<string, string>) => Number(largestOf({ url, headers } as never))
  const bearer = { authorization: "Bearer x" }
  for (const url of ["/auth/sign-in", "/auth/authorize", "/api/oauth/token", "/api/oauth/register?x"]) {
    expect([largest(url, {}), largest(url, bearer)], url).toEqual([64 * 1024, 64 * 1024])
  }
  expect([largest("/api/keys", {}), largest("/api/keys", bearer)]).toEqual([64 * 1024, 1024 * 1024])
})
