/** The built console in a real browser, served by the whole service, with a signed-in account holder. */
import { execFileSync } from "node:child_process"
import * as path from "node:path"
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"
import type { Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, WebError } from "playwright-core"
import { expect } from "vitest"
import { closeContexts, openBrowser, takeContext } from "./Browser.ts"
import { type ServiceOptions, sharedService, startService } from "./Service.ts"

const root = path.join(import.meta.dirname, "..", "..")

let isBuilt = false
/** Builds the console if it changed; the service reads it at its start. */
export const buildConsole = () => {
  if (!isBuilt) execFileSync(process.execPath, ["packages/console/build.ts"], { cwd: root })
  isBuilt = true
}

/** Starts a browser, and the whole service with the current console. Without options, the service is the shared one. */
export const startConsole = async (options?: ServiceOptions) => {
  buildConsole()
  const own = options === undefined ? undefined : await startService(options)
  return {
    service: own ?? (await sharedService()),
    browser: await openBrowser(),
    stop: async () => {
      await closeContexts()
      await own?.stop()
    },
  }
}

export type TestConsole = Awaited<ReturnType<typeof startConsole>>

export const built = path.join(root, "node_modules", ".cache", "console", "dist")

export interface Look {
  readonly width?: number
  readonly scheme?: "light" | "dark"
  readonly locale?: "en" | "de" | "fr"
}

/** Errors on a page that fail the test that opened it. */
export interface PageErrors {
  readonly errors: Array<string>
  readonly foreign: Array<string>
}

/** A service on a busy machine can respond 503 for a moment, which the browser logs and the console repeats. */
const isBusy = (text: string) => text.includes("status of 503 (Service Unavailable)")

/** The part of a context that tests may use; it leaves nothing behind. */
export type TestContext = Pick<BrowserContext, "newPage" | "newCDPSession" | "waitForEvent" | "close">

/** Opens a context without cookies, stored data or pages. */
export const openContext = async (browser: Browser, base: string, look: Look = {}, session?: string) => {
  const { context, release } = await takeContext(browser, {
    viewport: { width: look.width ?? 1280, height: 800 },
    colorScheme: look.scheme ?? "light",
    // Colors are judged and elements are clicked without waiting for the ends of transitions.
    reducedMotion: "reduce",
    locale: look.locale ?? "en",
    permissions: ["clipboard-read", "clipboard-write"],
  })
  if (session !== undefined) {
    await context.addCookies([
      { name: "svc_session", value: session, url: base, httpOnly: true, sameSite: "Lax" },
      { name: "svc_signed_in", value: "1", url: base, sameSite: "Lax" },
    ])
  }
  const seen: PageErrors = { errors: [], foreign: [] }
  const onMessage = (message: ConsoleMessage) => {
    if (message.type() === "error" && !isBusy(message.text())) seen.errors.push(message.text())
  }
  const onError = (error: WebError) => void seen.errors.push(error.error().message)
  const onRequest = (request: Request) => {
    if (!request.url().startsWith(base) && !/^(?:data|blob|about):/.test(request.url()))
      seen.foreign.push(request.url())
  }
  context.on("console", onMessage).on("weberror", onError).on("request", onRequest)
  const visit: TestContext = {
    newPage: context.newPage.bind(context),
    newCDPSession: context.newCDPSession.bind(context),
    waitForEvent: context.waitForEvent.bind(context),
    close: async () => {
      context.off("console", onMessage).off("weberror", onError).off("request", onRequest)
      await release(base)
    },
  }
  return { context: visit, seen }
}

export const heading = (page: Page) => page.getByRole("heading", { level: 1 })

/** Waits until the page has its heading and no request or animation is pending. */
export const settled = async (page: Page) => {
  await heading(page).first().waitFor()
  await page.locator(".skeleton").first().waitFor({ state: "detached" })
}

/**
 * Navigates from one page of the console to another in the client, as its buttons do, which takes a third of the time
 * of loading it.
 */
export const navigate = async (page: Page, to: string) => {
  // A page with secrets that are shown once asks before it is left.
  const accept = (dialog: Dialog) => void dialog.accept()
  page.on("dialog", accept)
  // The previous page stays until the next one is rendered; each has its own heading.
  await page.evaluate(
    `for (const one of document.querySelectorAll("h1")) one.dataset.before = ""
     history.pushState(null, "", ${JSON.stringify(`/console${to}`)})
     dispatchEvent(new PopStateEvent("popstate"))`,
  )
  await page.locator("h1:not([data-before])").first().waitFor()
  page.off("dialog", accept)
  await settled(page)
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface Violation {
  readonly id: string
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary: string }>
}

/** Returns the violations that axe finds on the page, as text. */
export const violations = async (page: Page): Promise<ReadonlyArray<string>> => {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(axeSource)
  const found = await page.evaluate<ReadonlyArray<Violation>>(
    "axe.run(document, { resultTypes: ['violations'], iframes: false }).then(({ violations }) => violations)",
  )
  return found.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map(({ html, failureSummary }) => `${html.slice(0, 200)} (${failureSummary.slice(0, 200)})`)
        .join("; ")}`,
  )
}

/** Fails if anything is wider than the window, and names it. */
export const expectNoSidewaysScroll = async (page: Page, where: string) => {
  const wider = await page.evaluate<ReadonlyArray<string>>(
    `((window) => document.documentElement.scrollWidth <= window ? [] : ["the page", ...Array.from(document.body.querySelectorAll("*"))
      .filter((one) => one.getBoundingClientRect().right > window || one.scrollWidth > one.clientWidth)
      .map((one) => one.getBoundingClientRect().right + " " + one.outerHTML.slice(0, 160))])(document.documentElement.clientWidth)`,
  )
  expect(wider, `${where} is wider than its window`).toEqual([])
}

/**
 * Returns words of the content that are broken across lines: such a word has two boxes. Made-up names with digits are
 * ignored.
 */
export const brokenWords = (page: Page) =>
  page.evaluate<ReadonlyArray<string>>(String.raw`(() => {
    const found = []
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      for (const match of node.data.matchAll(/(?<![\p{L}\d])\p{L}{2,30}(?![\p{L}\d])/gu)) {
        const range = document.createRange()
        range.setStart(node, match.index)
        range.setEnd(node, match.index + match[0].length)
        if (range.getClientRects().length > 1) found.push(match[0])
      }
    }
    return found
  })()`)
