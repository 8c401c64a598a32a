/** Requests a magic link, over the API or a page: finds or creates the account and mails the link. */
import { isIP } from "node:net"
import { type AddressBook, Addresses } from "@svc/domain/Addresses"
import { type Language, languages, type MagicLinkRequest } from "@svc/domain/account/Account"
import { MailRelayUnavailable } from "@svc/domain/problems/Problem"
import { Accounts } from "@svc/cluster/account/Accounts"
import { SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { Effect } from "effect"
import { type Headers, HttpServerRequest } from "effect/http"
import { magicLinkLetter } from "./MagicLinkLetter.ts"

/** Returns the first supported language of `Accept-Language`, or English. */
export const spoken = (header: string | undefined): Language => {
  const wanted = (header ?? "").split(",").map((range) => range.trim().slice(0, 2).toLowerCase())
  return wanted.flatMap((tag) => languages.filter((language) => language === tag))[0] ?? "en"
}

/**
 * Names that nobody can register: reserved ones (RFC 6761, RFC 6762, RFC 8375, ICANN's `.internal`) and names without a
 * dot.
 */
const nobodys = /^[^.]+$|\.(?:localhost|local|internal|test|home\.arpa)$/

/**
 * Returns whether the client may see the link instead of receiving it by mail. That holds in development, except for a web
 * page whose host name somebody may own: such a site can resolve its name to this machine and read the responses (DNS
 * rebinding). A script cannot omit the Origin header of its posts.
 */
const isShown = ({ baseUrl, environment, profileBase }: AddressBook, { host, origin }: Headers.Headers): boolean => {
  if (environment !== "development") return false
  if (host === undefined || origin === undefined) return true
  const name = URL.parse(`http://${host}`)?.hostname
  return (
    name !== undefined &&
    (nobodys.test(name) || isIP(name) !== 0 || [baseUrl, profileBase].some((ours) => new URL(ours).hostname === name))
  )
}

const notMailed = () =>
  new MailRelayUnavailable({
    detail: "The sign-in link could not be sent. Request it again in a moment.",
    retry_after_seconds: 30,
  })

export const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const mailer = yield* SystemMailer
  const book = yield* Addresses

  return Effect.fn("MagicLinks.request")(function* (
    request: MagicLinkRequest,
    acceptLanguage: string | undefined,
    /** What the link continues with: a device login, or an authorization request of an app. */
    then: { readonly userCode?: string | undefined; readonly request?: string | undefined } = {},
  ) {
    const issued = yield* accounts.requestLink(request, spoken(acceptLanguage))
    const link =
      issued.token === null
        ? null
        : `${book.baseUrl}/auth/magic-link?token=${issued.token}${then.userCode === undefined ? "" : `&user_code=${then.userCode}`}${then.request === undefined ? "" : `&request=${then.request}`}`
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const shown = isShown(book, headers)
    if (link !== null) {
      yield* Effect.catch(
        mailer.send(magicLinkLetter({ to: request.email, link, language: issued.language })),
        // A client that sees the link does not need the mail.
        () => (shown ? Effect.void : Effect.fail(notMailed())),
      )
    }
    return { status: "sent" as const, expires_at: issued.expiresAt, dev_magic_link: shown ? link : null }
  })
})
