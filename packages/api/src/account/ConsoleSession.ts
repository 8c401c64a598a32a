/**
 * The session cookie of a browser, which scripts cannot read. It counts as a credential only if the browser declares a
 * same-origin request: a Tunnel can serve content of the same *site*, so `SameSite` alone is no proof. A state-changing
 * call also needs a header that forms and foreign pages cannot send without a preflight. The prefix `__Host-` keeps other
 * hosts from setting the cookie.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import { Headers, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { RequestContextState } from "../RequestContext.ts"

const secureName = "__Host-svc_session"
/** Browsers reject `__Host-` cookies without TLS, which development at http://localhost lacks. */
const plainName = "svc_session"

/** Tells scripts that a session exists, and nothing else. Without this cookie the console does not ask who is signed in. */
const markName = "svc_signed_in"

const safe = new Set(["GET", "HEAD"])

/** Paths on which the session counts as a credential: the API, and the mail that the console shows in frames. */
const taken = /^\/api\/|^\/console\/mail\//

const isSecure = ({ baseUrl }: AddressBook) => baseUrl.startsWith("https:")

/** Returns the session token, or undefined if the request has none. */
export const tokenOf = (book: AddressBook, request: HttpServerRequest.HttpServerRequest): string | undefined =>
  request.cookies[isSecure(book) ? secureName : plainName]

/** Returns whether the browser has a marker of a session. The console checks whether the session is still valid. */
export const isMarked = ({ cookies }: HttpServerRequest.HttpServerRequest): boolean => cookies[markName] === "1"

/** Returns the request with the session as its credential, if the session may be used for it. */
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

/**
 * Sets the session cookie at sign-in. It is `Lax`, so that a link in a mail opens signed in. The service ends a session 30
 * days after its last use. The cookie lasts longer, for the 400 days that browsers allow (RFC 6265bis, section 5.5), so
 * that no other response has to renew it: a late response would replace the cookie of an account that has signed in since.
 */
export const remember =
  (book: AddressBook, token: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
    const kept = { sameSite: "lax", secure: isSecure(book), path: "/", maxAge: "400 days" } as const
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

/** Deletes the session cookie and the browser's cached data of the account. */
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
