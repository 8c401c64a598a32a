/** Signing in on plain pages: asking for a link. A device's code that someone came with goes along in the link. */
import { EmailAddress, type Language } from "@svc/domain/account/Account"
import { displayUserCode, userCodeOf } from "@svc/domain/account/Device"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import * as MagicLinks from "../account/MagicLinks.ts"
import { limited } from "../limits/PublicLimit.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages } from "./SessionCookie.ts"
import { type Purpose, words } from "./SignInWords.ts"
import { language } from "./PageLanguage.ts"

const SignIn = Schema.Struct({
  email: EmailAddress,
  terms: Schema.optionalKey(Schema.String),
  user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))),
  /** Of what an app asks for, which waits for the person to sign in. */
  request: Schema.optionalKey(Schema.String.check(Schema.isUUID())),
})

/** The code as it is shown; undefined for what is none, which is never echoed into a page. */
export const readCode = (text: string | undefined): string | undefined => {
  const letters = text === undefined ? undefined : userCodeOf(text)
  return letters === undefined ? undefined : displayUserCode(letters)
}

interface Shown {
  readonly userCode?: string | undefined
  readonly request?: string | undefined
  readonly email?: string | undefined
  readonly say?: string
}

const purposeOf = ({ userCode, request }: Shown): Purpose =>
  request !== undefined ? "app" : userCode === undefined ? "account" : "device"

const told = (text: string) => `<p class="told" role="status">${escape(text)}</p>`

/** The form, after what there is to say, with what was filled in. */
export const signInForm = (lang: Language, options: Shown) => {
  const { heading, email, terms, button } = words[lang]
  return `<h1>${heading[purposeOf(options)]}</h1>
${options.say === undefined ? "" : told(options.say)}
<form method="post" action="/auth/sign-in">${options.userCode === undefined ? "" : `<input type="hidden" name="user_code" value="${options.userCode}">`}${options.request === undefined ? "" : `<input type="hidden" name="request" value="${options.request}">`}
<label>${email}<br><input name="email" type="email" required autocomplete="email" value="${escape(options.email ?? "")}"></label>
<p><label><input type="checkbox" name="terms" value="yes"> ${terms[0]} <a href="/terms" target="_blank">${terms[1]}</a> ${terms[2]}</label></p>
<button>${button}</button></form>`
}

const say = (lang: Language, body: string, status = 200) =>
  page({ title: words[lang].title, lang, body, status, unlisted: true })

/** The form as a page. */
export const signInPage = (lang: Language, options: Shown, status = 200) => say(lang, signInForm(lang, options), status)

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const request = yield* MagicLinks.make
    const limits = yield* PublicLimits

    yield* router.add(
      "GET",
      "/auth/sign-in",
      Effect.map(language, (lang) => signInPage(lang, {})),
    )

    const send = Effect.fnUntraced(function* (lang: Language) {
      const texts = words[lang]
      if (!(yield* fromOurPages)) return signInPage(lang, { say: texts.elsewhere }, 403)
      yield* limited(limits, "magic_link")
      const form = yield* HttpServerRequest.schemaBodyUrlParams(SignIn)
      const { email, terms, request: asked } = form
      const shown = { userCode: readCode(form.user_code), request: asked, email }
      const again = (text: string, status: number) => Effect.succeed(signInPage(lang, { ...shown, say: text }, status))
      return yield* Effect.map(
        Effect.andThen(
          limited(limits, "magic_link"),
          // Who signs up here goes on in the language of the page.
          request({ email, tos_accepted: terms === "yes" }, lang, shown),
        ),
        (sent) =>
          say(
            lang,
            `<h1>${texts.sent}</h1><p>${texts.sentTo(escape(email))} ${texts.open[purposeOf(shown)]}</p>${
              sent.dev_magic_link === null
                ? ""
                : `<p>Development: <a href="${escape(sent.dev_magic_link)}">${texts.development}</a>.</p>`
            }`,
          ),
      ).pipe(
        Effect.catchTags({
          tos_not_accepted: () => again(texts.needsTerms, 422),
          invite_required: () => again(texts.needsInvite, 403),
          rate_limited: () => again(texts.tooMany, 429),
          mail_relay_unavailable: () => again(texts.later, 503),
          unavailable: () => again(texts.later, 503),
        }),
      )
    })

    yield* router.add(
      "POST",
      "/auth/sign-in",
      Effect.flatMap(language, (lang) =>
        send(lang).pipe(
          Effect.catchTag("rate_limited", () => Effect.succeed(signInPage(lang, { say: words[lang].tooMany }, 429))),
          Effect.catchCause(() => Effect.succeed(signInPage(lang, { say: words[lang].noAddress }, 400))),
        ),
      ),
    )
  }),
)
