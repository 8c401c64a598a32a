/** When a browser's session cookie counts as a credential, and its attributes with and without TLS. */
import * as ConsoleSession from "@svc/api/account/ConsoleSession"
import type { RequestContextState } from "@svc/api/RequestContext"
import type { AddressBook } from "@svc/domain/Addresses"
import { Cookies, HttpServerRequest, HttpServerResponse } from "effect/http"
import { describe, expect, it } from "vitest"

const secure = { baseUrl: "https://id.example" } as AddressBook
const plain = { baseUrl: "http://localhost:8080" } as AddressBook
const name = (book: AddressBook) => (book === secure ? "__Host-svc_session" : "svc_session")

const request = (book: AddressBook, method: string, path: string, headers: Readonly<Record<string, string>>) =>
  HttpServerRequest.fromWeb(new Request(`${book.baseUrl}${path}`, { method, headers }))

describe.each([
  ["https", secure, plain],
  ["http", plain, secure],
] as const)("The session cookie over %s", (_, book, other) => {
  const cookie = `${name(book)}=tok; ${name(other)}=wrong`
  const credential = (method: string, path: string, headers: Readonly<Record<string, string>>) =>
    ConsoleSession.withSession(book, request(book, method, path, { cookie, ...headers })).headers["authorization"]
  const own = { "sec-fetch-site": "same-origin" }
  const marked = { ...own, "svc-console": "1" }

  it("is a credential of same-origin requests to the API and to shown mail, and of changes with the header", () => {
    for (const path of ["/api/account", "/console/mail/ada/1/body"]) {
      expect(credential("GET", path, own)).toBe("Bearer tok")
      expect(credential("HEAD", path, own)).toBe("Bearer tok")
      expect(credential("POST", path, marked)).toBe("Bearer tok")
    }
  })

  it.each([
    ["GET", "/api/account", {}],
    ["GET", "/api/account", { "sec-fetch-site": "same-site" }],
    ["GET", "/api/account", { "sec-fetch-site": "cross-site" }],
    ["GET", "/console/", own],
    ["GET", "/x/api/", own],
    ["POST", "/api/account", own],
    ["DELETE", "/api/account", { ...own, "svc-console": "2" }],
    ["GET", "/api/account", { ...own, cookie: "svc_signed_in=1" }],
  ])("is none of %s %s with %j", (method, path, headers) =>
    expect(credential(method, path, headers as Record<string, string>)).toBeUndefined(),
  )

  it("does not replace another credential", () =>
    expect(credential("GET", "/api/account", { ...own, authorization: "Bearer key" })).toBe("Bearer key"))

  it("is kept by the browser for as long as it may, hidden from scripts, beside a mark that they see", () => {
    const { cookies } = ConsoleSession.remember(book, "tok")(HttpServerResponse.empty())
    const [session, mark, ...more] = Cookies.toSetCookieHeaders(cookies)
    expect(more).toEqual([])
    for (const one of [session, mark])
      expect([
        /; Secure/.test(one!),
        /; SameSite=Lax/.test(one!),
        /; Path=\/(?:;|$)/.test(one!),
        /Max-Age=34560000/.test(one!),
      ]).toEqual([book === secure, true, true, true])
    expect(session).toMatch(new RegExp(`^${name(book)}=tok;.*; HttpOnly`))
    expect(mark).toMatch(/^svc_signed_in=1;/)
    expect(mark).not.toContain("HttpOnly")
  })

  it("is deleted with the browser's cache, if there is one", () => {
    const forgotten = (given: string) => {
      const exchange = { headers: {} } as RequestContextState
      ConsoleSession.forget(book, request(book, "GET", "/", { cookie: given }), exchange)
      return exchange.headers
    }
    expect(forgotten("a=b")).toEqual({})
    expect(forgotten(cookie)).toEqual({
      "set-cookie": `${name(book)}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax${book === secure ? "; Secure" : ""}`,
      "clear-site-data": '"cache"',
    })
  })

  it("is announced to scripts by the mark only", () => {
    const isMarked = (given: string) => ConsoleSession.isMarked(request(book, "GET", "/", { cookie: given }))
    expect([isMarked("svc_signed_in=1"), isMarked("svc_signed_in=0"), isMarked(cookie)]).toEqual([true, false, false])
  })
})
