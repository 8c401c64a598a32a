/**
 * What a person finds at `/` who is not signed in: what this is and how to begin, in the language that they chose or that
 * their browser asks for. Who is signed in goes on to the console.
 */
import { Addresses, cardUrl, profileUrl, tunnelUrl } from "@svc/domain/Addresses"
import { type Language, languages } from "@svc/domain/account/Account"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isMarked } from "../account/ConsoleSession.ts"
import { type Part, parts, words } from "./LandingWords.ts"
import { escape, page, product } from "./Page.ts"
import { kept, known, languageOf } from "./PageLanguage.ts"

/** In its own words, whatever is spoken at the moment. */
const names: { readonly [L in Language]: string } = { en: "English", de: "Deutsch", fr: "Français" }

/** The console's signs, drawn on 16 by 16. */
const signs: { readonly [P in Part]: string } = {
  name: "M2 3.5h12v9H2zM4.5 10c.3-1 1-1.5 1.900-1.500S8 9 8.300 10M6.400 7.300a1 1 0 1 0 0-2 1 1 0 0 0 0 2ZM10.300 6.500H12M10.300 9.300H12",
  mail: "M2 4h12v8.500H2zM2.300 4.500 8 9l5.700-4.500",
  send: "m14 2-5 12-2-5.500L1.500 6.500zM14 2 7 8.500",
  tunnel: "M2 13V8a6 6 0 0 1 12 0v5M5.500 13V8.500a2.500 2.500 0 0 1 5 0V13M1 13h14",
  hooks: "M1.500 8.500h3l2-5.500 3 10 2-4.500h3",
  vault: "M3.500 7h9v6.500h-9zM5.250 7V5a2.750 2.750 0 0 1 5.500 0v2M8 9.700v1.300",
  social:
    "M6.500 9.500 9.500 6.500M7.200 4.600l1.400-1.400a2.600 2.600 0 0 1 3.700 3.700L10.900 8.300M8.800 11.400l-1.400 1.400a2.600 2.600 0 0 1-3.700-3.700L5.100 7.700",
  mcp: "M5.500 4 1.500 8l4 4M10.500 4l4 4-4 4M9 2.500l-2 11",
}

/** Chosen just now, chosen before, or asked for by the browser. */
const wanted = (request: HttpServerRequest.HttpServerRequest) => {
  const now = known(new URL(request.url, "http://localhost").searchParams.get("lang"))
  return { now, lang: now ?? languageOf(request) }
}

const make = Effect.gen(function* () {
  const book = yield* Addresses
  const example = JSON.stringify(
    {
      handle: "ada",
      status: "ready",
      email: `ada@${book.mailDomain}`,
      profile_url: profileUrl(book, "ada"),
      card_url: cardUrl(book, "ada"),
      tunnel: { url: tunnelUrl(book, "ada") },
    },
    undefined,
    2,
  )
  const call = `curl ${book.baseUrl}/api/identities \\\n  -H "Authorization: Bearer $SVC_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d '{"handle": "ada"}'`
  const sameEverywhere = languages
    .map((one) => `<link rel="alternate" hreflang="${one}" href="${escape(book.baseUrl)}/?lang=${one}">`)
    .join("")
  const of = (lang: Language) => {
    const say = words[lang]
    const choice = languages
      .map(
        (one) =>
          `<a href="/?lang=${one}" lang="${one}" hreflang="${one}"${one === lang ? ' aria-current="true"' : ""}>${names[one]}</a>`,
      )
      .join("")
    const items = parts
      .map((part) => {
        const [title, text] = say.part[part]
        return `<li><svg viewBox="0 0 16 16" aria-hidden="true"><path d="${signs[part]}"/></svg><h3>${escape(title)}</h3><p>${escape(text)}</p></li>`
      })
      .join("")
    const steps = say.steps.map(([title, text]) => `<li><h3>${escape(title)}</h3><p>${escape(text)}</p></li>`).join("")
    const { docs, mcp, terminal, profile } = say.ways
    return page({
      title: product,
      lang,
      broad: true,
      description: say.description,
      head: `${sameEverywhere}<link rel="canonical" href="${escape(book.baseUrl)}/">`,
      body: `<section class="hero"><div><h1>${escape(say.title)}</h1><p class="lead">${escape(say.lead)}</p>
<p class="acts"><a class="button" href="/console/">${say.begin}</a><a class="button quiet" href="/api/docs">${say.read}</a></p></div>
<div class="shot" role="group" aria-label="${escape(say.request)}"><pre tabindex="0"><b>${escape(call)}</b></pre><pre tabindex="0">${escape(example)}</pre></div></section>
<h2>${say.parts}</h2><ul class="grid">${items}</ul>
<h2>${say.how}</h2><ol class="grid begin">${steps}</ol>
<h2>${say.programs}</h2>
<dl><dt>${docs[0]}</dt><dd><a href="/api/docs">${escape(docs[1])}</a></dd>
<dt>${say.ways.openapi}</dt><dd><a href="/api/openapi.json"><code>/api/openapi.json</code></a></dd>
<dt>${mcp[0]}</dt><dd><code>/api/mcp</code>, ${escape(mcp[1])}</dd>
<dt>${terminal[0]}</dt><dd><code>svc login</code> ${escape(terminal[1])} <a href="/auth/device">${escape(terminal[2])}</a></dd>
<dt>${escape(profile[0])}</dt><dd><code>/@handle</code>, ${escape(profile[1])}</dd>
<dt>${escape(say.ways.health)}</dt><dd><a href="/api/healthz"><code>/api/healthz</code></a></dd></dl>`,
      foot: `<div class="foot-line"><footer class="foot"><a href="/terms">${escape(say.terms)}</a><a href="/api/docs">${docs[0]}</a><nav aria-label="${say.languages}">${choice}</nav></footer></div>`,
    }).pipe(HttpServerResponse.setHeaders({ "cache-control": "private, no-cache", vary: "accept-language, cookie" }))
  }
  const pages = { en: of("en"), de: of("de"), fr: of("fr") }
  const remembered = (lang: Language) =>
    HttpServerResponse.setCookieUnsafe(pages[lang], kept, lang, {
      path: "/",
      maxAge: "365 days",
      sameSite: "lax",
      secure: book.baseUrl.startsWith("https:"),
    })
  const toConsole = HttpServerResponse.redirect("/console/", {
    status: 303,
    headers: { "cache-control": "private, no-cache", vary: "accept-language, cookie" },
  })
  return Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const { now, lang } = wanted(request)
    // Who asks for a language wants to read it.
    if (now === undefined && isMarked(request)) return toConsole
    return now === undefined ? pages[lang] : remembered(now)
  })
})

export const layer = HttpRouter.use((router) => Effect.flatMap(make, (answer) => router.add("GET", "/", answer)))
