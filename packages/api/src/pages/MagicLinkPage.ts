/**
 * Where a magic link leads. Opening it changes nothing, since mail scanners open links; a click consumes it and shows
 * the session token, once.
 */
import { Addresses } from "@svc/domain/Addresses"
import { Accounts } from "@svc/cluster/account/Accounts"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { escape, page } from "./Page.ts"
import { remember } from "./SessionCookie.ts"

const path = "/auth/magic-link"
/** The form of our tokens; anything else is not echoed into a page. */
const Token = Schema.Struct({ token: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{20,100}$/)) })

const unusable = (detail: string) =>
  page({
    status: 400,
    title: "Sign in",
    body: `<h1>This link does not work any more</h1><p>${escape(detail)} Request a new one.</p>`,
  })

const form = HttpRouter.add(
  "GET",
  path,
  HttpServerRequest.schemaSearchParams(Token).pipe(
    Effect.map(({ token }) =>
      page({
        title: "Sign in",
        body: `<h1>Sign in</h1><p>Continue to open a session.</p><form method="post" action="${path}"><input type="hidden" name="token" value="${token}"><button>Sign in</button></form>`,
      }),
    ),
    Effect.catchCause(() => Effect.succeed(unusable("It is incomplete."))),
  ),
)

const consume = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const book = yield* Addresses
    yield* router.add(
      "POST",
      path,
      HttpServerRequest.schemaBodyUrlParams(Token).pipe(
        Effect.flatMap(({ token }) => accounts.consume(token)),
        Effect.map(({ session_token, org }) =>
          remember(
            session_token,
            book.baseUrl.startsWith("https:"),
          )(
            page({
              title: "Signed in",
              body: `<h1>Signed in as ${escape(org.email)}</h1><p>This is your session token. It is shown once; send it as <code>Authorization: Bearer …</code>.</p><pre>${session_token}</pre><p><a href="/auth/device">Confirm a device login</a></p>`,
            }),
          ),
        ),
        Effect.catchTag("magic_link_invalid", (problem) => Effect.succeed(unusable(problem.detail))),
        Effect.catchTag("unavailable", () =>
          Effect.succeed(
            page({ status: 503, title: "Sign in", body: "<h1>Not just now</h1><p>Try again in a moment.</p>" }),
          ),
        ),
        Effect.catchCause(() => Effect.succeed(unusable("It is incomplete."))),
      ),
    )
  }),
)

export const layers = [form, consume] as const
