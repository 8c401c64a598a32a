/** The frame of the service's plain pages: readable without script, in light and dark, cached by nobody. */
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

/** Text with what stands between backticks as code. */
export const withCode = (text: string): string => escape(text).replace(/`([^`]*)`/g, "<code>$1</code>")

export const product = "Agent Identity Service"

const words: { readonly [L in Language]: readonly [skip: string, documentation: string, signIn: string] } = {
  en: ["To the content", "Documentation", "Sign in"],
  de: ["Zum Inhalt", "Dokumentation", "Anmelden"],
  fr: ["Au contenu", "Documentation", "Se connecter"],
}

const header = ([skip, documentation, signIn]: (typeof words)[Language]) =>
  `<a class="skip" href="#main">${skip}</a><div class="bar-line"><header class="top"><a class="home" href="/"><img src="/icon.svg" alt="" width="24" height="24">${product}</a><a href="/api/docs">${documentation}</a><a href="/auth/sign-in">${signIn}</a></header></div>`

/** What stands in the head of every page of ours beside its title. */
const icons = `<link rel="icon" href="/favicon.ico" sizes="32x32"><link rel="icon" href="/icon.svg" type="image/svg+xml"><link rel="apple-touch-icon" href="/apple-touch-icon.png">`

export interface PageOptions {
  readonly title: string
  /** HTML; whatever came from outside has been through {@link escape}. */
  readonly body: string
  readonly status?: number
  /** The reader's, by which the answer then varies; without it the page is in English for everybody. */
  readonly lang?: Language
  readonly description?: string
  /** Where the browser goes on to, by itself; the page has a link to it as well. */
  readonly onward?: string
  /** What makes no answer of the caller's own may be kept for as long as it is asked for again. */
  readonly forEveryone?: boolean
  /** Nothing that a search engine should keep. */
  readonly unlisted?: boolean
  /** Of the wide kind. */
  readonly broad?: boolean
  /** More of the head, and what stands below the content. */
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
        // Other sites learn nothing of our addresses; our own forms still say where they come from (`Origin`).
        "referrer-policy": "same-origin",
      },
    },
  )
}
