/**
 * The page that a magic link opens. Loading it changes nothing, because mail scanners open links; the button consumes the
 * link. A reader who came to confirm a device continues there, anyone else in the console. The session token is only set as
 * a cookie and never shown.
 */
import { Addresses } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { magicLinkSignIn } from "../account/SignIn.ts"
import { remember } from "../account/ConsoleSession.ts"
import { escape, page } from "./Page.ts"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { authorizePath as authorize, browserOf } from "./BrowserCookie.ts"
import { fromOurPages } from "./SessionCookie.ts"
import { readCode } from "./SignInPage.ts"
import { language, orLater } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"

const path = "/auth/magic-link"
/** Other values than tokens of this form must not be echoed into a page. */
const Link = Schema.Struct({
  token: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{20,100}$/)),
  user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))),
  /** The id of an authorization request of an app. */
  request: Schema.optionalKey(Schema.String.check(Schema.isUUID())),
})

const words = texts({
  title: ["Sign in", "Anmelden", "Se connecter"],
  lead: ["Continue to sign in.", "Weiter zur Anmeldung.", "Continuez pour vous connecter."],
  leadOfDevice: [
    "Continue to sign in and approve the device with this code:",
    "Weiter, um dich anzumelden und das Gerät mit diesem Code zu bestätigen:",
    "Continuez pour vous connecter et approuver l’appareil avec ce code :",
  ],
  button: ["Sign in", "Anmelden", "Se connecter"],
  unusable: ["This link is no longer valid", "Dieser Link ist nicht mehr gültig", "Ce lien n’est plus valable"],
  why: [
    "It has already been used, has expired or is incomplete.",
    "Er wurde bereits verwendet, ist abgelaufen oder unvollständig.",
    "Il a déjà servi, a expiré ou est incomplet.",
  ],
  anew: ["Request a new link.", "Fordere einen neuen Link an.", "Demandez un nouveau lien."],
  elsewhere: [
    ["Sign-in was requested from another site", "Open the link in the email and continue on that page."],
    ["Die Anmeldung kam von einer anderen Website", "Öffne den Link in der E-Mail und fahre auf der Seite fort."],
    ["La connexion venait d’un autre site", "Ouvrez le lien de l’e-mail et continuez sur cette page."],
  ],
  signedIn: ["You are signed in", "Du bist angemeldet", "Vous êtes connecté"],
  backToApp: [
    "This is not the browser in which you started. Return to your app and connect it there.",
    "Dies ist nicht der Browser, in dem du begonnen hast. Geh zurück zu deiner App und verbinde sie dort.",
    "Ce n’est pas le navigateur dans lequel vous avez commencé. Retournez à votre application et connectez-la là-bas.",
  ],
})

const framed = (lang: Language, body: string, status = 200) =>
  page({ title: words[lang].title, lang, body, status, unlisted: true })
const notice = (lang: Language, [title, text]: readonly [string, string], status: number) =>
  framed(lang, `<h1>${title}</h1><p>${text}</p>`, status)
const unusable = Effect.map(language, (lang) => {
  const { unusable: title, why, anew } = words[lang]
  return framed(lang, `<h1>${title}</h1><p>${why} <a href="/auth/sign-in">${anew}</a></p>`, 400)
})

const form = HttpRouter.add(
  "GET",
  path,
  Effect.all([HttpServerRequest.schemaSearchParams(Link), language]).pipe(
    Effect.map(([{ token, user_code, request }, lang]) => {
      const { title, lead, leadOfDevice, button } = words[lang]
      const userCode = readCode(user_code)
      const hidden = `${userCode === undefined ? "" : `<input type="hidden" name="user_code" value="${userCode}">`}${request === undefined ? "" : `<input type="hidden" name="request" value="${request}">`}`
      return framed(
        lang,
        `<h1>${title}</h1><p>${userCode === undefined ? lead : `${leadOfDevice} <code>${userCode}</code>`}</p><form method="post" action="${path}"><input type="hidden" name="token" value="${token}">${hidden}<button>${button}</button></form>`,
      )
    }),
    Effect.catchCause(() => unusable),
  ),
)

const consume = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const signIn = yield* magicLinkSignIn
    const requests = yield* OAuthRequests
    const book = yield* Addresses
    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const lang = yield* language
        if (!(yield* fromOurPages)) return notice(lang, words[lang].elsewhere, 403)
        const httpRequest = yield* HttpServerRequest.HttpServerRequest
        const { headers } = httpRequest
        const { token, user_code, request } = yield* HttpServerRequest.schemaBodyUrlParams(Link)
        const { session_token, org } = yield* signIn(token, headers["user-agent"])
        const userCode = readCode(user_code)
        if (request !== undefined) {
          // Only the browser that started the authorization continues: a stranger could otherwise start one and have the
          // reader of the mail complete it.
          const browser = browserOf(book, httpRequest)
          const isSameBrowser = browser?.id === request && (yield* requests.isOf(request, browser.secret))
          const say = words[org.language]
          return remember(
            book,
            session_token,
          )(
            isSameBrowser
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
        const response = HttpServerResponse.redirect(to, { status: 303, headers: { "cache-control": "no-store" } })
        return remember(book, session_token)(response)
      }).pipe(
        orLater,
        Effect.catchCause(() => unusable),
      ),
    )
  }),
)

export const layers = [form, consume] as const
