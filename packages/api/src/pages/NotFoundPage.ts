/** A path that does not exist, as a browser is shown it; a program gets the problem. */
import type { Language } from "@svc/domain/account/Account"
import type { HttpServerRequest } from "effect/http"
import { page } from "./Page.ts"
import { languageOf } from "./PageLanguage.ts"

const nowhere = (lang: Language, title: string, text: string) =>
  page({ status: 404, title, lang, body: `<h1>${title}</h1><p>${text}</p>` })

const pages = {
  en: nowhere(
    "en",
    "There is no such page",
    `Check the address, or go <a href="/">home</a>. The API is described in its <a href="/api/docs">documentation</a>.`,
  ),
  de: nowhere(
    "de",
    "Diese Seite gibt es nicht",
    `Prüfe die Adresse, oder geh zur <a href="/">Startseite</a>. Die API ist in ihrer <a href="/api/docs">Dokumentation</a> beschrieben.`,
  ),
  fr: nowhere(
    "fr",
    "Cette page n’existe pas",
    `Vérifiez l’adresse, ou retournez à l’<a href="/">accueil</a>. L’API est décrite dans sa <a href="/api/docs">documentation</a>.`,
  ),
}

/** Undefined where no browser asks. */
export const shown = (request: HttpServerRequest.HttpServerRequest) =>
  (request.method === "GET" || request.method === "HEAD") && /\btext\/html\b/.test(request.headers["accept"] ?? "")
    ? pages[languageOf(request)]
    : undefined
