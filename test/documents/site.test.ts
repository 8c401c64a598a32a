/** The documentation site in a browser: accessibility, search, the remembered language of code, and the theme. */
import { execFileSync } from "node:child_process"
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"
import * as path from "node:path"
import type { Browser, Page } from "playwright-core"
import { beforeAll, describe, expect, it } from "vitest"
import { openBrowser } from "../harness/Browser.ts"
import { has } from "../harness/Programs.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

describe.skipIf(!has("chromium"))("Documentation site", () => {
  let service: TestService
  let browser: Browser
  beforeAll(async () => {
    execFileSync(process.execPath, [path.join(root, "packages", "site", "build.ts")])
    service = await sharedService()
    browser = await openBrowser()
  })

  /** Opens a page and returns it with the errors of its console and the requests to other hosts. */
  const open = async (url: string, options: Parameters<Browser["newContext"]>[0] = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
    const page = await context.newPage()
    const wrong: Array<string> = []
    page.on("console", (message) => message.type() === "error" && wrong.push(message.text()))
    page.on("pageerror", (error) => wrong.push(error.message))
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== service.base) wrong.push(request.url())
    })
    await page.goto(`${service.base}${url}`)
    return { page, wrong, close: () => context.close() }
  }

  const violations = async (page: Page) => {
    await page.evaluate(axe)
    return page.evaluate(async () => {
      const { violations } = await (
        globalThis as unknown as {
          axe: { run: () => Promise<{ violations: Array<{ id: string; nodes: Array<{ html: string }> }> }> }
        }
      ).axe.run()
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.html.slice(0, 200)}`)
    })
  }

  it.each(["light", "dark"] as const)("has no accessibility violation in the %s theme", async (colorScheme) => {
    for (const [url, width] of [
      ["/docs/", 1280],
      ["/docs/", 360],
      ["/docs/quick-start", 1280],
      ["/docs/quick-start", 360],
      ["/docs/concepts/control", 768],
      ["/docs/guides/from-agentmail", 360],
      ["/docs/permissions", 1280],
    ] as const) {
      const { page, wrong, close } = await open(url, {
        colorScheme,
        bypassCSP: true,
        viewport: { width, height: 900 },
      })
      await page.locator(".VPContent[role=main], main").first().waitFor()
      expect(await violations(page), `${url} ${width}`).toEqual([])
      const isWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
      expect([url, width, isWide]).toEqual([url, width, false])
      expect(wrong, url).toEqual([])
      await close()
    }
  })

  it("searches without a server, under the content security policy", async () => {
    const { page, wrong, close } = await open("/docs/")
    await page.getByRole("button", { name: "Search" }).click()
    await page.getByRole("searchbox").fill("approve")
    await page.locator(".VPLocalSearchBox .result").first().waitFor()
    await page.context().setOffline(true)
    await page.getByRole("searchbox").fill("handle never given out again")
    await page.locator(".VPLocalSearchBox .result", { hasText: "Identity" }).first().waitFor()
    await page.context().setOffline(false)
    await page.locator(".VPLocalSearchBox .result", { hasText: "Identity" }).first().click()
    await page.locator(".VPLocalSearchBox").waitFor({ state: "detached" })
    await page.locator("main h1").waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it("shows the reader's language of code on every page", async () => {
    const { page, wrong, close } = await open("/docs/quick-start")
    expect(await page.locator("code", { hasText: "wait_for_message" }).first().isVisible()).toBe(false)
    await page.locator(".vp-code-group label", { hasText: "Python" }).last().click()
    await page.locator("code", { hasText: "wait_for_message" }).first().waitFor()
    await page.locator("code", { hasText: "pip install" }).first().waitFor()
    await page.locator(".VPSidebar a", { hasText: "Let two agents talk" }).click()
    await page.locator("code", { hasText: "client.create_identity" }).first().waitFor()
    await page.reload()
    await page.locator("code", { hasText: "client.create_identity" }).first().waitFor()
    expect(wrong).toEqual([])
    await close()
  })

  it("keeps the theme that the reader chose, and draws with its colors", async () => {
    const { page, close } = await open("/docs/concepts/identity", { colorScheme: "light" })
    const fill = () => page.evaluate<string>(`getComputedStyle(document.querySelector(".drawing .main")).fill`)
    const light = await fill()
    await page.getByRole("switch").first().click()
    await page.reload()
    expect(await page.locator("html.dark").count()).toBe(1)
    expect(await fill()).not.toBe(light)
    expect(await page.locator(".drawing").getAttribute("aria-label")).toContain("Mailbox")
    await close()
  })
})
