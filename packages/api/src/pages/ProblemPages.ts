/**
 * `/problems/{code}`: the meaning and the remedy of a problem, from the table of problems. Both are English as in the
 * problem itself; the labels are in the reader's language.
 */
import { type Code, table } from "@svc/domain/problems/Table"
import { Effect } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { page, withCode } from "./Page.ts"
import { language, languageOf } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"
import type { Language } from "@svc/domain/account/Account"

const words = texts({
  code: ["Code", "Code", "Code"],
  status: ["HTTP status", "HTTP-Status", "Statut HTTP"],
  hint: ["Agent hint", "Hinweis für Agenten", "Conseil aux agents"],
  hints: {
    fix_call: ["Change the call.", "Den Aufruf ändern.", "Modifiez l’appel."],
    wait: ["Wait, then call again.", "Warten, dann erneut aufrufen.", "Attendez, puis réessayez."],
    stop: ["Do not repeat the call.", "Den Aufruf nicht wiederholen.", "Ne répétez pas l’appel."],
  },
  unknown: [
    ["Unknown problem code", "This service does not use this problem code."],
    ["Unbekannter Problemcode", "Dieser Dienst verwendet diesen Problemcode nicht."],
    ["Code de problème inconnu", "Ce service n’utilise pas ce code de problème."],
  ],
})

export const layer = HttpRouter.add(
  "GET",
  "/problems/:code",
  Effect.map(Effect.all([HttpRouter.RouteContext, language]), ([{ params }, lang]) => {
    const say = words[lang]
    const code = params["code"] ?? ""
    if (!Object.hasOwn(table, code)) {
      const [title, text] = say.unknown
      return page({ status: 404, title, lang, body: `<h1>${title}</h1><p>${text}</p>` })
    }
    const row = table[code as Code]
    return page({
      title: row.title,
      lang,
      description: `${row.meaning} ${row.remedy}`.replaceAll("`", ""),
      body: `<div lang="en"><h1>${withCode(row.title)}</h1><p>${withCode(row.meaning)}</p><p>${withCode(row.remedy)}</p></div>
<dl><dt>${say.code}</dt><dd><code>${code}</code></dd><dt>${say.status}</dt><dd>${row.status}</dd><dt>${say.hint}</dt><dd><code>${row.agent_hint}</code> – ${say.hints[row.agent_hint]}</dd></dl>`,
    })
  }),
)

const notFoundPage = (lang: Language, title: string, text: string) =>
  page({ status: 404, title, lang, body: `<h1>${title}</h1><p>${text}</p>` })

const notFoundPages = {
  en: notFoundPage(
    "en",
    "Page not found",
    `Check the address, or go to the <a href="/">home page</a>. The service is described in its <a href="/docs/">documentation</a>.`,
  ),
  de: notFoundPage(
    "de",
    "Seite nicht gefunden",
    `Prüfe die Adresse oder geh zur <a href="/">Startseite</a>. Der Dienst ist in seiner <a href="/docs/">Dokumentation</a> beschrieben.`,
  ),
  fr: notFoundPage(
    "fr",
    "Page introuvable",
    `Vérifiez l’adresse ou retournez à l’<a href="/">accueil</a>. Le service est décrit dans sa <a href="/docs/">documentation</a>.`,
  ),
}

/** Returns the 404 page in the reader's language, or undefined if the client does not accept HTML. */
export const notFound = (request: HttpServerRequest.HttpServerRequest) =>
  (request.method === "GET" || request.method === "HEAD") && /\btext\/html\b/.test(request.headers["accept"] ?? "")
    ? notFoundPages[languageOf(request)]
    : undefined
