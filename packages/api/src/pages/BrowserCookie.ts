/**
 * The cookie with an app's authorization request while the user signs in, so that only the browser that started the request
 * can continue it. Scripts cannot read the cookie.
 */
import type { AddressBook } from "@svc/domain/Addresses"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

/** The page on which an app's request is decided. */
export const authorizePath = "/auth/authorize"

const isSecure = ({ baseUrl }: AddressBook) => baseUrl.startsWith("https:")
/** The prefix keeps other hosts from setting the cookie; browsers accept it only with TLS. */
const nameOf = (book: AddressBook) => (isSecure(book) ? "__Host-svc_authorize" : "svc_authorize")

interface BrowserRequest {
  readonly id: string
  readonly secret: string
}

export const browserOf = (
  book: AddressBook,
  request: HttpServerRequest.HttpServerRequest,
): BrowserRequest | undefined => {
  const [, id, secret] = /^([0-9a-f-]{36})\.([A-Za-z0-9_-]{32})$/.exec(request.cookies[nameOf(book)] ?? "") ?? []
  return id === undefined || secret === undefined ? undefined : { id, secret }
}

export const keepIn =
  (book: AddressBook, { id, secret }: BrowserRequest) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
    HttpServerResponse.setCookieUnsafe(response, nameOf(book), `${id}.${secret}`, {
      sameSite: "lax",
      secure: isSecure(book),
      httpOnly: true,
      path: "/",
      maxAge: "15 minutes",
    })
