/** The HTML pages in each language: every page is requested in all three, and no English text is left in the others. */
import { type Language, languages } from "@svc/domain/account/Account"
import { beforeAll, describe, expect, it } from "vitest"
import { openBrowser } from "../harness/Browser.ts"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { brokenWords, expectNoSidewaysScroll, openContext } from "../harness/Console.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { browser } from "../oauth/Consent.ts"
import { has } from "../harness/Programs.ts"

let service: TestService
const handle = "polyglot"
const description = "Speaks as its holder wrote it."

beforeAll(async () => {
  service = await sharedService()
  const { session } = await signUp(service.base)
  await makeIdentity(service.base, session, handle)
  const body = {
    description,
    provider: { organization: "Analytical", url: "https://example.org/" },
    skills: [{ id: "s", name: "Sums", description: "Adds and subtracts", tags: ["math"] }],
  }
  await call(service.base, "PATCH", `/api/identities/${handle}/card`, { token: session, body })
})

const langOf = (html: string) => /<html lang="(\w+)"/.exec(html)?.[1]

/** Returns the page without its style and without the parts that are marked as English. */
const ownText = (html: string) =>
  html.replace(/<style>.*?<\/style>/s, "").replaceAll(/<(div|h1) lang="en">.*?<\/\1>/gs, "")

interface Said {
  /** Phrases that the English page contains and the other pages do not. */
  readonly en: ReadonlyArray<string>
  readonly de: string
  readonly fr: string
}

const expectSpoken = (html: string, lang: Language, { en, de, fr }: Said, where: string) => {
  expect(langOf(html), where).toBe(lang)
  for (const phrase of en) {
    if (lang === "en") expect(html, where).toContain(phrase)
    else expect(ownText(html), where).not.toContain(phrase)
  }
  if (lang !== "en") expect(html, where).toContain(lang === "de" ? de : fr)
}

const signIn = {
  en: ["Sign in", "Your email address", "I accept the", "(required for new accounts)", "Email me a sign-in link"],
  de: "Anmelden oder registrieren",
  fr: "Se connecter ou s’inscrire",
}

interface Page {
  readonly path: string
  readonly status: number
  readonly phrases: Said
}

const pages: ReadonlyArray<Page> = [
  { path: "/auth/sign-in", status: 200, phrases: signIn },
  { path: "/auth/device", status: 200, phrases: signIn },
  {
    path: "/auth/device?user_code=WDJB-MJHT",
    status: 200,
    phrases: {
      en: ["Sign in to confirm a device"],
      de: "Anmelden, um ein Gerät zu bestätigen",
      fr: "Se connecter pour confirmer un appareil",
    },
  },
  {
    path: "/terms",
    status: 200,
    phrases: {
      en: ["<h1>Terms of Service", "What the service does, what is not", "<title>Terms of Service"],
      de: "ist auf Englisch",
      fr: "est en anglais",
    },
  },
  {
    path: "/problems/rate_limited",
    status: 200,
    phrases: { en: ["HTTP status", "Agent hint", "Wait, then call again."], de: "HTTP-Status", fr: "Statut HTTP" },
  },
  {
    path: "/problems/none",
    status: 404,
    phrases: {
      en: ["Unknown problem code", "This service does not use"],
      de: "Unbekannter Problemcode",
      fr: "Code de problème inconnu",
    },
  },
  {
    path: `/@${handle}`,
    status: 200,
    phrases: { en: ["AI agent", "Operated by", "Agent card", "Skills"], de: "KI-Agent", fr: "Agent IA" },
  },
  {
    path: "/@nobody-here",
    status: 404,
    phrases: {
      en: ["Agent not found", "No agent has this name"],
      de: "Agent nicht gefunden",
      fr: "Agent introuvable",
    },
  },
  {
    path: "/console/leave?to=x",
    status: 404,
    phrases: {
      en: ["You are leaving", "This link was not created"],
      de: "Dieser Link stammt nicht von diesem Dienst.",
      fr: "Ce lien ne provient pas de ce service.",
    },
  },
  {
    path: "/nowhere",
    status: 404,
    phrases: {
      en: ["Page not found", "Check the address"],
      de: "Seite nicht gefunden",
      fr: "Page introuvable",
    },
  },
]

const getPage = async (path: string, headers: Record<string, string>) => {
  const response = await fetch(`${service.base}${path}`, { headers: { accept: "text/html", ...headers } })
  return { response, html: await response.text() }
}

describe("Pages", () => {
  it.each(pages)("$path uses the requested language and declares it in Vary", async (wanted) => {
    const { path, status, phrases } = wanted
    for (const lang of languages) {
      const { response, html } = await getPage(path, { "accept-language": `${lang}-AT,nl;q=0.5` })
      expect(response.status).toBe(status)
      expectSpoken(html, lang, phrases, `${path} in ${lang}`)
      expect(response.headers.get("vary"), path).toMatch(/^accept-language, cookie\b/)
      expect(response.headers.get("cache-control"), path).toBe(
        path === "/terms" ? "public, max-age=0, must-revalidate" : "no-store",
      )
      // A chosen language takes precedence over that of the browser.
      const chosen = await getPage(path, { "accept-language": "nl", cookie: `svc_language=${lang}` })
      expect(langOf(chosen.html), path).toBe(lang)
    }
    expect(langOf((await getPage(path, { "accept-language": "" })).html)).toBe("en")
  })

  it("mark texts that exist in one language only", async () => {
    const headers = { "accept-language": "de" }
    expect((await getPage("/terms", headers)).html).toContain('<div lang="en"><h2>What the service does')
    expect((await getPage("/problems/rate_limited", headers)).html).toMatch(/<div lang="en"><h1>.*retry_after_seconds/s)
    expect((await getPage(`/@${handle}`, headers)).html).toContain(`<p class="lead" lang="">${description}`)
  })
})

/** Texts of the device confirmation, in the order in which the account holder sees them. */
const way = {
  elsewhere: { en: ["sent from another site"], de: "von einer anderen Website", fr: "d’un autre site" },
  noAddress: { en: ["Enter a valid email address."], de: "gültige E-Mail-Adresse", fr: "adresse e-mail valide" },
  terms: { en: ["Accept the Terms"], de: "Akzeptiere die", fr: "Acceptez les conditions" },
  sent: {
    en: ["Check your email", "We sent a link", "and approve the device"],
    de: "Sieh in deinem Postfach nach",
    fr: "Consultez votre messagerie",
  },
  ask: {
    en: ["Give this device an Admin Key?", "Key name", "Requested by", "not specified", "Approve only", "Permissions"],
    de: "Diesem Gerät einen Admin Key geben?",
    fr: "Donner une clé Admin à cet appareil ?",
  },
  choices: {
    en: ["Full access", "Read only", "when it is revoked", "30 days", "1 day<", ">Approve<", ">Deny<"],
    de: "30 Tagen",
    fr: "30 jours",
  },
  nothing: { en: ["No permission selected", "Go back"], de: "Keine Berechtigung", fr: "Aucune autorisation" },
  approved: {
    en: ["Device approved", "The terminal receives", "close this page"],
    de: "Gerät bestätigt",
    fr: "Appareil approuvé",
  },
  settled: {
    en: ["This login was", "Start a new login"],
    de: "Starte im Terminal",
    fr: "Lancez une nouvelle connexion",
  },
  unknown: { en: ["No device is waiting"], de: "wartet kein Gerät", fr: "Aucun appareil" },
  denied: { en: ["Device denied", "No key was created"], de: "Gerät abgelehnt", fr: "Appareil refusé" },
} satisfies Record<string, Said>

const startDevice = async () =>
  (await call(service.base, "POST", "/api/auth/device", { body: { name: "laptop" } })).body

describe("Device confirmation by a new account", () => {
  it.each(languages)("uses one language throughout: %s", async (lang) => {
    const person = browser(service.base)
    person.jar.set("svc_language", lang)
    const expectNext = async (
      step: keyof typeof way,
      status: number,
      path: string,
      form?: Record<string, string | ReadonlyArray<string>>,
      headers: Record<string, string> = {},
    ) => {
      const answer = await person.go(path, { ...(form === undefined ? {} : { form }), headers })
      expect(answer.status, step).toBe(status)
      expectSpoken(answer.text, lang, way[step], `${step} in ${lang}`)
      return answer
    }

    const device = await startDevice()
    const email = `${newHandle("person")}@example.org`
    const form = { email, user_code: device.user_code }
    await expectNext("elsewhere", 403, "/auth/sign-in", form, { origin: "https://evil.example" })
    await expectNext("noAddress", 400, "/auth/sign-in", { email: "nobody" })
    await expectNext("terms", 422, "/auth/sign-in", form)
    const { text } = await expectNext("sent", 200, "/auth/sign-in", { ...form, terms: "yes" })
    const link = new URL(/href="([^"]*magic-link[^"]*)"/.exec(text)![1]!.replaceAll("&amp;", "&"))
    expect((await person.go(link, { form: Object.fromEntries(link.searchParams) })).status).toBe(303)

    // The account adopted the language; from here on it takes precedence over the browser.
    person.jar.delete("svc_language")
    const decision = { user_code: device.user_code, scope: "*", days: "30" }
    await expectNext("ask", 200, `/auth/device?user_code=${device.user_code}`)
    await expectNext("choices", 200, `/auth/device?user_code=${device.user_code}`)
    await expectNext("nothing", 400, "/auth/device", { user_code: device.user_code, decision: "approve" })
    await expectNext("approved", 200, "/auth/device", { ...decision, decision: "approve" })
    await expectNext("settled", 200, `/auth/device?user_code=${device.user_code}`)
    await expectNext("unknown", 404, "/auth/device?user_code=no-code")
    const refused = await person.go("/auth/device", { form: { ...decision, decision: "approve" } })
    expect([refused.status, langOf(refused.text)]).toEqual([409, lang])
    expect(refused.text).toContain('<h1 lang="en">')
    const other = await startDevice()
    await expectNext("denied", 200, "/auth/device", { user_code: other.user_code, decision: "deny" })
  })
})

describe.skipIf(!has("chromium"))("Pages on a small phone", () => {
  it.each(["de", "fr"] as const)("fit the window without breaking words, in %s", async (locale) => {
    const chromium = await openBrowser()
    const { context } = await openContext(chromium, service.base, { width: 320, locale })
    const page = await context.newPage()
    for (const { path } of pages) {
      await page.goto(`${service.base}${path}`)
      await expectNoSidewaysScroll(page, `${path} in ${locale}`)
      expect(await brokenWords(page), `${path} in ${locale}`).toEqual([])
    }
    await context.close()
  })
})
