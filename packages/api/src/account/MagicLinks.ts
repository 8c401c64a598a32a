/** Requests a magic link, over the API or a page: finds or creates the account and mails the link. */
import { isIP } from "node:net"
import { type AddressBook, Addresses } from "@svc/domain/Addresses"
import { type Language, languages, type MagicLinkRequest } from "@svc/domain/account/Account"
import { MailRelayUnavailable } from "@svc/domain/problems/Problem"
import { Accounts } from "@svc/cluster/account/Accounts"
import { SystemMailer, type Letter } from "@svc/cluster/mail/SystemMailer"
import { Effect } from "effect"
import { type Headers, HttpServerRequest } from "effect/http"
import { texts } from "../Texts.ts"

const words = texts({
  subject: ["Your sign-in link", "Dein Anmeldelink", "Votre lien de connexion"],
  greeting: ["Hello,", "Hallo,", "Bonjour,"],
  instruction: [
    "open this link to sign in:",
    "öffne diesen Link, um dich anzumelden:",
    "ouvrez ce lien pour vous connecter :",
  ],
  button: ["Sign in", "Anmelden", "Se connecter"],
  expiry: [
    "The link works once and expires after 15 minutes.",
    "Der Link gilt einmal und läuft nach 15 Minuten ab.",
    "Ce lien ne fonctionne qu’une fois et expire après 15 minutes.",
  ],
  ignore: [
    "If you did not request it, you can ignore this email.",
    "Falls du ihn nicht angefordert hast, kannst du diese E-Mail ignorieren.",
    "Si vous ne l’avez pas demandé, vous pouvez ignorer cet e-mail.",
  ],
})

/**
 * The sign-in mail. `link` is a URL of this service with a base64url token and a code, so only its ampersands need
 * escaping in HTML.
 */
export const magicLinkLetter = (options: {
  readonly to: string
  readonly link: string
  readonly language: Language
}): Letter => {
  const say = words[options.language]
  return {
    to: options.to,
    subject: say.subject,
    text: `${say.greeting}\n\n${say.instruction}\n\n${options.link}\n\n${say.expiry}\n${say.ignore}\n`,
    html: `<!doctype html><html lang="${options.language}"><meta charset="utf-8"><body style="font:16px/1.5 system-ui,sans-serif;color:#111">
<p>${say.greeting}</p><p>${say.instruction}</p>
<p><a href="${options.link.replaceAll("&", "&amp;")}" style="display:inline-block;padding:10px 18px;background:#1a56db;color:#fff;border-radius:6px;text-decoration:none">${say.button}</a></p>
<p style="color:#555">${say.expiry} ${say.ignore}</p></body></html>`,
  }
}

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
 * Returns whether the client may see the link instead of receiving it by mail. This applies in development, except to a
 * web page whose host name somebody may own: such a site can resolve its name to this machine and read the responses
 * (DNS rebinding). A script cannot omit the Origin header of its posts.
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
    /** The action that follows the sign-in: a device login, or an authorization request of an app. */
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
