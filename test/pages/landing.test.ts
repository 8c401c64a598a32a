/** The landing page at `/`, and the head of every page. */
import { gzipSync } from "node:zlib"
import type { Browser } from "playwright-core"
import { beforeAll, describe, expect, it } from "vitest"
import { openBrowser } from "../harness/Browser.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { buildConsole, expectNoSidewaysScroll, openContext, violations } from "../harness/Console.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

let service: TestService
let handle: string
beforeAll(async () => {
  buildConsole()
  service = await sharedService()
  handle = (await makeIdentity(service.base, (await signUp(service.base)).session)).handle
})

const getPage = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${service.base}${path}`, { redirect: "manual", headers })
  return { response, html: await response.text() }
}
const langOf = (html: string) => /<html lang="(\w+)"/.exec(html)?.[1]

describe("Landing page", () => {
  it("uses the language of the browser until another language is chosen", async () => {
    for (const [header, lang, words] of [
      ["de-AT,en;q=0.5", "de", "Loslegen"],
      ["fr", "fr", "Commencer"],
      ["nl", "en", "Get started"],
    ] as const) {
      const { html, response } = await getPage("/", { "accept-language": header })
      expect([langOf(html), response.headers.get("vary")]).toEqual([lang, "accept-language, cookie, accept-encoding"])
      expect(html).toContain(`>${words}</a>`)
    }
    const chosen = await getPage("/?lang=fr", { "accept-language": "de" })
    expect(langOf(chosen.html)).toBe("fr")
    const cookie = chosen.response.headers.get("set-cookie")!.split(";")[0]!
    expect(langOf((await getPage("/", { "accept-language": "de", cookie })).html)).toBe("fr")
    expect(langOf((await getPage("/?lang=xx", { "accept-language": "de" })).html)).toBe("de")
  })

  it("redirects signed-in users to the console unless they choose a language", async () => {
    const cookie = "svc_signed_in=1"
    const { response } = await getPage("/", { cookie })
    expect([response.status, response.headers.get("location")]).toEqual([303, "/console/"])
    expect((await getPage("/?lang=de", { cookie })).response.status).toBe(200)
    expect((await getPage("/")).response.status).toBe(200)
  })

  it("is at most 12 kB compressed and links its icons", async () => {
    const { html } = await getPage("/")
    expect(gzipSync(html, { level: 9 }).length).toBeLessThanOrEqual(12_000)
    for (const [path, type, begin] of [
      ["/icon.svg", "image/svg+xml", "3c737667"],
      ["/favicon.ico", "image/x-icon", "00000100"],
      ["/apple-touch-icon.png", "image/png", "89504e47"],
    ] as const) {
      expect(html).toContain(`href="${path}"`)
      const response = await fetch(`${service.base}${path}`)
      const bytes = Buffer.from(await response.arrayBuffer())
      expect([response.status, response.headers.get("content-type")]).toEqual([200, type])
      expect(bytes.subarray(0, 4).toString("hex")).toBe(begin)
      expect(bytes.length).toBeLessThanOrEqual(8_000)
    }
  })
})

describe("Pages", () => {
  it("have a description, and private pages are hidden from search engines", async () => {
    const paths = (...open: ReadonlyArray<string>) => open
    for (const path of paths("/", "/terms", "/problems/not_found")) {
      const { html } = await getPage(path)
      expect(html, path).toMatch(/<meta name="description" content="[^"]{20,}">/)
      expect(html, path).not.toContain("noindex")
      expect(html, path).toMatch(/<title>[^<]+<\/title>/)
    }
    const link = `/auth/magic-link?token=${"x".repeat(43)}`
    for (const path of paths(
      "/auth/sign-in",
      "/auth/device",
      link,
      "/auth/magic-link",
      "/@nobody-here",
      "/connectors",
    )) {
      expect((await getPage(path, { accept: "text/html" })).html, path).toContain(
        '<meta name="robots" content="noindex">',
      )
    }
  })
})

describe.skipIf(!has("chromium"))("Pages in a browser", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })

  it.each([
    { width: 1280, scheme: "light", locale: "en" },
    { width: 1280, scheme: "dark", locale: "fr" },
    { width: 320, scheme: "light", locale: "de" },
  ] as const)("are accessible, fit the window and load nothing from other hosts, in %j", async (wanted) => {
    const { context, seen } = await openContext(browser, service.base, wanted)
    const page = await context.newPage()
    for (const path of ["/", "/terms", "/auth/sign-in", "/auth/device", "/problems/rate_limited", `/@${handle}`]) {
      await page.goto(`${service.base}${path}`)
      await page.evaluate("document.fonts.ready")
      expect(await violations(page), path).toEqual([])
      await expectNoSidewaysScroll(page, path)
      expect(await page.getByRole("heading", { level: 1 }).count(), path).toBe(1)
    }
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("lead to sign-in, and after sign-in to the console", async () => {
    const { context } = await openContext(browser, service.base)
    const page = await context.newPage()
    await page.goto(service.base)
    await page.getByRole("link", { name: "Get started", exact: true }).click()
    await page.getByLabel("Your email address").waitFor()
    expect(new URL(page.url()).pathname).toBe("/console/")
    const owner = await signUp(service.base)
    await makeIdentity(service.base, owner.session)
    const link = await call(service.base, "POST", "/api/auth/magic-link", { body: { email: owner.email } })
    await page.goto(link.body.dev_magic_link)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.goto(service.base)
    await page.getByRole("heading", { name: "All agents healthy" }).waitFor()
    expect(new URL(page.url()).pathname).toBe("/console/")
    await context.close()
  })
})
