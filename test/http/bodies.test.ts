import { counted, hasMoreValues, isLarge, isWithoutBody, largestOf, tooLarge } from "@svc/api/http/Bodies"
import { Effect } from "effect"
import { expect, it } from "vitest"

const [kibibyte, mebibyte] = [1024, 1024 * 1024]
const bearer = { authorization: "Bearer x" }
const request = (headers: Record<string, string>, url = "/api/keys", text = "") =>
  ({ url, headers, text: Effect.succeed(text) }) as never

it("Value count of a JSON text adds commas and opening brackets outside strings", () => {
  expect(hasMoreValues("[1,2,3]", 4)).toBe(false)
  expect(hasMoreValues("[1,2,3,4]", 4)).toBe(true)
  expect(hasMoreValues(JSON.stringify(["a,b,c,d", 'x",",",",y', "[{[\\"]), 4)).toBe(false)
  expect(hasMoreValues("[".repeat(4), 4)).toBe(true)
  expect(hasMoreValues("{".repeat(4), 4)).toBe(true)
  expect([hasMoreValues(",".repeat(4_999)), hasMoreValues(",".repeat(5_000))]).toEqual([false, true])
  expect(hasMoreValues(JSON.stringify({ a: { b: [1, 2] }, c: ["\\", 3] }), 3)).toBe(true)
})

it("Pages and OAuth endpoints have the small limit with any credential", () => {
  const largest = (url: string, headers: Record<string, string>) => Number(largestOf({ url, headers } as never))
  for (const url of ["/auth/sign-in", "/auth/authorize", "/api/oauth/token", "/api/oauth/register?x"]) {
    expect([largest(url, {}), largest(url, bearer)], url).toEqual([64 * 1024, 64 * 1024])
  }
  expect([largest("/api/keys", {}), largest("/api/keys", bearer)]).toEqual([64 * 1024, 1024 * 1024])
})

it.each([
  ["/api/keys", 1],
  ["/api/identities/ada/messages/send", 10],
  ["/api/identities/ada/messages/send/?x=1", 10],
  ["/api/identities/ada/drafts", 10],
  ["/api/identities/ada/drafts/msg_1", 10],
  ["/api/identities/ada/drafts/msg_1/send", 1],
  ["/api/identities/ada/messages", 1],
  ["/api/mcp", 10],
  ["/api/mcp-x", 1],
  ["/api/identities/ada/connectors/bluesky/posts", 8],
  ["/api/identities/ada/connectors/bluesky/dms?x", 8],
  ["/api/identities/ada/connectors/bluesky/posts/1", 1],
])("A body for %s has at most %d MiB", (url, mebibytes) => {
  const declared = (length: number) => tooLarge(request({ ...bearer, "content-length": String(length) }, url))
  expect(declared(mebibytes * mebibyte)).toBeUndefined()
  expect(declared(mebibytes * mebibyte + 1)).toMatchObject({
    code: "payload_too_large",
    detail: `The request body exceeds the limit of ${mebibytes} MiB for this operation.`,
  })
})

it("A body without a credential has at most 64 KiB, whether its length is declared or not", () => {
  const declared = (length: string) => ({ "content-length": length })
  const [most, more] = [String(64 * kibibyte), String(64 * kibibyte + 1)]
  expect([tooLarge(request(declared(most))), tooLarge(request({}))]).toEqual([undefined, undefined])
  expect(tooLarge(request(declared(more)))?.detail).toMatch(/ 64 KiB /)
  const chunked = { "transfer-encoding": "chunked" }
  const all = [{}, declared("0"), declared("1"), declared(most), declared(more), chunked].map((one) => request(one))
  expect(all.map(isWithoutBody)).toEqual([true, true, false, false, false, false])
  expect(all.map(isLarge)).toEqual([false, false, false, false, true, true])
})

it("The values of a body above 8 KiB are counted before it is decoded", () => {
  const judged = (headers: Record<string, string>, values = 5_001) =>
    Effect.runSync(counted(request(headers, "/api/keys", ",".repeat(values - 1))))?.detail
  expect([judged({ "content-length": "8192" }), judged({ "content-length": "8193" })]).toEqual([
    undefined,
    "The request body contains more than 5000 values.",
  ])
  expect([judged({ "transfer-encoding": "chunked" }, 5_000), judged({ "transfer-encoding": "chunked" })]).toEqual([
    undefined,
    "The request body contains more than 5000 values.",
  ])
})
