import { Addresses } from "@svc/domain/Addresses"
import { fromOurPages } from "@svc/api/pages/SessionCookie"
import { signInForm } from "@svc/api/pages/SignInPage"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { describe, expect, it } from "vitest"

const judge = (environment: "development" | "production", headers: Record<string, string>) => {
  const baseUrl = environment === "production" ? "https://id.example.org" : "http://localhost:8080"
  const request = HttpServerRequest.fromWeb(new Request(`${baseUrl}/auth/magic-link`, { method: "POST", headers }))
  return Effect.runSync(
    fromOurPages.pipe(
      Effect.provideService(Addresses, { environment, baseUrl } as Addresses["Service"]),
      Effect.provideService(HttpServerRequest.HttpServerRequest, request),
    ),
  )
}

describe("Form origin check", () => {
  it.each([
    [{ origin: "https://id.example.org" }, true],
    [{ "sec-fetch-site": "same-origin" }, true],
    [{ origin: "https://evil.example", "sec-fetch-site": "cross-site" }, false],
    [{ origin: "https://evil.example" }, false],
    [{ "sec-fetch-site": "same-site" }, false],
    [{ "sec-fetch-site": "none" }, false],
    [{ origin: "null" }, false],
    [{}, false],
    [{ origin: "http://id.example.org", host: "id.example.org" }, false],
  ] as const)("accepts %j in production: %s", (headers, ours) => expect(judge("production", headers)).toBe(ours))

  it.each([
    [{}, true],
    [{ origin: "http://127.0.0.1:8080", host: "127.0.0.1:8080" }, true],
    [{ origin: "http://evil.example", host: "localhost:8080" }, false],
    [{ origin: "http://127.0.0.1:8080", host: "127.0.0.1:8080", "sec-fetch-site": "cross-site" }, false],
  ] as const)("accepts %j in development: %s", (headers, ours) => expect(judge("development", headers)).toBe(ours))
})

it("The sign-in form escapes its notice and what was entered", () => {
  const shown = signInForm("en", { notice: "<a>", email: '"<b>', invite: '"<c>' })
  for (const escaped of ["&lt;a&gt;", "&quot;&lt;b&gt;", "&quot;&lt;c&gt;"]) expect(shown).toContain(escaped)
})
