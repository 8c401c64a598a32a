/**
 * The session of a browser: a cookie that no script can read. It stands in for `Authorization` only where the browser
 * itself says that a page of this very origin made the call; what a Tunnel serves can be of the same *site*, so
 * `SameSite` alone is no proof. A call that changes something also carries a header that no form and no foreign page can
 * send without being asked first. The prefix `__Host-` keeps other hosts from planting a cookie.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import { Headers, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { RequestContextState } from "../RequestContext.ts"

const secureName = "__Host-svc_session"
/** Development at http://localhost: a browser takes no `__Host-` cookie without TLS. */
const plainName = "svc_session"

/** Says to scripts that there is a session, and nothing else: without it the console asks nobody who is signed in. */
const markName = "svc_signed_in"

const safe = new Set(["GET", "HEAD"])

/** Where the session counts as a credential: the API, and the mail that the console frames. */
const taken = /^\/api\/|^\/console\/mail\//

const isSecure = ({ baseUrl }: AddressBook) => baseUrl.startsWith("https:")

/** The session's token; undefined for whom there is none. */
export const tokenOf = (book: AddressBook, request: HttpServerRequest.HttpServerRequest): string | undefined =>
  request.cookies[isSecure(book) ? secureName : plainName]

/** Whether the browser says that somebody is signed in; whether that still holds the console asks. */
export const isMarked = ({ cookies }: HttpServerRequest.HttpServerRequest): boolean => cookies[markName] === "1"

/** The request, with the session as its credential where that may stand for it. */
export const withSession = (
  book: AddressBook,
  request: HttpServerRequest.HttpServerRequest,
): HttpServerRequest.HttpServerRequest => {
  const { headers } = request
  if (headers["cookie"] === undefined || headers["authorization"] !== undefined) return request
  if (headers["sec-fetch-site"] !== "same-origin" || !taken.test(request.url)) return request
  if (!safe.has(request.method) && headers["svc-console"] !== "1") return request
  const token = tokenOf(book, request)
  return token === undefined
    ? request
    : request.modify({ headers: Headers.set(headers, "authorization", `Bearer ${token}`) })
}

/** Keeps the session in the browser that opened it. `Lax`, so that a click in a mail arrives signed in. */
export const remember =
  (book: AddressBook, token: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
    const kept = { sameSite: "lax", secure: isSecure(book), path: "/", maxAge: "30 days" } as const
    return HttpServerResponse.setCookieUnsafe(
      HttpServerResponse.setCookieUnsafe(response, isSecure(book) ? secureName : plainName, token, {
        ...kept,
        httpOnly: true,
      }),
      markName,
      "1",
      kept,
    )
  }

/** The session has ended: the browser forgets it and what it kept of the account. */
export const forget = (
  book: AddressBook,
  request: HttpServerRequest.HttpServerRequest,
  exchange: RequestContextState,
) => {
  if (tokenOf(book, request) === undefined) return
  const attributes = `Path=/; Max-Age=0; HttpOnly; SameSite=Lax${isSecure(book) ? "; Secure" : ""}`
  exchange.headers["set-cookie"] = `${isSecure(book) ? secureName : plainName}=; ${attributes}`
  exchange.headers["clear-site-data"] = `"cache"`
}
