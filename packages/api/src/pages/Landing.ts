/**
 * The landing page at `/`, in the reader's language. Signed-in account holders are redirected to the console, unless they
 * choose a language.
 */
import { Addresses, cardUrl, profileUrl, tunnelUrl } from "@svc/domain/Addresses"
import { type Language, languages } from "@svc/domain/account/Account"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isMarked } from "../account/ConsoleSession.ts"
import { escape, page, product } from "./Page.ts"
import { languageCookie, languageNamed, languageOf } from "./PageLanguage.ts"
import { texts } from "../Texts.ts"

/** Capabilities of an Identity, in the order of the page. */
const parts = ["name", "mail", "send", "tunnel", "hooks", "vault", "social", "mcp"] as const
type Part = (typeof parts)[number]

const words = texts({
  title: [
    "One call gives a software agent an identity",
    "Ein Aufruf gibt einem Software-Agenten eine Identität",
    "Un appel donne une identité à un agent logiciel",
  ],
  lead: [
    "A name that is never reused, a mailbox, a public address, a profile for other agents, secrets and signed webhooks. Over REST and MCP, controlled by the person responsible for the agent.",
    "Ein Name, der nie neu vergeben wird, ein Postfach, eine öffentliche Adresse, ein Profil für andere Agenten, Geheimnisse und signierte Webhooks. Über REST und MCP, unter der Kontrolle der Person, die für den Agenten verantwortlich ist.",
    "Un nom jamais réattribué, une boîte mail, une adresse publique, un profil pour les autres agents, des secrets et des webhooks signés. Par REST et MCP, sous le contrôle de la personne responsable de l’agent.",
  ],
  description: [
    "A name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks for software agents, over REST and MCP.",
    "Name, Postfach, Tunnel, A2A-Karte, Tresor, soziale Konten und signierte Webhooks für Software-Agenten, über REST und MCP.",
    "Nom, boîte mail, tunnel, carte A2A, coffre, comptes sociaux et webhooks signés pour agents logiciels, par REST et MCP.",
  ],
  begin: ["Get started", "Loslegen", "Commencer"],
  read: ["Read the documentation", "Dokumentation lesen", "Lire la documentation"],
  request: [
    "An API call and the Identity that it creates",
    "Ein API-Aufruf und die Identität, die er anlegt",
    "Un appel d’API et l’identité qu’il crée",
  ],
  parts: ["What an Identity has", "Was zu einer Identität gehört", "Ce que comprend une identité"],
  part: {
    name: [
      ["Name and profile", "A permanent Handle, a public page and an A2A card that other agents can resolve."],
      [
        "Name und Profil",
        "Ein dauerhafter Handle, eine öffentliche Seite und eine A2A-Karte, die andere Agenten abrufen können.",
      ],
      [
        "Nom et profil",
        "Un nom permanent, une page publique et une carte A2A que les autres agents peuvent consulter.",
      ],
    ],
    mail: [
      ["Mailbox", "Mail over REST, live streams and IMAP, with a verdict on whether the sender is genuine."],
      ["Postfach", "E-Mail über REST, Livestreams und IMAP, mit einer Prüfung, ob der Absender echt ist."],
      ["Boîte mail", "Des e-mails par REST, flux en direct et IMAP, avec une vérification de l’expéditeur."],
    ],
    send: [
      [
        "Controlled sending",
        "Agents write to recipients you allow. Every message says that an agent wrote it, and you can require approval.",
      ],
      [
        "Kontrollierter Versand",
        "Agenten schreiben nur an Empfänger, die du erlaubst. Jede Nachricht sagt, dass ein Agent sie geschrieben hat, und du kannst eine Freigabe verlangen.",
      ],
      [
        "Envois maîtrisés",
        "Les agents n’écrivent qu’aux destinataires autorisés. Chaque message indique qu’un agent l’a écrit, et vous pouvez exiger votre accord.",
      ],
    ],
    tunnel: [
      ["Public address", "HTTP, WebSocket and TCP to a local port, behind any firewall."],
      ["Öffentliche Adresse", "HTTP, WebSocket und TCP zu einem lokalen Port, hinter jeder Firewall."],
      ["Adresse publique", "HTTP, WebSocket et TCP vers un port local, derrière n’importe quel pare-feu."],
    ],
    hooks: [
      ["Webhooks and Events", "Signed and retried, with a log of every attempt and response, and redelivery."],
      [
        "Webhooks und Ereignisse",
        "Signiert und wiederholt, mit einem Protokoll aller Versuche und Antworten und erneuter Zustellung.",
      ],
      [
        "Webhooks et événements",
        "Signés et réessayés, avec un journal de chaque tentative et réponse, et le renvoi à la demande.",
      ],
    ],
    vault: [
      ["Vault", "Encrypted, versioned secrets for the account and for each agent."],
      ["Tresor", "Verschlüsselte Geheimnisse mit Versionen, für das Konto und für jeden Agenten."],
      ["Coffre", "Des secrets chiffrés et versionnés, pour le compte et pour chaque agent."],
    ],
    social: [
      ["Social accounts", "Posts, replies and mentions on Bluesky and Mastodon, labeled as automated."],
      [
        "Soziale Konten",
        "Beiträge, Antworten und Erwähnungen auf Bluesky und Mastodon, als automatisiert gekennzeichnet.",
      ],
      ["Comptes sociaux", "Publications, réponses et mentions sur Bluesky et Mastodon, signalées comme automatisées."],
    ],
    mcp: [
      ["Tools for models", "Everything an agent needs as MCP tools, with the same keys and the same limits."],
      ["Werkzeuge für Modelle", "Alles, was ein Agent braucht, als MCP-Werkzeug, mit denselben Schlüsseln und Limits."],
      [
        "Outils pour modèles",
        "Tout ce dont un agent a besoin sous forme d’outils MCP, avec les mêmes clés et les mêmes limites.",
      ],
    ],
  },
  how: ["How to get started", "So geht es los", "Pour commencer"],
  steps: [
    [
      ["Sign in", "Enter your email address and open the link that we send you. There is no password."],
      ["Name your agent", "Its mailbox, address and key are ready after a few seconds."],
      ["Paste the configuration", "Use environment variables, an MCP configuration or a first curl call."],
    ],
    [
      [
        "Anmelden",
        "Gib deine E-Mail-Adresse ein und öffne den Link, den wir dir schicken. Ein Passwort gibt es nicht.",
      ],
      ["Agenten benennen", "Postfach, Adresse und Schlüssel sind nach wenigen Sekunden bereit."],
      ["Konfiguration einfügen", "Als Umgebungsvariablen, als MCP-Konfiguration oder als ersten curl-Aufruf."],
    ],
    [
      ["Se connecter", "Saisissez votre adresse e-mail et ouvrez le lien reçu. Il n’y a pas de mot de passe."],
      ["Nommer l’agent", "Sa boîte, son adresse et sa clé sont prêtes en quelques secondes."],
      ["Coller la configuration", "En variables d’environnement, en configuration MCP ou en premier appel curl."],
    ],
  ],
  programs: ["For developers", "Für Entwickler", "Pour les développeurs"],
  ways: {
    docs: [
      ["Documentation", "Getting started and API reference"],
      ["Dokumentation", "Einstieg und API-Referenz (englisch)"],
      ["Documentation", "Prise en main et référence de l’API (en anglais)"],
    ],
    openapi: ["OpenAPI", "OpenAPI", "OpenAPI"],
    mcp: [
      ["MCP", "with the same credentials"],
      ["MCP", "mit denselben Zugangsdaten"],
      ["MCP", "avec les mêmes identifiants"],
    ],
    terminal: [
      ["Terminal", "shows a code;", "approve it here"],
      ["Terminal", "zeigt einen Code;", "bestätige ihn hier"],
      ["Terminal", "affiche un code ;", "approuvez-le ici"],
    ],
    profile: [
      ["Agent profile", "for people and other agents"],
      ["Profil eines Agenten", "für Menschen und andere Agenten"],
      ["Profil d’un agent", "pour les personnes et les autres agents"],
    ],
    health: ["Service status", "Dienststatus", "État du service"],
  },
  terms: ["Terms of Service", "Nutzungsbedingungen", "Conditions d’utilisation"],
  languages: ["Language", "Sprache", "Langue"],
})

/** Each language by its own name. */
const names: { readonly [L in Language]: string } = { en: "English", de: "Deutsch", fr: "Français" }

/** The console's icons, as SVG paths on a 16 by 16 grid. */
const icons: { readonly [P in Part]: string } = {
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

/** Returns the language chosen by this request, and the language to use: chosen now, chosen before, or the browser's. */
const requestedLanguage = (request: HttpServerRequest.HttpServerRequest) => {
  const now = languageNamed(new URL(request.url, "http://localhost").searchParams.get("lang"))
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
  const alternates = languages
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
        return `<li><svg viewBox="0 0 16 16" aria-hidden="true"><path d="${icons[part]}"/></svg><h3>${escape(title)}</h3><p>${escape(text)}</p></li>`
      })
      .join("")
    const steps = say.steps.map(([title, text]) => `<li><h3>${escape(title)}</h3><p>${escape(text)}</p></li>`).join("")
    const { docs, mcp, terminal, profile } = say.ways
    return page({
      title: product,
      lang,
      broad: true,
      description: say.description,
      head: `${alternates}<link rel="canonical" href="${escape(book.baseUrl)}/">`,
      body: `<section class="hero"><div><h1>${escape(say.title)}</h1><p class="lead">${escape(say.lead)}</p>
<p class="acts"><a class="button" href="/console/">${say.begin}</a><a class="button quiet" href="/docs/">${say.read}</a></p></div>
<div class="shot" role="group" aria-label="${escape(say.request)}"><pre tabindex="0"><b>${escape(call)}</b></pre><pre tabindex="0">${escape(example)}</pre></div></section>
<h2>${say.parts}</h2><ul class="grid">${items}</ul>
<h2>${say.how}</h2><ol class="grid begin">${steps}</ol>
<h2>${say.programs}</h2>
<dl><dt>${docs[0]}</dt><dd><a href="/docs/">${escape(docs[1])}</a></dd>
<dt>${say.ways.openapi}</dt><dd><a href="/api/openapi.json"><code>/api/openapi.json</code></a></dd>
<dt>${mcp[0]}</dt><dd><code>/api/mcp</code>, ${escape(mcp[1])}</dd>
<dt>${terminal[0]}</dt><dd><code>svc login</code> ${escape(terminal[1])} <a href="/auth/device">${escape(terminal[2])}</a></dd>
<dt>${escape(profile[0])}</dt><dd><code>/@handle</code>, ${escape(profile[1])}</dd>
<dt>${escape(say.ways.health)}</dt><dd><a href="/api/healthz"><code>/api/healthz</code></a></dd></dl>`,
      foot: `<div class="foot-line"><footer class="foot"><a href="/terms">${escape(say.terms)}</a><a href="/docs/">${docs[0]}</a><nav aria-label="${say.languages}">${choice}</nav></footer></div>`,
    }).pipe(HttpServerResponse.setHeaders({ "cache-control": "private, no-cache", vary: "accept-language, cookie" }))
  }
  const pages = { en: of("en"), de: of("de"), fr: of("fr") }
  const withLanguageCookie = (lang: Language) =>
    HttpServerResponse.setCookieUnsafe(pages[lang], languageCookie, lang, {
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
    const { now, lang } = requestedLanguage(request)
    if (now === undefined && isMarked(request)) return toConsole
    return now === undefined ? pages[lang] : withLanguageCookie(now)
  })
})

export const layer = HttpRouter.use((router) => Effect.flatMap(make, (handler) => router.add("GET", "/", handler)))
