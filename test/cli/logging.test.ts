import { entryOf } from "@svc/api/RequestLog"
import { requestLine, wrongLevel } from "@svc/cli/Logging"
import { describe, expect, it } from "vitest"

describe("the line of a request", () => {
  const request = {
    method: "GET",
    url: "/auth/magic-link?token=secret",
    headers: { authorization: "Bearer svc_admin_x" },
  }

  it("says what was asked, how it ended and by which kind of credential, and no secret", () => {
    const page = entryOf(request, undefined, 200, performance.now(), "req_1")
    expect(page).toMatchObject({ method: "GET", route: "/auth/magic-link", status: 200, credential: "admin_key" })
    expect(JSON.stringify(page)).not.toMatch(/secret|svc_admin_x/)
    expect(entryOf(request, "/api/keys/:id", 404, performance.now(), "req_1").route).toBe("/api/keys/:id")
    expect(entryOf({ ...request, headers: {} }, undefined, 200, 0, "r").credential).toBeNull()
  })

  it("is written from `info` down, and a level that is none is named", () => {
    expect(requestLine("Info")).toBeTypeOf("function")
    expect(requestLine("Warn")).toBeUndefined()
    expect(wrongLevel("loud")).toContain('SVC_LOG_LEVEL is "loud"')
    expect([wrongLevel("debug"), wrongLevel("WARN"), wrongLevel(undefined)]).toEqual([undefined, undefined, undefined])
  })
})
