/**
 * `/auth/authorize`: an app's authorization request, for which the user signs in and decides. Every request is shown,
 * even if the app was allowed before, because a public client proves nothing (RFC 8252 section 8.6). The response is a
 * page that forwards to the app, because `form-action 'self'` forbids a redirect to another site.
 */
import { type AddressBook, Addresses } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { isDocument } from "@svc/domain/oauth/Client"
import { hostOf, receiverOf } from "@svc/domain/oauth/Redirect"
import { maxLimit } from "@svc/domain/Paging"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Grants } from "@svc/cluster/oauth/Grants"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { type OAuthRequest, OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { limited } from "../limits/PublicLimit.ts"
import { escape, page, withCode } from "../pages/Page.ts"
import { certainlyFromOurPages, signedIn } from "../pages/SessionCookie.ts"
import { signInPage } from "../pages/SignInPage.ts"
import { language } from "../pages/PageLanguage.ts"
import { RequestId } from "../RequestContext.ts"
import { clientIdOf, isSignIn, judge, longestQuery, type Refused, type Wanted } from "./AuthorizationRequest.ts"
import { authorizePath as path, browserOf, keepIn } from "../pages/BrowserCookie.ts"
import { body, choiceOf, Decision } from "./ConsentForm.ts"
import { type ConsentTexts, words } from "./ConsentTexts.ts"
import * as Recording from "./OAuthAudit.ts"

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Isolates the page from windows of other origins. */
const alone = HttpServerResponse.setHeader("cross-origin-opener-policy", "same-origin")

const noticePage = (say: ConsentTexts, title: string, text: string, status: number) =>
  alone(page({ title, status, lang: langOf(say), body: `<h1>${escape(title)}</h1><p>${escape(text)}</p>` }))
const langOf = (say: ConsentTexts) => (say === words.de ? "de" : say === words.fr ? "fr" : "en")

/**
 * Shows an error with a link that reports it to the app. There is no automatic redirect: anybody can register a client,
 * so it would be an open redirect (RFC 9700 section 4.11.2).
 */
const tell = (say: ConsentTexts, { to, redirect }: Refused) =>
  receiverOf(redirect)._tag === "Site"
    ? alone(
        page({
          title: say.going,
          lang: langOf(say),
          body: `<h1>${escape(say.going)}</h1><p class="receiver"><bdi>${escape(hostOf(redirect))}</bdi></p>
<p><a class="button" href="${escape(to)}" rel="noreferrer">${escape(say.onward)}</a></p>`,
        }),
      )
    : leave(say, to)

/** Returns to the app, automatically or by a click. */
const leave = (say: ConsentTexts, to: string) =>
  alone(
    page({
      title: say.going,
      lang: langOf(say),
      onward: to,
      body: `<h1>${escape(say.going)}</h1><p><a class="button" href="${escape(to)}" rel="noreferrer">${escape(say.onward)}</a></p>`,
    }),
  )

/**
 * Shows people what an agent has to run, because an agent answers the request of a relying party. The command quotes the
 * address as the URL parser writes it, which has no quotes and no white space.
 */
const agentPage = ({ baseUrl }: AddressBook, lang: Language, query: string) => {
  const say = words[lang].agent
  const { href } = new URL(`${path}?${query}`, baseUrl)
  const redirect = URL.parse(new URLSearchParams(query).get("redirect_uri") ?? "")
  return alone(
    page({
      title: say.title,
      lang,
      unlisted: true,
      body: `<h1>${escape(say.title)}</h1>${redirect === null ? "" : `<p class="receiver"><bdi>${escape(redirect.host)}</bdi></p>`}
<p>${escape(say.text)}</p><pre tabindex="0"><code>svc sign-in '${escape(href)}'</code></pre><p>${withCode(say.otherwise)}</p>`,
    }),
  )
}

const queryOf = (url: string): string => {
  const at = url.indexOf("?")
  return at < 0 ? "" : url.slice(at + 1)
}

const spokenHere = Effect.map(language, (lang) => words[lang])

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const clients = yield* OAuthClients
    const requests = yield* OAuthRequests
    const grants = yield* Grants
    const identities = yield* IdentityQueries
    const limits = yield* PublicLimits
    const sealing = yield* Sealing
    const recording = yield* Recording.make

    const unknown = (say: ConsentTexts, why = say.unknownWhy) => noticePage(say, say.unknown, why, 400)
    const expiredPage = (say: ConsentTexts) => noticePage(say, say.gone, say.again, 400)

    const sealOf = (caller: CallerInfo, request: string) =>
      sealing.stamp("authorize", `${caller.credentialId}/${request}`)

    const consentPage = Effect.fnUntraced(function* (
      caller: CallerInfo,
      request: OAuthRequest,
      wanted: Wanted,
      problem?: string,
    ) {
      const { org } = caller
      const { entries } = yield* Effect.catchTag(
        identities.list(org.id, { limit: maxLimit }),
        "invalid_cursor",
        Effect.die,
      )
      const shown = {
        wanted,
        org,
        identities: entries.map(({ id, handle }) => ({ id, handle })),
        present: yield* grants.present(org.id, wanted.client.id, wanted.redirect),
        request: request.id,
        seal: sealOf(caller, request.id),
        ...(problem === undefined ? {} : { notice: problem }),
      }
      const say = words[org.language]
      return alone(
        page({
          title: say.title(wanted.client.name),
          lang: org.language,
          status: problem === undefined ? 200 : 400,
          body: body(shown),
        }),
      )
    })

    /** Shows the request to a signed-in user. */
    const decide = Effect.fnUntraced(function* (caller: CallerInfo, request: OAuthRequest) {
      const say = words[caller.org.language]
      const query = new URLSearchParams(request.query)
      const clientId = clientIdOf(query)
      const client = clientId === undefined ? undefined : yield* clients.read(clientId)
      if (client === undefined) return unknown(say)
      const judged = judge(book, client, query)
      if (judged._tag === "Unusable") return unknown(say)
      return judged._tag === "Refused" ? tell(say, judged) : yield* consentPage(caller, request, judged.wanted)
    })

    /**
     * Stores the request, puts its id into a cookie, and asks the user to sign in. No client document is fetched for
     * anonymous users.
     */
    const signInFirst = Effect.fnUntraced(function* (say: ConsentTexts, text: string) {
      const query = new URLSearchParams(text)
      const clientId = clientIdOf(query)
      if (clientId === undefined) return unknown(say)
      if (!isDocument(book, clientId)) {
        const client = yield* clients.known(clientId)
        if (client === undefined) return unknown(say)
        const judged = judge(book, client, query)
        if (judged._tag === "Unusable") return unknown(say)
        if (judged._tag === "Refused") return tell(say, judged)
      }
      const kept = yield* requests.keep(text)
      return keepIn(book, kept)(alone(signInPage(langOf(say), { request: kept.id })))
    })

    const begin = Effect.gen(function* () {
      yield* limited(limits, "oauth_authorize")
      const arrived = yield* HttpServerRequest.HttpServerRequest
      const text = queryOf(arrived.url)
      const caller = yield* signedIn
      const say = caller === undefined ? yield* spokenHere : words[caller.org.language]
      if (text.length > longestQuery) return unknown(say)
      const query = new URLSearchParams(text)
      const resumed = query.get("continue")
      if (resumed === null && isSignIn(query)) return agentPage(book, langOf(say), text)
      if (resumed === null) {
        return caller === undefined
          ? yield* signInFirst(say, text)
          : yield* decide(caller, yield* requests.open(text, caller.credentialId))
      }
      if (!uuid.test(resumed)) return expiredPage(say)
      const browser = browserOf(book, arrived)
      if (caller === undefined) {
        return alone(signInPage(langOf(say), { request: resumed }))
      }
      const secret = browser?.id === resumed ? browser.secret : undefined
      const request = yield* requests.claim(resumed, caller.credentialId, secret)
      if (request === undefined) return expiredPage(say)
      if (query.get("as") === "other") {
        // Another user signs in: the request returns to the browser and waits.
        return yield* signInFirst(say, request.query)
      }
      return yield* decide(caller, request)
    })

    const end = Effect.gen(function* () {
      const caller = yield* signedIn
      const here = yield* spokenHere
      // A site may also post its request (OpenID Connect Core 1.0 section 3.1.2.1).
      const text = yield* (yield* HttpServerRequest.HttpServerRequest).text
      if (text.length <= longestQuery && isSignIn(new URLSearchParams(text))) return agentPage(book, langOf(here), text)
      if (caller === undefined || !(yield* certainlyFromOurPages)) return noticePage(here, here.gone, here.again, 403)
      const say = words[caller.org.language]
      const decision = yield* HttpServerRequest.schemaBodyUrlParams(Decision)
      if (sealing.unstamp("authorize", decision.seal) !== `${caller.credentialId}/${decision.request}`)
        return expiredPage(say)
      const request = yield* requests.claim(decision.request, caller.credentialId, undefined)
      if (request === undefined) return expiredPage(say)
      const query = new URLSearchParams(request.query)
      const client = yield* clients.known(clientIdOf(query) ?? "")
      const judged = client === undefined ? undefined : judge(book, client, query)
      if (judged?._tag !== "Wanted") return unknown(say)
      const { wanted } = judged
      if (decision.decision === "deny") {
        const grant = { id: null, client: wanted.client.name }
        if (yield* requests.close(request.id, caller.credentialId))
          yield* recording.byHolder(caller, {
            action: "oauth.consent",
            grant,
            outcome: "refused",
            code: "access_denied",
          })
        return leave(
          say,
          wanted.back({ error: "access_denied", error_description: "The account holder denied the request." }),
        )
      }
      const choice = choiceOf(decision, wanted)
      if (choice === undefined) return yield* consentPage(caller, request, wanted, say.pick)
      const by = { kind: caller.kind, credentialId: caller.credentialId, requestId: yield* RequestId }
      return yield* grants
        .consent(caller.org.id, { id: request.id, session: caller.credentialId }, wanted, choice, by)
        .pipe(
          Effect.tap(({ grantId }) =>
            recording.byHolder(caller, { action: "oauth.consent", grant: { id: grantId, client: wanted.client.name } }),
          ),
          Effect.map(({ code }) => leave(say, wanted.back({ code }))),
          Effect.catchTag("ConsentRefused", ({ reason }) =>
            reason === "gone"
              ? Effect.succeed(expiredPage(say))
              : consentPage(caller, request, wanted, reason === "full" ? say.full : say.pick),
          ),
        )
    })

    const guarded = <E extends { readonly _tag: string }, R>(
      answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
    ) =>
      Effect.catch(answer, (failure) =>
        Effect.map(spokenHere, (say) => {
          switch (failure._tag) {
            case "DocumentRefused":
              return unknown(say, "message" in failure ? String(failure.message) : say.unknownWhy)
            case "rate_limited":
              return noticePage(say, say.busy, say.reload, 429)
            case "unavailable":
              return noticePage(say, say.busy, say.reload, 503)
            default:
              return expiredPage(say)
          }
        }),
      )

    yield* router.add("GET", path, guarded(begin))
    yield* router.add("POST", path, guarded(end))
  }),
)
