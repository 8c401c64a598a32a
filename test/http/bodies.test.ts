import { hasMoreValues } from "@svc/api/http/Bodies"
import { expect, it } from "vitest"

it("counts the values of a JSON text by the commas and the opening brackets outside its strings", () => {
  expect(hasMoreValues("[1,2,3]", 4)).toBe(false)
  expect(hasMoreValues("[1,2,3,4]", 4)).toBe(true)
  expect(hasMoreValues(JSON.stringify(["a,b,c,d", 'x",",",",y', "[{[\\"]), 4)).toBe(false)
  expect(hasMoreValues("[".repeat(4), 4)).toBe(true)
  expect(hasMoreValues(JSON.stringify({ a: { b: [1, 2] }, c: ["\\", 3] }), 3)).toBe(true)
})
