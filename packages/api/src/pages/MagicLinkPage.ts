/**
 * Where a magic link leads. Opening it changes nothing, since mail scanners open links; a click consumes it. Who came to
 * confirm a device goes on to that, anyone else to the console. The session stays in the browser's cookie: its token is
 * shown nowhere.
 */
import { Addresses } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as MagicLinkSignIn from "../account/MagicLinkSignIn.ts"
import { remember } from "../account/ConsoleSession.ts"
import { escape, page } from "./Page.ts"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { authorizePath as authorize, browserOf } from "./BrowserCookie.ts"
import { words as consentWords } from "./ConsentWords.ts"
import { fromOurPages } from "./SessionCookie.ts"
import { readCode } from "./SignInPage.ts"
import { language } from "./PageLanguage.ts"

const path = "/auth/magic-link"
/** The form of our tokens; anything else is not echoed into a page. */
const Link = Schema.Struct({
  token: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{20,100}$/)),
  user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))),
  /** Of what an app asks for. */
  request: Schema.optionalKey(Schema.String.check(Schema.isUUID())),
})

interface Words {
  readonly title: string
  readonly lead: string
  /** With the code that a device waits with. */
  readonly leadOfDevice: string
  readonly button: string
  readonly unusable: string
  readonly why: string
  readonly anew: string
  readonly elsewhere: readonly [title: string, text: string]
  readonly later: readonly [title: string, text: string]
}

const words: { readonly [L in Language]: Words } = {
  en: {
    title: "Sign in",
    lead: "Continue to open a session.",
    leadOfDevice: "Continue to open a session and confirm the device with this code:",
    button: "Sign in",
    unusable: "This link does not work any more",
    why: "It was used already, has expired, or is incomplete.",
    anew: "Request a new one.",
    elsewhere: ["Open the link of the mail", "Then continue on its page."],
    later: ["Not just now", "Try again in a moment."],
  },
  de: {
    title: "Anmelden",
    lead: "Weiter, um eine Sitzung zu öffnen.",
    leadOfDevice: "Weiter, um eine Sitzung zu öffnen und das Gerät mit diesem Code zu bestätigen:",
    button: "Anmelden",
    unusable: "Dieser Link gilt nicht mehr",
    why: "Er wurde schon benutzt, ist abgelaufen oder unvollständig.",
    anew: "Fordere einen neuen an.",
    elsewhere: ["Öffne den Link aus der Mail", "Mache dann auf seiner Seite weiter."],
    later: ["Gerade nicht", "Versuche es gleich noch einmal."],
  },
  fr: {
    title: "Se connecter",
    lead: "Continuez pour ouvrir une session.",
    leadOfDevice: "Continuez pour ouvrir une session et confirmer l’appareil avec ce code :",
    button: "Se connecter",
    unusable: "Ce lien n’est plus valable",
    why: "Il a déjà servi, a expiré ou est incomplet.",
    anew: "Demandez-en un nouveau.",
    elsewhere: ["Ouvrez le lien du message", "Continuez ensuite sur sa page."],
    later: ["Pas pour l’instant", "Réessayez dans un moment."],
  },
}

const say = (lang: Language, body: string, status = 200) =>
  page({ title: words[lang].title, lang, body, status, unlisted: true })
const told = (lang: Language, [title, text]: readonly [string, string], status: number) =>
  say(lang, `<h1>${title}</h1><p>${text}</p>`, status)
const unusable = Effect.map(language, (lang) => {
  const { unusable: title, why, anew } = words[lang]
  return say(lang, `<h1>${title}</h1><p>${why} <a href="/auth/sign-in">${anew}</a></p>`, 400)
})

const form = HttpRouter.add(
  "GET",
  path,
  Effect.all([HttpServerRequest.schemaSearchParams(Link), language]).pipe(
    Effect.map(([{ token, user_code, request }, lang]) => {
      const { title, lead, leadOfDevice, button } = words[lang]
      const userCode = readCode(user_code)
      const hidden = `${userCode === undefined ? "" : `<input type="hidden" name="user_code" value="${userCode}">`}${request === undefined ? "" : `<input type="hidden" name="request" value="${request}">`}`
      return say(
        lang,
        `<h1>${title}</h1><p>${userCode === undefined ? lead : `${leadOfDevice} <code>${userCode}</code>`}</p><form method="post" action="${path}"><input type="hidden" name="token" value="${token}">${hidden}<button>${button}</button></form>`,
      )
    }),
    Effect.catchCause(() => unusable),
  ),
)

const consume = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const signIn = yield* MagicLinkSignIn.make
    const requests = yield* OAuthRequests
    const book = yield* Addresses
    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const lang = yield* language
        if (!(yield* fromOurPages)) return told(lang, words[lang].elsewhere, 403)
        const arrived = yield* HttpServerRequest.HttpServerRequest
        const { headers } = arrived
        const { token, user_code, request } = yield* HttpServerRequest.schemaBodyUrlParams(Link)
        const { session_token, org } = yield* signIn(token, headers["user-agent"])
        const userCode = readCode(user_code)
        if (request !== undefined) {
          // Only the browser that began it goes on: else a stranger could begin one and have the reader of the mail end it.
          const browser = browserOf(book, arrived)
          const isHere = browser?.id === request && (yield* requests.isOf(request, browser.secret))
          const say = consentWords[org.language]
          return remember(
            book,
            session_token,
          )(
            isHere
              ? HttpServerResponse.redirect(`${authorize}?continue=${request}`, {
                  status: 303,
                  headers: { "cache-control": "no-store" },
                })
              : page({
                  title: say.signedIn,
                  lang: org.language,
                  body: `<h1>${escape(say.signedIn)}</h1><p>${escape(say.backToApp)}</p>`,
                }),
          )
        }
        const to = userCode === undefined ? "/console/" : `/auth/device?user_code=${userCode}`
        const answer = HttpServerResponse.redirect(to, { status: 303, headers: { "cache-control": "no-store" } })
        return remember(book, session_token)(answer)
      }).pipe(
        Effect.catchTag("unavailable", () => Effect.map(language, (lang) => told(lang, words[lang].later, 503))),
        Effect.catchCause(() => unusable),
      ),
    )
  }),
)

export const layers = [form, consume] as const
