/** Entity tags: which responses have one, which requests know it, and which changes it permits (RFC 9110 section 13). */
import { applyTag, tagOfCoding, tagOfValue, unchanged, untagged, withResourceTags } from "@svc/api/EntityTags"
import type { RequestContextState } from "@svc/api/RequestContext"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect, Exit, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { describe, expect, it } from "vitest"

const body = { name: "Ada", last_used_at: null as string | null }
const of = (value: object, status = 200) => HttpServerResponse.jsonUnsafe(value, { status })
const applied = (
  response: HttpServerResponse.HttpServerResponse,
  ifNoneMatch?: string,
  method = "GET",
  tagged = true,
) => {
  const exchange = { tagged, headers: {} as Record<string, string> } as RequestContextState
  const answer = applyTag(exchange, method, ifNoneMatch, response)
  return { status: answer.status, tag: answer.headers["etag"] ?? exchange.headers["etag"] }
}
const { tag } = applied(of(body))

describe("The entity tag of a response", () => {
  it("depends on what somebody edits only", () => {
    expect(tag).toMatch(/^"[\w-]{27}"$/)
    expect(applied(of({ ...body, last_used_at: "2026-11-20T12:00:00.000Z" })).tag).toBe(tag)
    expect(applied(of({ ...body, name: "Bob" })).tag).not.toBe(tag)
  })

  it("exists for reads that succeeded", () => {
    expect(applied(of(body), undefined, "HEAD").tag).toBe(tag)
    for (const method of ["POST", "PATCH", "DELETE"]) expect(applied(of(body), tag, method)).toEqual({ status: 200 })
    expect(applied(of(body, 201), tag)).toEqual({ status: 201 })
    expect(applied(of(body), undefined, "GET", false)).toEqual({ status: 200 })
    const versioned = HttpServerResponse.setHeader(of(body), "etag", '"v7"')
    expect(applied(versioned, '"v7"', "GET", false)).toEqual({ status: 304, tag: '"v7"' })
  })

  it.each([
    [tag!, 304],
    [`W/${tag}`, 304],
    [`"other", ${tag}`, 304],
    [" * ", 304],
    [tag!.replace(/"$/, ';br"'), 304],
    [tag!.replace(/"$/, ';gzip"'), 304],
    [tag!.replace(/"$/, ';zstd"'), 200],
    ['"other"', 200],
    [tag!.replaceAll('"', ""), 200],
    ["", 200],
  ])("with If-None-Match %s is %i", (header, status) => {
    expect(applied(of(body), header).status).toBe(status)
    expect(applied(of(body), header, "HEAD").status).toBe(status)
    // The response names the representation that the caller has.
    if (header.includes(";br")) expect(applied(of(body), header).tag).toBe(header)
  })

  it("has the coding of the response, which a change need not repeat", () => {
    expect(tagOfCoding('"a"', "br")).toBe('"a;br"')
    const request = (condition: string) =>
      withResourceTags(HttpServerRequest.fromWeb(new Request("http://x/", { headers: { "if-match": condition } })))
        .headers["if-match"]
    expect(request('"a;br", "b;gzip", "c"')).toBe('"a", "b", "c"')
    expect(request('"c"')).toBe('"c"')
  })
})

describe("If-Match", () => {
  const Body = Schema.Struct({ name: Schema.String, last_used_at: Schema.NullOr(Schema.String) })
  const own = tagOfValue(Body)(body)
  const outcome = (header: string | undefined, read: Effect.Effect<typeof body, NotFound> = Effect.succeed(body)) => {
    const exit = Effect.runSyncExit(Effect.result(unchanged(Body)(header, read)))
    if (Exit.isFailure(exit)) return "defect"
    return exit.value._tag === "Success" ? exit.value.success : exit.value.failure.code
  }

  it("permits a change of what it names, and returns what was seen", () => {
    expect(own).toBe(tag)
    expect(outcome(own)).toEqual(body)
    expect(outcome(`"other", ${own}`)).toEqual(body)
    for (const header of ['"other"', `W/${own}`, ""]) expect(outcome(header), header).toBe("precondition_failed")
    for (const header of [undefined, "*", " * "]) expect(outcome(header)).toBeUndefined()
  })

  it("of a resource that is gone fails", () => {
    const gone = Effect.fail(new NotFound({ detail: "Gone." }))
    expect([outcome(own, gone), outcome(undefined, gone)]).toEqual(["precondition_failed", undefined])
  })

  it("of a resource without a tag can only be *", () => {
    const permitted = (header: string | undefined) => Exit.isSuccess(Effect.runSyncExit(untagged(header)))
    expect([undefined, "*", " *", '"a"', ""].map(permitted)).toEqual([true, true, true, false, false])
  })
})
