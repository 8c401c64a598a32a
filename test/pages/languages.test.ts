/** The plain pages in the languages of the console: each is walked in all three, and nothing of the English is left. */
import { type Language, languages } from "@svc/domain/account/Account"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openBrowser } from "../harness/Browser.ts"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { brokenWords, expectNoSidewaysScroll, openContext } from "../harness/Console.ts"
import { startService, type TestService } from "../harness/Service.ts"
import { browser } from "../oauth/Consent.ts"
import { has } from "../harness/Programs.ts"

let service: TestService
const handle = "polyglot"
const description = "Speaks as its holder wrote it."

beforeAll(async () => {
  service = await startService()
  const { session } = await signUp(service.base)
  await makeIdentity(service.base, session, handle)
  const body = {
    description,
    provider: { organization: "Analytical", url: "https://example.org/" },
    skills: [{ id: "s", name: "Sums", description: "Adds and subtracts", tags: ["math"] }],
  }
  await call(service.base, "PATCH", `/api/identities/${handle}/card`, { token: session, body })
})
afterAll(() => service.stop())

const langOf = (html: string) => /<html lang="(\w+)"/.exec(html)?.[1]

/** What the page says in its own language: neither its style nor what it marks as English. */
const ownText = (html: string) =>
  html.replace(/<style>.*?<\/style>/s, "").replaceAll(/<(div|h1) lang="en">.*?<\/\1>/gs, "")

interface Said {
  /** Phrases of the English page: each is on it, and none on another. */
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
  en: ["Sign in", "Your email address", "I accept the", "(needed the first time)", "Mail me a link"],
  de: "Anmelden oder registrieren",
  fr: "Se connecter ou s’inscrire",
}

interface Page {
  readonly path: string
  readonly status: number
  readonly said: Said
}

const pages: ReadonlyArray<Page> = [
  { path: "/auth/sign-in", status: 200, said: signIn },
  { path: "/auth/device", status: 200, said: signIn },
  {
    path: "/auth/device?user_code=WDJB-MJHT",
    status: 200,
    said: {
      en: ["Sign in to confirm a device"],
      de: "Anmelden, um ein Gerät zu bestätigen",
      fr: "Se connecter pour confirmer un appareil",
    },
  },
  {
    path: "/terms",
    status: 200,
    said: {
      en: ["<h1>Terms of Service", "What the service does, what is not", "<title>Terms of Service"],
      de: "ist auf Englisch",
      fr: "est en anglais",
    },
  },
  {
    path: "/problems/rate_limited",
    status: 200,
    said: { en: ["HTTP status", "Agent hint", "Wait, then call again."], de: "HTTP-Status", fr: "Statut HTTP" },
  },
  {
    path: "/problems/none",
    status: 404,
    said: {
      en: ["No such problem", "The service knows"],
      de: "Dieses Problem gibt es nicht",
      fr: "Ce problème n’existe pas",
    },
  },
  {
    path: `/@${handle}`,
    status: 200,
    said: { en: ["AI agent", "Operated by", "Agent card", "Skills"], de: "KI-Agent", fr: "Agent IA" },
  },
  {
    path: "/@nobody-here",
    status: 404,
    said: {
      en: ["No such agent", "Nobody goes by"],
      de: "Diesen Agenten gibt es nicht",
      fr: "Cet agent n’existe pas",
    },
  },
  {
    path: "/nowhere",
    status: 404,
    said: {
      en: ["There is no such page", "Check the address"],
      de: "Diese Seite gibt es nicht",
      fr: "Cette page n’existe pas",
    },
  },
]

const look = async (path: string, headers: Record<string, string>) => {
  const response = await fetch(`${service.base}${path}`, { headers: { accept: "text/html", ...headers } })
  return { response, html: await response.text() }
}

describe("a plain page", () => {
  it.each(pages)(
    "at $path is in the language of who asks, and says to caches that it depends on that",
    async (wanted) => {
      const { path, status, said } = wanted
      for (const lang of languages) {
        const { response, html } = await look(path, { "accept-language": `${lang}-AT,nl;q=0.5` })
        expect(response.status).toBe(status)
        expectSpoken(html, lang, said, `${path} in ${lang}`)
        expect(response.headers.get("vary"), path).toMatch(/^accept-language, cookie\b/)
        expect(response.headers.get("cache-control"), path).toBe(
          path === "/terms" ? "public, max-age=0, must-revalidate" : "no-store",
        )
        // A language that was chosen goes before the browser's.
        const chosen = await look(path, { "accept-language": "nl", cookie: `svc_language=${lang}` })
        expect(langOf(chosen.html), path).toBe(lang)
      }
      expect(langOf((await look(path, { "accept-language": "" })).html)).toBe("en")
    },
  )

  it("leaves what was written in one language in it, and marks it", async () => {
    const headers = { "accept-language": "de" }
    expect((await look("/terms", headers)).html).toContain('<div lang="en"><h2>What the service does')
    expect((await look("/problems/rate_limited", headers)).html).toMatch(/<div lang="en"><h1>.*retry_after_seconds/s)
    expect((await look(`/@${handle}`, headers)).html).toContain(`<p class="lead" lang="">${description}`)
  })
})

/** What a device's holder is told on the way, in the order in which they meet it. */
const way = {
  elsewhere: { en: ["Send the form from this page."], de: "Sende das Formular", fr: "Envoyez le formulaire" },
  noAddress: { en: ["That is no email address."], de: "Das ist keine E-Mail-Adresse", fr: "Ce n’est pas une adresse" },
  terms: { en: ["The first time, the Terms"], de: "Beim ersten Mal", fr: "La première fois" },
  sent: {
    en: ["Look into your mail", "A link is on its way", "and confirm the device"],
    de: "Schau in deine Mail",
    fr: "Consultez votre courrier",
  },
  ask: {
    en: ["Give this device an Admin Key?", "Key name", "Asked by", "not said", "Approve only", "It may", "Until"],
    de: "Diesem Gerät einen Admin Key geben?",
    fr: "Donner une clé Admin à cet appareil ?",
  },
  choices: {
    en: ["do everything", "read only", "it is revoked", "30 days", "1 day<", ">Approve<", ">Deny<"],
    de: "30 Tage",
    fr: "30 jours",
  },
  nothing: { en: ["It may do nothing", "Go back"], de: "Er darf nichts", fr: "Elle ne peut rien faire" },
  approved: { en: ["Approved", "The terminal has", "close this page"], de: "Bestätigt", fr: "Approuvé" },
  settled: { en: ["This login is", "Start a new one"], de: "Beginne im Terminal", fr: "Commencez-en une nouvelle" },
  unknown: { en: ["No device asks"], de: "fragt kein Gerät", fr: "Aucun appareil" },
  denied: { en: ["Denied", "No key was made"], de: "Abgelehnt", fr: "Refusé" },
} satisfies Record<string, Said>

const begun = async () => (await call(service.base, "POST", "/api/auth/device", { body: { name: "laptop" } })).body

describe("who signs up to confirm a device", () => {
  it.each(languages)("is spoken to in one language on the whole way: %s", async (lang) => {
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

    const device = await begun()
    const email = `${newHandle("person")}@example.org`
    const form = { email, user_code: device.user_code }
    await expectNext("elsewhere", 403, "/auth/sign-in", form, { origin: "https://evil.example" })
    await expectNext("noAddress", 400, "/auth/sign-in", { email: "nobody" })
    await expectNext("terms", 422, "/auth/sign-in", form)
    const { text } = await expectNext("sent", 200, "/auth/sign-in", { ...form, terms: "yes" })
    const link = new URL(/href="([^"]*magic-link[^"]*)"/.exec(text)![1]!.replaceAll("&amp;", "&"))
    expect((await person.go(link, { form: Object.fromEntries(link.searchParams) })).status).toBe(303)

    // The account took the language along: from here on it is spoken, whatever the browser says.
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
    const other = await begun()
    await expectNext("denied", 200, "/auth/device", { user_code: other.user_code, decision: "deny" })
  })
})

describe.skipIf(!has("chromium"))("on a small phone", { timeout: 240_000 }, () => {
  it.each(["de", "fr"] as const)("nothing is wider than the window and no word is broken, in %s", async (locale) => {
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
