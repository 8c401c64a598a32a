/**
 * The page to which a platform redirects the browser after an OAuth authorization. It shows the outcome in the reader's
 * language and links back. An account holder who is signed in completes the authorization with a click; any other reader
 * gets the address for the agent or terminal that started it. Loading the page connects nothing: otherwise a link could
 * connect the reader's account to a stranger's Identity.
 */
import { type AddressBook, callbackUrl, Addresses } from "@svc/domain/Addresses"
import type { Language } from "@svc/domain/account/Account"
import { isProblem } from "@svc/domain/problems/Problem"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { ConnectorQueries } from "@svc/cluster/connectors/ConnectorQueries"
import { Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isMarked } from "../account/ConsoleSession.ts"
import { outcomeOf, pageOperation } from "../audit/AuditedOperations.ts"
import * as AuthorizationReturn from "../connectors/AuthorizationReturn.ts"
import { RequestContext } from "../RequestContext.ts"
import { escape, page } from "./Page.ts"
import { fromOurPages, signedIn } from "./SessionCookie.ts"
import { language, languageFor, orLater } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"

const words = texts({
  connect: ["Connect this account?", "Dieses Konto verbinden?", "Connecter ce compte ?"],
  connected: ["Account connected", "Konto verbunden", "Compte connecté"],
  almost: ["Almost done", "Fast geschafft", "Presque terminé"],
  failed: ["The account was not connected", "Das Konto wurde nicht verbunden", "Le compte n’a pas été connecté"],
  invalid: [
    "This authorization is no longer valid",
    "Diese Freigabe ist nicht mehr gültig",
    "Cette autorisation n’est plus valable",
  ],
  declined: [
    "Nothing was changed. The platform reported:",
    "Es wurde nichts geändert. Meldung der Plattform:",
    "Rien n’a été modifié. La plateforme a répondu :",
  ],
  again: [
    "The address is unknown, has already been used or has expired. Start again in the agent, the terminal or the console.",
    "Sie ist unbekannt, wurde bereits verwendet oder ist abgelaufen. Beginne im Agenten, im Terminal oder in der Konsole von vorn.",
    "Elle est inconnue, déjà utilisée ou expirée. Recommencez depuis l’agent, le terminal ou la console.",
  ],
  hand: [
    "Give this address to the agent or terminal that sent you here. It works once and expires after 15 minutes.",
    "Gib diese Adresse dem Agenten oder dem Terminal, das dich hierher geschickt hat. Sie gilt einmal und läuft nach 15 Minuten ab.",
    "Donnez cette adresse à l’agent ou au terminal qui vous a envoyé ici. Elle ne fonctionne qu’une fois et expire après 15 minutes.",
  ],
  orSignIn: [
    "You can also sign in here, then reload this page.",
    "Oder melde dich hier an und lade diese Seite dann neu.",
    "Ou connectez-vous ici, puis rechargez cette page.",
  ],
  signIn: ["Sign in", "Anmelden", "Se connecter"],
  platform: ["Platform", "Plattform", "Plateforme"],
  identity: ["Identity", "Identität", "Identité"],
  disclose: [
    "State on the account's profile that it is automated",
    "Im Profil des Kontos angeben, dass es automatisiert ist",
    "Indiquer sur le profil du compte qu’il est automatisé",
  ],
  isDisclosed: [
    "The profile now states that the account is automated.",
    "Im Profil steht jetzt, dass das Konto automatisiert ist.",
    "Le profil indique désormais que le compte est automatisé.",
  ],
  isUndisclosed: [
    "The profile does not state that the account is automated.",
    "Im Profil steht nicht, dass das Konto automatisiert ist.",
    "Le profil n’indique pas que le compte est automatisé.",
  ],
  button: ["Connect", "Verbinden", "Connecter"],
  back: ["Back to the service", "Zurück zum Dienst", "Retour au service"],
})

const arrival = "/connectors/callback"
/** This path lies below the path of the session cookie. */
const path = "/auth/connectors/callback"

/** Cookie with the state of an authorization that the console started. It only selects the redirect; the console checks the state. */
const stateCookie = "svc_connecting"

const redirectPath = (book: AddressBook, request: HttpServerRequest.HttpServerRequest, query: string): string => {
  const { cookies, headers } = request
  const authorization = cookies[stateCookie]
  if (
    authorization !== undefined &&
    authorization !== "" &&
    AuthorizationReturn.queryOf(query.slice(0, 8192))?.get("state") === authorization
  ) {
    return `/console${arrival}`
  }
  // Loopback clients return to 127.0.0.1, where the browser does not send the cookies of localhost.
  const base = new URL(book.baseUrl)
  const isBeside = base.hostname === "localhost" && headers["host"] === base.host.replace("localhost", "127.0.0.1")
  return isBeside && !isMarked(request) ? `${base.origin}${arrival}` : path
}

const Completion = Schema.Struct({
  query: Schema.String.check(Schema.isMaxLength(8192)),
  apply_disclosure: Schema.optionalKey(Schema.String),
})

const result = (lang: Language, title: string, body: string, status = 200) =>
  page({ lang, title, status, unlisted: true, body: `<h1>${escape(title)}</h1>${body}` })
const paragraph = (text: string) => `<p>${escape(text)}</p>`
const back = (say: (typeof words)[Language]) => `<p><a href="/">${escape(say.back)}</a></p>`

/** Returns the error that the platform added to the redirect. */
const errorIn = (query: URLSearchParams) => query.get("error_description") ?? query.get("error")

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const audit = yield* Audit
    const connectors = yield* ConnectorQueries
    const finish = yield* AuthorizationReturn.make

    yield* router.add(
      "GET",
      arrival,
      Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
        const at = request.url.indexOf("?")
        const query = at < 0 ? "" : request.url.slice(at)
        return HttpServerResponse.redirect(`${redirectPath(book, request, query)}${query}`, {
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
        const error = query === undefined ? null : errorIn(query)
        if (error !== null) {
          return result(
            lang,
            say.failed,
            `${paragraph(say.declined)}<pre>${escape(error.slice(0, 300))}</pre>${back(say)}`,
            400,
          )
        }
        if (query === undefined || query.get("code") === null) {
          return result(lang, say.invalid, paragraph(say.again) + back(say), 400)
        }
        if (caller === undefined) {
          const address = `${callbackUrl(book)}?${query.toString()}`
          return result(
            lang,
            say.almost,
            `${paragraph(say.hand)}<pre>${escape(address)}</pre><p>${escape(say.orSignIn)} <a href="/auth/sign-in" target="_blank" rel="noopener">${escape(say.signIn)}</a></p>`,
          )
        }
        const authorization = yield* Effect.catchTag(
          connectors.authorization(caller.org.id, null, query.get("state") ?? ""),
          "connector_state_invalid",
          () => Effect.undefined,
        )
        if (authorization === undefined) return result(lang, say.invalid, paragraph(say.again) + back(say), 400)
        return result(
          lang,
          say.connect,
          `<dl><dt>${escape(say.platform)}</dt><dd>${escape(authorization.platform)}</dd><dt>${escape(say.identity)}</dt><dd>@${escape(authorization.handle)}</dd></dl>
<form method="post" action="${path}"><input type="hidden" name="query" value="${escape(query.toString())}">
<p><label><input type="checkbox" name="apply_disclosure" value="yes" checked> ${escape(say.disclose)}</label></p>
<button>${escape(say.button)}</button></form>`,
        )
      }).pipe(orLater),
    )

    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const caller = yield* signedIn
        const lang = yield* languageFor(caller)
        const say = words[lang]
        if (caller === undefined || !(yield* fromOurPages)) {
          return result(lang, say.almost, paragraph(say.orSignIn), 403)
        }
        const form = yield* HttpServerRequest.schemaBodyUrlParams(Completion)
        const exchange = yield* RequestContext
        const by = { kind: caller.kind, credentialId: caller.credentialId, requestId: exchange.requestId }
        const record = (outcome: Pick<Act, "outcome" | "code">) =>
          audit.record({
            ...pageOperation(caller, exchange, { class: "change", action: "connectors.callback", type: "connector" }),
            ...exchange.about,
            ...outcome,
          })
        return yield* finish(
          { org: caller.org, identities: null, by },
          new URLSearchParams(form.query),
          form.apply_disclosure === "yes",
        ).pipe(
          Effect.map(({ account, disclosed }) =>
            result(
              lang,
              say.connected,
              `<p><strong>${escape(account)}</strong></p>${paragraph(disclosed ? say.isDisclosed : say.isUndisclosed)}${back(say)}`,
            ),
          ),
          Effect.onExit((exit) => record(outcomeOf(exit))),
          Effect.catchIf(isProblem, (problem) =>
            Effect.succeed(
              result(
                lang,
                problem._tag === "connector_state_invalid" ? say.invalid : say.failed,
                `${problem._tag === "connector_state_invalid" ? "" : `<pre>${escape(problem.detail)}</pre>`}${paragraph(say.again)}${back(say)}`,
                problem.status,
              ),
            ),
          ),
        )
      }).pipe(
        orLater,
        Effect.catchCause(() =>
          Effect.map(language, (lang) => result(lang, words[lang].failed, paragraph(words[lang].again), 400)),
        ),
      ),
    )
  }),
)
