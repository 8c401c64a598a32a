/** The page that mails a magic link. The code of a waiting device or the id of an app's request travels in the link. */
import { EmailAddress, type Language } from "@svc/domain/account/Account"
import { displayUserCode, userCodeOf } from "@svc/domain/account/Device"
import { Accounts } from "@svc/cluster/account/Accounts"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import * as MagicLinks from "../account/MagicLinks.ts"
import { limited } from "../limits/PublicLimit.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages } from "./SessionCookie.ts"
import { language } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"

/** The purpose of the sign-in. */
type Purpose = "account" | "device" | "app"

const words = texts({
  title: ["Sign in", "Anmelden", "Se connecter"],
  heading: {
    account: ["Sign in or sign up", "Anmelden oder registrieren", "Se connecter ou s’inscrire"],
    device: [
      "Sign in to confirm a device",
      "Anmelden, um ein Gerät zu bestätigen",
      "Se connecter pour confirmer un appareil",
    ],
    app: [
      "Sign in to connect an app",
      "Anmelden, um eine App zu verbinden",
      "Se connecter pour relier une application",
    ],
  },
  email: ["Your email address", "Deine E-Mail-Adresse", "Votre adresse e-mail"],
  terms: [
    ["I accept the", "Terms of Service", "(required for new accounts)"],
    ["Ich akzeptiere die", "Nutzungsbedingungen", "(für neue Konten erforderlich)"],
    ["J’accepte les", "conditions d’utilisation", "(requis pour un nouveau compte)"],
  ],
  button: ["Email me a sign-in link", "Anmeldelink zusenden", "Recevoir un lien de connexion"],
  sent: ["Check your email", "Sieh in deinem Postfach nach", "Consultez votre messagerie"],
  sentTo: [
    (email: string) => `We sent a link to ${email}.`,
    (email: string) => `Wir haben einen Link an ${email} geschickt.`,
    (email: string) => `Nous avons envoyé un lien à ${email}.`,
  ],
  open: {
    account: ["Open it to sign in.", "Öffne ihn, um dich anzumelden.", "Ouvrez-le pour vous connecter."],
    device: [
      "Open it to sign in and approve the device.",
      "Öffne ihn, um dich anzumelden und das Gerät zu bestätigen.",
      "Ouvrez-le pour vous connecter et approuver l’appareil.",
    ],
    app: [
      "Open it in this browser to sign in and connect the app.",
      "Öffne ihn in diesem Browser, um dich anzumelden und die App zu verbinden.",
      "Ouvrez-le dans ce navigateur pour vous connecter et relier l’application.",
    ],
  },
  development: ["open the link", "Link öffnen", "ouvrir le lien"],
  elsewhere: [
    "The form was sent from another site. Send it again from this page.",
    "Das Formular kam von einer anderen Website. Sende es noch einmal von dieser Seite aus.",
    "Le formulaire venait d’un autre site. Envoyez-le de nouveau depuis cette page.",
  ],
  noAddress: [
    "Enter a valid email address.",
    "Gib eine gültige E-Mail-Adresse ein.",
    "Saisissez une adresse e-mail valide.",
  ],
  needsTerms: [
    "Accept the Terms of Service to create an account.",
    "Akzeptiere die Nutzungsbedingungen, um ein Konto zu erstellen.",
    "Acceptez les conditions d’utilisation pour créer un compte.",
  ],
  invite: ["Invitation code", "Einladungscode", "Code d’invitation"],
  needsInvite: [
    "New accounts need a valid invitation code. You can sign in to an existing account without one.",
    "Für ein neues Konto brauchst du einen gültigen Einladungscode. In ein bestehendes Konto kommst du auch ohne.",
    "Un nouveau compte nécessite un code d’invitation valide. Vous pouvez vous connecter sans code à un compte existant.",
  ],
  closed: [
    "This service admits no new accounts. You can sign in to an existing account.",
    "Dieser Dienst nimmt keine neuen Konten auf. In ein bestehendes Konto kannst du dich anmelden.",
    "Ce service n’accepte pas de nouveaux comptes. Vous pouvez vous connecter à un compte existant.",
  ],
  tooMany: [
    "Too many links were requested. Try again later.",
    "Es wurden zu viele Links angefordert. Versuche es später noch einmal.",
    "Trop de liens ont été demandés. Réessayez plus tard.",
  ],
  later: [
    "Temporarily unavailable. Try again in a moment.",
    "Vorübergehend nicht verfügbar. Versuche es gleich noch einmal.",
    "Temporairement indisponible. Réessayez dans un instant.",
  ],
})

const SignIn = Schema.Struct({
  email: EmailAddress,
  terms: Schema.optionalKey(Schema.String),
  invite_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
  user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))),
  /** The id of an authorization request of an app. */
  request: Schema.optionalKey(Schema.String.check(Schema.isUUID())),
})

/** Formats a device code; returns undefined for an invalid code, which must not be echoed into a page. */
export const readCode = (text: string | undefined): string | undefined => {
  const letters = text === undefined ? undefined : userCodeOf(text)
  return letters === undefined ? undefined : displayUserCode(letters)
}

interface Shown {
  readonly userCode?: string | undefined
  readonly request?: string | undefined
  readonly email?: string | undefined
  readonly notice?: string
  /** The entered invitation code; undefined omits the field. */
  readonly invite?: string | undefined
}

const purposeOf = ({ userCode, request }: Shown): Purpose =>
  request !== undefined ? "app" : userCode === undefined ? "account" : "device"

const noticeOf = (text: string) => `<p class="told" role="status">${escape(text)}</p>`

/** Returns the sign-in form as HTML, below the notice if there is one. */
export const signInForm = (lang: Language, options: Shown) => {
  const { heading, email, invite, terms, button } = words[lang]
  return `<h1>${heading[purposeOf(options)]}</h1>
${options.notice === undefined ? "" : noticeOf(options.notice)}
<form method="post" action="/auth/sign-in">${options.userCode === undefined ? "" : `<input type="hidden" name="user_code" value="${options.userCode}">`}${options.request === undefined ? "" : `<input type="hidden" name="request" value="${options.request}">`}
<label>${email}<br><input name="email" type="email" required autocomplete="email" value="${escape(options.email ?? "")}"></label>${
    options.invite === undefined
      ? ""
      : `
<p><label>${invite}<br><input name="invite_code" maxlength="200" autocomplete="off" value="${escape(options.invite)}"></label></p>`
  }
<p><label><input type="checkbox" name="terms" value="yes"> ${terms[0]} <a href="/terms" target="_blank">${terms[1]}</a> ${terms[2]}</label></p>
<button>${button}</button></form>`
}

const framed = (lang: Language, body: string, status = 200) =>
  page({ title: words[lang].title, lang, body, status, unlisted: true })

export const signInPage = (lang: Language, options: Shown, status = 200) =>
  framed(lang, signInForm(lang, options), status)

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const request = yield* MagicLinks.make
    const limits = yield* PublicLimits
    const { registration } = yield* Accounts

    yield* router.add(
      "GET",
      "/auth/sign-in",
      Effect.map(language, (lang) => signInPage(lang, {})),
    )

    const send = Effect.fnUntraced(function* (lang: Language) {
      const say = words[lang]
      if (!(yield* fromOurPages)) return signInPage(lang, { notice: say.elsewhere }, 403)
      yield* limited(limits, "magic_link")
      const form = yield* HttpServerRequest.schemaBodyUrlParams(SignIn)
      const { email, terms, request: authorization, invite_code: invite } = form
      const shown = { userCode: readCode(form.user_code), request: authorization, email, invite }
      const again = (text: string, status: number, asked: Shown = shown) =>
        Effect.succeed(signInPage(lang, { ...asked, notice: text }, status))
      return yield* Effect.map(
        // A new account takes the language of the page.
        request(
          { email, tos_accepted: terms === "yes", ...(invite === undefined ? {} : { invite_code: invite }) },
          lang,
          shown,
        ),
        (sent) =>
          framed(
            lang,
            `<h1>${say.sent}</h1><p>${say.sentTo(escape(email))} ${say.open[purposeOf(shown)]}</p>${
              sent.dev_magic_link === null
                ? ""
                : `<p>Development: <a href="${escape(sent.dev_magic_link)}">${say.development}</a>.</p>`
            }`,
          ),
      ).pipe(
        Effect.catchTags({
          tos_not_accepted: () => again(say.needsTerms, 422),
          // The field appears only now, because existing accounts need no code.
          invite_required: () =>
            registration === "closed"
              ? again(say.closed, 403)
              : again(say.needsInvite, 403, { ...shown, invite: invite ?? "" }),
          rate_limited: () => again(say.tooMany, 429),
          mail_relay_unavailable: () => again(say.later, 503),
          unavailable: () => again(say.later, 503),
        }),
      )
    })

    yield* router.add(
      "POST",
      "/auth/sign-in",
      Effect.flatMap(language, (lang) =>
        send(lang).pipe(
          Effect.catchTag("rate_limited", () => Effect.succeed(signInPage(lang, { notice: words[lang].tooMany }, 429))),
          Effect.catchCause(() => Effect.succeed(signInPage(lang, { notice: words[lang].noAddress }, 400))),
        ),
      ),
    )
  }),
)
