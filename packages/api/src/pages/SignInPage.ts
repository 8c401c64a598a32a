/** Signing in on plain pages: asking for a link. A device's code that someone came with goes along in the link. */
import { EmailAddress } from "@svc/domain/account/Account"
import { displayUserCode, userCodeOf } from "@svc/domain/account/Device"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import * as MagicLinks from "../account/MagicLinks.ts"
import { limited } from "../limits/PublicLimit.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages } from "./SessionCookie.ts"

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

const say = (body: string, status = 200) => page({ title: "Sign in", body, status, unlisted: true })
const told = (text: string) => `<p class="told" role="status">${escape(text)}</p>`

/** The form, after what there is to say, with what was filled in. */
export const signInForm = (options: {
  readonly userCode?: string | undefined
  readonly request?: string | undefined
  readonly email?: string | undefined
  readonly say?: string
}) =>
  `<h1>${options.request !== undefined ? "Sign in to connect an app" : options.userCode === undefined ? "Sign in or sign up" : "Sign in to confirm a device"}</h1>
${options.say === undefined ? "" : told(options.say)}
<form method="post" action="/auth/sign-in">${options.userCode === undefined ? "" : `<input type="hidden" name="user_code" value="${options.userCode}">`}${options.request === undefined ? "" : `<input type="hidden" name="request" value="${options.request}">`}
<label>Your email address<br><input name="email" type="email" required autocomplete="email" value="${escape(options.email ?? "")}"></label>
<p><label><input type="checkbox" name="terms" value="yes"> I accept the <a href="/terms" target="_blank">Terms of Service</a> (needed the first time)</label></p>
<button>Mail me a link</button></form>`

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const request = yield* MagicLinks.make
    const limits = yield* PublicLimits

    yield* router.add("GET", "/auth/sign-in", Effect.succeed(say(signInForm({}))))

    yield* router.add(
      "POST",
      "/auth/sign-in",
      Effect.gen(function* () {
        if (!(yield* fromOurPages)) return say(signInForm({ say: "Send the form from this page." }), 403)
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        yield* limited(limits, "magic_link")
        const form = yield* HttpServerRequest.schemaBodyUrlParams(SignIn)
        const { email, terms, request: asked } = form
        const userCode = readCode(form.user_code)
        const again = (text: string, status: number) =>
          Effect.succeed(say(signInForm({ userCode, request: asked, email, say: text }), status))
        return yield* Effect.map(
          Effect.andThen(
            limited(limits, "magic_link"),
            request({ email, tos_accepted: terms === "yes" }, headers["accept-language"], {
              userCode,
              request: asked,
            }),
          ),
          (sent) =>
            say(
              `<h1>Look into your mail</h1><p>A link is on its way to ${escape(email)}. Open it to sign in${asked !== undefined ? " and connect the app, in this browser" : userCode === undefined ? "" : " and confirm the device"}.</p>${
                sent.dev_magic_link === null
                  ? ""
                  : `<p>Development: <a href="${escape(sent.dev_magic_link)}">open the link</a>.</p>`
              }`,
            ),
        ).pipe(
          Effect.catchTags({
            tos_not_accepted: () => again("The first time, the Terms must be accepted.", 422),
            invite_required: () => again("Sign-up needs an invitation. Existing accounts sign in without one.", 403),
            rate_limited: () => again("Too many links were asked for. Wait a while.", 429),
            unavailable: () => again("Not just now. Try again in a moment.", 503),
          }),
        )
      }).pipe(
        Effect.catchTag("rate_limited", () =>
          Effect.succeed(say(signInForm({ say: "Too many links were asked for. Wait a while." }), 429)),
        ),
        Effect.catchCause(() => Effect.succeed(say(signInForm({ say: "That is no email address." }), 400))),
      ),
    )
  }),
)
