import { DefaultAgentCardResolver } from "@a2a-js/sdk/client"
import type { Browser } from "playwright-core"
import { beforeAll, describe, expect, it } from "vitest"
import { openBrowser } from "../harness/Browser.ts"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { brokenWords } from "../harness/Console.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

let service: TestService
let owner: Awaited<ReturnType<typeof signUp>>
const handle = `ada-${newHandle("page")}`
const hostile = `"><script>alert(1)</script>`

beforeAll(async () => {
  service = await sharedService()
  owner = await signUp(service.base)
  await makeIdentity(service.base, owner.session, handle)
  await call(service.base, "PATCH", `/api/identities/${handle}/card`, {
    token: owner.session,
    body: {
      name: `Ada ${hostile}`,
      description: hostile,
      provider: { organization: hostile, url: "https://example.org/?a=1&b='2'" },
      version: hostile,
      documentation_url: "https://example.org/?d=1&e='2'",
      interfaces: [{ url: "https://example.org/?f=1&g='2'", protocol_binding: hostile, protocol_version: "1.0" }],
      skills: [
        { id: "s", name: "Sums", description: "Adds & subtracts", tags: ["math"], examples: ["1 + 1?"] },
        { id: "h", name: hostile, description: hostile, tags: [hostile], examples: [hostile] },
      ],
    },
  })
})

describe("Public agent card", () => {
  it("resolves with the A2A SDK, supports ETags and allows any origin", async () => {
    const card = await new DefaultAgentCardResolver().resolve(service.base, `/@${handle}/agent-card.json`)
    expect(card).toMatchObject({ name: `Ada ${hostile}`, skills: [{ id: "s", name: "Sums" }, { id: "h" }] })
    const response = await fetch(`${service.base}/@${handle}/agent-card.json`)
    expect(response.headers.get("access-control-allow-origin")).toBe("*")
    expect(response.headers.get("cache-control")).toBe("public, max-age=0, must-revalidate")
    const repeated = await fetch(`${service.base}/@${handle}/agent-card.json`, {
      headers: { "if-none-match": response.headers.get("etag")! },
    })
    expect(repeated.status).toBe(304)
    const missing = await fetch(`${service.base}/@nobody-here/agent-card.json`)
    expect([missing.status, missing.headers.get("content-type")]).toEqual([404, "application/problem+json"])
  })
})

describe("Profile page", () => {
  it("escapes profile texts and has no script", async () => {
    const response = await fetch(`${service.base}/@${handle}`)
    expect(response.status).toBe(200)
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'")
    const html = await response.text()
    expect(html).not.toContain("<script")
    expect(html).toContain("Ada &quot;&gt;&lt;script&gt;")
    expect(html).toContain("Adds &amp; subtracts")
    for (const query of ["a=1&amp;b", "d=1&amp;e"])
      expect(html).toContain(`href="https://example.org/?${query}=&#39;2&#39;"`)
    // Title, heading, description (twice), operator, version, protocol, and the texts of the skill.
    expect(html.split("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;").length - 1).toBe(11)
  })
  it("redirects other spellings of the Handle and answers 404 for unknown names", async () => {
    const spelled = await fetch(`${service.base}/@${handle.toUpperCase().replaceAll("-", "")}`, { redirect: "manual" })
    expect([spelled.status, spelled.headers.get("location")]).toEqual([308, `/@${handle}`])
    expect((await fetch(`${service.base}/@nobody-here`)).status).toBe(404)
  })
})

describe("Pages for people", () => {
  const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" }
  const getPage = async (path: string, headers: Record<string, string> = browser) => {
    const response = await fetch(`${service.base}${path}`, { headers })
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() }
  }

  it("link sign-in and documentation on the landing page and the landing page on every page", async () => {
    const home = await getPage("/")
    expect(home.status).toBe(200)
    for (const href of ["/auth/sign-in", "/docs/", "/auth/device", "/terms", "/icon.svg"]) {
      expect(home.text).toContain(`href="${href}"`)
      expect((await getPage(href)).status, href).toBe(200)
    }
    for (const path of ["/", "/terms", "/auth/sign-in", "/auth/device", "/problems/not_found", `/@${handle}`]) {
      const { text } = await getPage(path)
      expect(text, path).toMatch(/<title>[^<]*Agent Identity Service<\/title>/)
      expect(text, path).toContain('<a class="home" href="/">')
    }
  })

  it("show unknown paths as a page to browsers and as a problem to other clients", async () => {
    for (const path of ["/nothing", "/api/nothing", "/auth"]) {
      const page = await getPage(path)
      expect([page.status, page.type], path).toEqual([404, "text/html; charset=utf-8"])
      expect(page.text).toContain('href="/"')
      expect((await getPage(path, {})).type, path).toBe("application/problem+json")
    }
  })

  it("format code and show the Terms that sign-up accepts", async () => {
    const problem = await getPage("/problems/rate_limited")
    expect(problem.text).toContain("<code>retry_after_seconds</code>")
    expect(problem.text).not.toContain("`")
    expect((await getPage("/terms")).text).toContain("Version 2026-11-01")
    expect((await getPage("/auth/sign-in")).text).toContain('<a href="/terms"')
  })
})

describe("Documentation", () => {
  it("loads only immutable scripts of this service", async () => {
    const docs = await fetch(`${service.base}/api/docs`)
    const html = await docs.text()
    expect(docs.headers.get("content-security-policy")).toMatch(/default-src 'none'; script-src 'self'/)
    expect(html).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
    const repeated = await fetch(`${service.base}/api/docs`, {
      headers: { "if-none-match": docs.headers.get("etag")! },
    })
    expect(repeated.status).toBe(304)
    const scripts = [...html.matchAll(/<script src="([^"]+)"/g)].map(([, src]) => src!)
    expect(scripts).toHaveLength(2)
    for (const src of scripts) {
      const script = await fetch(`${service.base}${src}`)
      expect([script.status, script.headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"])
      expect((await script.arrayBuffer()).byteLength).toBeGreaterThan(100)
    }
    const former = scripts[0]!.replace(/[^-]+\.js$/, "of-another-release.js")
    expect(await call(service.base, "GET", former)).toMatchObject({ status: 404, body: { code: "not_found" } })
  })

  it("is served together with the OpenAPI document", async () => {
    const document = await call(service.base, "GET", "/api/openapi.json")
    expect(document.body.openapi).toBe("3.1.1")
    const docs = await fetch(`${service.base}/api/docs`)
    expect([docs.status, docs.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/html")])
  })
})

describe.skipIf(!has("chromium"))("Pages in a browser", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })

  it("let an account holder sign in, review a device and approve it", async () => {
    const started = (
      await call(service.base, "POST", "/api/auth/device", { body: { name: "laptop", client: "svc 0.1" } })
    ).body
    const page = await browser.newPage()
    await page.goto(started.verification_uri_complete)
    await page.getByLabel("Your email address").fill(owner.email)
    await page.getByRole("button", { name: "Email me a sign-in link" }).click()
    await page.getByRole("link", { name: "open the link" }).click()
    await page.getByRole("button", { name: "Sign in" }).click()
    // The code is preserved across the sign-in, and no token is shown.
    expect(new URL(page.url()).pathname).toBe("/auth/device")
    expect(await page.content()).not.toContain("svc_sess_")
    expect(await page.locator("dl").innerText()).toContain(started.user_code)
    await page.getByRole("button", { name: "Approve" }).click()
    expect(await page.getByRole("heading").innerText()).toBe("Device approved")
    const { body } = await call(service.base, "POST", "/api/auth/device/token", {
      body: { device_code: started.device_code },
    })
    expect(body.api_key.name).toBe("laptop")
    await page.close()
  })

  it("reject an approval that another site submits", async () => {
    const started = (await call(service.base, "POST", "/api/auth/device", { body: { name: "laptop" } })).body
    const forged = await fetch(`${service.base}/auth/device`, {
      method: "POST",
      headers: { origin: "https://evil.example", cookie: `svc_session=${owner.session}` },
      body: new URLSearchParams({ user_code: started.user_code, decision: "approve" }),
    })
    expect(forged.status).toBe(403)
    const view = await call(service.base, "GET", `/api/auth/device/${started.user_code}`, { token: owner.session })
    expect(view.body.status).toBe("pending")
  })

  it("fit the profile to a phone and execute none of its texts", async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 640 }, colorScheme: "dark" })
    const dialogs: Array<string> = []
    page.on("dialog", (dialog) => (dialogs.push(dialog.message()), void dialog.dismiss()))
    await page.goto(`${service.base}/@${handle}`)
    const [width, background] = await page.evaluate<[number, string]>(
      "[document.documentElement.scrollWidth, getComputedStyle(document.documentElement).colorScheme]",
    )
    expect(width).toBeLessThanOrEqual(360)
    expect(background).toBe("light dark")
    expect(dialogs).toEqual([])
    await page.close()
  })

  it("fit a small phone without breaking words", async () => {
    const page = await browser.newPage({ viewport: { width: 320, height: 640 } })
    const paths = ["/", "/terms", "/auth/sign-in", "/auth/device", "/problems/device_authorization_settled", "/nowhere"]
    for (const path of [...paths, `/@${handle}`]) {
      await page.goto(`${service.base}${path}`)
      expect(await page.evaluate("document.documentElement.scrollWidth"), path).toBeLessThanOrEqual(320)
      expect(await brokenWords(page), path).toEqual([])
    }
    await page.close()
  })

  it("list the operations in the documentation", async () => {
    const page = await browser.newPage()
    const foreign: Array<string> = []
    page.on("request", (request) => {
      if (!request.url().startsWith(service.base) && !request.url().startsWith("data:")) foreign.push(request.url())
    })
    await page.goto(`${service.base}/api/docs`)
    await page.getByText("Getting started").first().waitFor()
    await page.getByText("Send a magic link for sign-up or sign-in").first().waitFor()
    expect(foreign).toEqual([])
    await page.close()
  })
})
