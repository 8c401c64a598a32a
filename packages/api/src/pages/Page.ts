/** The frame of the service's HTML pages. They work without script, in light and dark mode, and are not cached. */
import type { Language } from "@svc/domain/account/Account"
import { HttpServerResponse } from "effect/http"
import { font, style } from "./Style.ts"

export const escape = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")

/** Escapes text and marks the parts between backticks as code. */
export const withCode = (text: string): string => escape(text).replace(/`([^`]*)`/g, "<code>$1</code>")

export const product = "Agent Identity Service"

const words: { readonly [L in Language]: readonly [skip: string, documentation: string, signIn: string] } = {
  en: ["Skip to content", "Documentation", "Sign in"],
  de: ["Zum Inhalt springen", "Dokumentation", "Anmelden"],
  fr: ["Aller au contenu", "Documentation", "Se connecter"],
}

const header = ([skip, documentation, signIn]: (typeof words)[Language]) =>
  `<a class="skip" href="#main">${skip}</a><div class="bar-line"><header class="top"><a class="home" href="/"><img src="/icon.svg" alt="" width="24" height="24">${product}</a><a href="/docs">${documentation}</a><a href="/auth/sign-in">${signIn}</a></header></div>`

const icons = `<link rel="icon" href="/favicon.ico" sizes="32x32"><link rel="icon" href="/icon.svg" type="image/svg+xml"><link rel="apple-touch-icon" href="/apple-touch-icon.png">`

const later: { readonly [L in Language]: readonly [title: string, text: string] } = {
  en: ["Temporarily unavailable", "Try again in a moment."],
  de: ["Vorübergehend nicht verfügbar", "Versuche es gleich noch einmal."],
  fr: ["Temporairement indisponible", "Réessayez dans un instant."],
}

interface PageOptions {
  readonly title: string
  /** HTML. External values must have passed {@link escape}. */
  readonly body: string
  readonly status?: number
  /** The reader's language, by which the response varies; without it the page is English for every reader. */
  readonly lang?: Language
  readonly description?: string
  /** The address to which the browser is forwarded; the body has a link to it as well. */
  readonly onward?: string
  /** The page depends on no caller, so caches may store it and revalidate. */
  readonly forEveryone?: boolean
  /** Excludes the page from search engines. */
  readonly unlisted?: boolean
  /** Uses the wide layout. */
  readonly broad?: boolean
  /** Additional HTML of the head, and HTML below the content. */
  readonly head?: string
  readonly foot?: string
}

export const page = (options: PageOptions) => {
  const { lang = "en" } = options
  const about = options.description === undefined || options.description === "" ? undefined : options.description
  const isHidden = options.unlisted === true || (options.status ?? 200) >= 400
  const title = options.title === product ? product : `${escape(options.title)} · ${product}`
  return HttpServerResponse.text(
    `<!doctype html><html lang="${lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">${isHidden ? '<meta name="robots" content="noindex">' : ""}${about === undefined ? "" : `<meta name="description" content="${escape(about)}">`}${options.onward === undefined ? "" : `<meta http-equiv="refresh" content="0;url=${escape(options.onward)}">`}<title>${title}</title>${icons}<link rel="preload" href="${font}" as="font" type="font/woff2" crossorigin>${options.head ?? ""}<style>${style}</style></head><body${options.broad === true ? ' class="broad"' : ""}>${header(words[lang])}<main id="main">${options.body}</main>${options.foot ?? ""}</body></html>`,
    {
      status: options.status ?? 200,
      contentType: "text/html; charset=utf-8",
      headers: {
        "cache-control": options.forEveryone === true ? "public, max-age=0, must-revalidate" : "no-store",
        ...(options.lang === undefined ? {} : { vary: "accept-language, cookie" }),
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        // Other sites receive no referrer; our own forms still send `Origin`.
        "referrer-policy": "same-origin",
      },
    },
  )
}

/** The page in place of one whose data cannot be read at the moment. */
export const laterPage = (lang: Language) => {
  const [title, text] = later[lang]
  return page({ title, status: 503, lang, body: `<h1>${title}</h1><p>${text}</p>` })
}
