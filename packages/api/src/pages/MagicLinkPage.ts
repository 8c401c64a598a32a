/**
 * Where a magic link leads. Opening it changes nothing, since mail scanners open links; a click consumes it. Who came to
 * confirm a device goes on to that, anyone else to the console. The session stays in the browser's cookie: its token is
 * shown nowhere.
 */
import { Addresses } from "@svc/domain/Addresses"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as SigningIn from "../account/SigningIn.ts"
import { remember } from "../account/ConsoleSession.ts"
import { escape, page } from "./Page.ts"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { authorizePath as authorize, browserOf } from "./BrowserCookie.ts"
import { words } from "./ConsentWords.ts"
import { fromOurPages } from "./SessionCookie.ts"
import { readCode } from "./SignInPage.ts"

const path = "/auth/magic-link"
/** The form of our tokens; anything else is not echoed into a page. */
const Link = Schema.Struct({
  token: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{20,100}$/)),
  user_code: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))),
  /** Of what an app asks for. */
  request: Schema.optionalKey(Schema.String.check(Schema.isUUID())),
})

const say = (body: string, status = 200) => page({ title: "Sign in", body, status })
const unusable = (detail: string) =>
  say(
    `<h1>This link does not work any more</h1><p>${escape(detail)} <a href="/auth/sign-in">Request a new one.</a></p>`,
    400,
  )

const form = HttpRouter.add(
  "GET",
  path,
  HttpServerRequest.schemaSearchParams(Link).pipe(
    Effect.map(({ token, user_code, request }) => {
      const userCode = readCode(user_code)
      const hidden = `${userCode === undefined ? "" : `<input type="hidden" name="user_code" value="${userCode}">`}${request === undefined ? "" : `<input type="hidden" name="request" value="${request}">`}`
      return say(
        `<h1>Sign in</h1><p>Continue to open a session${userCode === undefined ? "" : ` and confirm the device with the code <code>${userCode}</code>`}.</p><form method="post" action="${path}"><input type="hidden" name="token" value="${token}">${hidden}<button>Sign in</button></form>`,
      )
    }),
    Effect.catchCause(() => Effect.succeed(unusable("It is incomplete."))),
  ),
)

const consume = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const signIn = yield* SigningIn.make
    const requests = yield* OAuthRequests
    const book = yield* Addresses
    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        if (!(yield* fromOurPages))
          return say("<h1>Open the link of the mail</h1><p>Then continue on its page.</p>", 403)
        const arrived = yield* HttpServerRequest.HttpServerRequest
        const { headers } = arrived
        const { token, user_code, request } = yield* HttpServerRequest.schemaBodyUrlParams(Link)
        const { session_token, org } = yield* signIn(token, headers["user-agent"])
        const userCode = readCode(user_code)
        if (request !== undefined) {
          // Only the browser that began it goes on: else a stranger could begin one and have the reader of the mail end it.
          const browser = browserOf(book, arrived)
          const isHere = browser?.id === request && (yield* requests.isOf(request, browser.secret))
          const say = words[org.language]
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
        Effect.catchTag("magic_link_invalid", (problem) => Effect.succeed(unusable(problem.detail))),
        Effect.catchTag("unavailable", () =>
          Effect.succeed(say("<h1>Not just now</h1><p>Try again in a moment.</p>", 503)),
        ),
        Effect.catchCause(() => Effect.succeed(unusable("It is incomplete."))),
      ),
    )
  }),
)

export const layers = [form, consume] as const
