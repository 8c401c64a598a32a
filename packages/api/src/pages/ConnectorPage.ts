/**
 * Where a platform sends the browser back to: it says what happened, in the reader's language, and leads back. Whoever is
 * signed in here ends the authorization with a click; anybody else is given the address for the agent or the terminal that
 * began it. A browser alone connects nothing: otherwise a link could connect its reader's account to a stranger's Identity.
 */
import { type AddressBook, callbackUrl, Addresses } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import { isProblem } from "@svc/domain/problems/Problem"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isMarked } from "../account/ConsoleSession.ts"
import * as AuthorizationReturn from "../connectors/AuthorizationReturn.ts"
import { RequestId } from "../RequestId.ts"
import { type ConnectorWords, words } from "./ConnectorWords.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages, signedIn } from "./SessionCookie.ts"
import { language, languageFor } from "./PageLanguage.ts"

const arrival = "/connectors/callback"
/** Below the path of the session's cookie. */
const path = "/auth/connectors/callback"

/** The console notes which authorization it began. That leads the way and proves nothing: it checks the state itself. */
const noted = "svc_connecting"

const whereTo = (book: AddressBook, request: HttpServerRequest.HttpServerRequest, query: string): string => {
  const { cookies, headers } = request
  const begun = cookies[noted]
  if (
    begun !== undefined &&
    begun !== "" &&
    AuthorizationReturn.queryOf(query.slice(0, 8192))?.get("state") === begun
  ) {
    return `/console${arrival}`
  }
  // A loopback client is sent back to 127.0.0.1, where the browser keeps nothing of what it keeps for localhost.
  const base = new URL(book.baseUrl)
  const isBeside = base.hostname === "localhost" && headers["host"] === base.host.replace("localhost", "127.0.0.1")
  return isBeside && !isMarked(request) ? `${base.origin}${arrival}` : path
}

const Ending = Schema.Struct({
  query: Schema.String.check(Schema.isMaxLength(8192)),
  apply_disclosure: Schema.optionalKey(Schema.String),
})

const told = (lang: Language, title: string, body: string, status = 200) =>
  page({ lang, title, status, unlisted: true, body: `<h1>${escape(title)}</h1>${body}` })
const paragraph = (text: string) => `<p>${escape(text)}</p>`
const back = (say: ConnectorWords) => `<p><a href="/">${escape(say.back)}</a></p>`

/** What the platform itself said, beside the code and the state. */
const saidIn = (query: URLSearchParams) => query.get("error_description") ?? query.get("error")

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const connectors = yield* ConnectorQueries
    const finish = yield* AuthorizationReturn.make

    yield* router.add(
      "GET",
      arrival,
      Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
        const at = request.url.indexOf("?")
        const query = at < 0 ? "" : request.url.slice(at)
        return HttpServerResponse.redirect(`${whereTo(book, request, query)}${query}`, {
          status: 303,
          headers: { "cache-control": "no-store", "referrer-policy": "no-referrer" },
        })
      }),
    )

    yield* router.add(
      "GET",
      path,
      Effect.gen(function* () {
        const { url } = yield* HttpServerRequest.HttpServerRequest
        const caller = yield* signedIn
        const lang = yield* languageFor(caller)
        const say = words[lang]
        const query = AuthorizationReturn.queryOf(url.slice(0, 8192))
        const said = query === undefined ? null : saidIn(query)
        if (said !== null) {
          return told(
            lang,
            say.declined,
            `${paragraph(say.nothing)}<pre>${escape(said.slice(0, 300))}</pre>${back(say)}`,
            400,
          )
        }
        if (query === undefined || query.get("code") === null) {
          return told(lang, say.invalid, paragraph(say.again) + back(say), 400)
        }
        if (caller === undefined) {
          const address = `${callbackUrl(book)}?${query.toString()}`
          return told(
            lang,
            say.almost,
            `${paragraph(say.hand)}<pre>${escape(address)}</pre><p>${escape(say.orSignIn)} <a href="/auth/sign-in" target="_blank" rel="noopener">${escape(say.signIn)}</a></p>`,
          )
        }
        const begun = yield* Effect.option(connectors.authorization(caller.org.id, null, query.get("state") ?? ""))
        if (begun._tag === "None") return told(lang, say.invalid, paragraph(say.again) + back(say), 400)
        return told(
          lang,
          say.connect,
          `<dl><dt>${escape(say.platform)}</dt><dd>${escape(begun.value.platform)}</dd><dt>${escape(say.identity)}</dt><dd>@${escape(begun.value.handle)}</dd></dl>
<form method="post" action="${path}"><input type="hidden" name="query" value="${escape(query.toString())}">
<p><label><input type="checkbox" name="apply_disclosure" value="yes" checked> ${escape(say.disclose)}</label></p>
<button>${escape(say.button)}</button></form>`,
        )
      }),
    )

    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        const lang = yield* languageFor(caller)
        const say = words[lang]
        if (caller === undefined || !(yield* fromOurPages)) {
          return told(lang, say.almost, paragraph(say.orSignIn), 403)
        }
        const form = yield* HttpServerRequest.schemaBodyUrlParams(Ending)
        const by = { kind: caller.kind, credentialId: caller.credentialId, requestId: yield* RequestId }
        return yield* finish(
          { org: caller.org, identities: null, by },
          new URLSearchParams(form.query),
          form.apply_disclosure === "yes",
        ).pipe(
          Effect.map(({ account, disclosed }) =>
            told(
              lang,
              say.connected,
              `<p><strong>${escape(account)}</strong></p>${paragraph(disclosed ? say.isDisclosed : say.isUndisclosed)}${back(say)}`,
            ),
          ),
          Effect.catchIf(isProblem, (problem) =>
            Effect.succeed(
              told(
                lang,
                problem._tag === "connector_state_invalid" ? say.invalid : say.failed,
                `${problem._tag === "connector_state_invalid" ? "" : `<pre>${escape(problem.detail)}</pre>`}${paragraph(say.again)}${back(say)}`,
                problem.status,
              ),
            ),
          ),
        )
      }).pipe(
        Effect.catchCause(() =>
          Effect.map(language, (lang) => told(lang, words[lang].failed, paragraph(words[lang].again), 400)),
        ),
      ),
    )
  }),
)
