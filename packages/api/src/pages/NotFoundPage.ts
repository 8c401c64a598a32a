/** The 404 page for browsers; other clients receive the problem as JSON. */
import type { Language } from "@svc/domain/account/Account"
import type { HttpServerRequest } from "effect/http"
import { page } from "./Page.ts"
import { languageOf } from "./PageLanguage.ts"

const notFound = (lang: Language, title: string, text: string) =>
  page({ status: 404, title, lang, body: `<h1>${title}</h1><p>${text}</p>` })

const pages = {
  en: notFound(
    "en",
    "Page not found",
    `Check the address, or go to the <a href="/">home page</a>. The API is described in its <a href="/api/docs">documentation</a>.`,
  ),
  de: notFound(
    "de",
    "Seite nicht gefunden",
    `Prüfe die Adresse oder geh zur <a href="/">Startseite</a>. Die API ist in ihrer <a href="/api/docs">Dokumentation</a> beschrieben.`,
  ),
  fr: notFound(
    "fr",
    "Page introuvable",
    `Vérifiez l’adresse ou retournez à l’<a href="/">accueil</a>. L’API est décrite dans sa <a href="/api/docs">documentation</a>.`,
  ),
}

/** Returns the page in the reader's language, or undefined if the client does not accept HTML. */
export const shown = (request: HttpServerRequest.HttpServerRequest) =>
  (request.method === "GET" || request.method === "HEAD") && /\btext\/html\b/.test(request.headers["accept"] ?? "")
    ? pages[languageOf(request)]
    : undefined
