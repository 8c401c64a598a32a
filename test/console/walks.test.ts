/**
 * Every page by keyboard, also at 400 % zoom (a window of 1280 by 1024 pixels becomes 320 by 256): every control can be
 * reached, is visible while it has the focus, and can be left.
 */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import type { CDPSession, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { expectNoSidewaysScroll, openContext, settled, startConsole, type TestConsole } from "../harness/Console.ts"
import { root } from "../house/Imports.ts"
import { has } from "../harness/Programs.ts"

/** Pages without an item in their path; tests of each capability cover the others. */
const pathsOf = (handle: string) =>
  [...readFileSync(path.join(root, "packages/console/src/Routes.ts"), "utf8").matchAll(/page\("([^"]+)"/g)]
    .map(([, pattern]) => pattern!.replace(":handle", handle).replace(":platform", "bluesky"))
    .filter((to) => !to.includes(":") && to !== "/connectors/callback")

/** Runs in the page: returns the controls that the keyboard must reach. */
const reachable = `[...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.tabIndex >= 0 && !one.closest("[inert]"))`

/**
 * Runs in the page after a step: returns the focused control and whether it is visible. A notice may lie above it: on a
 * busy machine, the console says that it cannot reach the service.
 */
const focused = `(() => {
  const one = document.activeElement
  if (one === null || one === document.body) return null
  const again = window.walked.has(one)
  window.walked.add(one)
  const box = one.getBoundingClientRect()
  const points = [[.5, .5], [.1, .2], [.9, .2], [.1, .8], [.9, .8]].map(([x, y]) => [box.left + box.width * x, box.top + box.height * y])
  const seen = points.some(([x, y]) => {
    const there = document.elementsFromPoint(x, y).find((above) => above.closest(".toasts") === null)
    return there !== undefined && (one.contains(there) || there.contains(one) && !there.matches("body, html"))
  })
  const { outlineStyle, outlineWidth } = getComputedStyle(one)
  const ring = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1
    || one.parentElement !== null && getComputedStyle(one.parentElement).outlineStyle !== "none"
  return { what: one.outerHTML.slice(0, 120), again, seen, ring }
})()`

/** Starts a round: each control that has the focus on keyup is a step. */
const begin = `(() => {
  if (window.steps === undefined) addEventListener("keyup", () => window.steps.push(${focused}), true)
  window.steps = []
  window.walked = new Set()
  document.activeElement?.blur?.()
})()`

interface Step {
  readonly what: string
  readonly again: boolean
  readonly seen: boolean
  readonly ring: boolean
}

/** Number of key presses sent before their results are read. */
const stride = 12

const tab = { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 }

const stepOn = (wire: CDPSession) =>
  Promise.all(
    Array.from({ length: stride }, () => [
      wire.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...tab }),
      wire.send("Input.dispatchKeyEvent", { type: "keyUp", ...tab }),
    ]).flat(),
  )

/** Walks through the page with the Tab key; returns the controls that were not reached. */
const round = async (page: Page, wire: CDPSession, where: string) => {
  const all = await page.evaluate<number>(`${reachable}.length`)
  await page.evaluate(begin)
  let isRound = false
  let met = 0
  for (let step = 0; step < 2 * all + 20 && !isRound; step += stride) {
    await stepOn(wire)
    for (const at of await page.evaluate<ReadonlyArray<Step | null>>("window.steps.splice(0)")) {
      // The focus leaves the page and returns to its start.
      if (at === null) continue
      met++
      isRound ||= at.again
      if (isRound) break
      expect(at.seen, `${where}: ${at.what} has the focus and is hidden`).toBe(true)
      expect(at.ring, `${where}: ${at.what} has the focus and does not show it`).toBe(true)
    }
  }
  expect(met, where).toBeGreaterThan(0)
  return page.evaluate<ReadonlyArray<string>>(
    `${reachable}.filter((one) => !window.walked.has(one) && !(one.type === "radio" && !one.checked)).map((one) => one.outerHTML.slice(0, 120))`,
  )
}

const walk = async (page: Page, wire: CDPSession, where: string) => {
  // Controls that appeared after the focus had passed are reached in the second round.
  const missed = (await round(page, wire, where)).length === 0 ? [] : await round(page, wire, where)
  expect(missed, `${where}: never reached`).toEqual([])
}

/** Runs in the page: returns the sum of its layout shifts. */
const shift = `new Promise((resolve) => {
  let sum = 0
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value
  }).observe({ type: "layout-shift", buffered: true })
  requestAnimationFrame(() => setTimeout(() => resolve(sum), 50))
})`

describe.skipIf(!has("chromium"))("Every page of the console", { timeout: 600_000 }, () => {
  let site: TestConsole
  let session: string
  let handle: string
  beforeAll(async () => {
    site = await startConsole()
    session = (await signUp(site.service.base)).session
    handle = (await makeIdentity(site.service.base, session, "the-longest-name-an-agent-could-ever-be")).handle
    await call(site.service.base, "PUT", "/api/vault/secrets/token", { token: session, body: { value: "s3cret" } })
    await call(site.service.base, "POST", "/api/keys", { token: session, body: { name: "laptop" } })
    await call(site.service.base, "POST", "/api/exports", { token: session })
  })
  afterAll(() => site?.stop())

  it.each([
    ["on a wide screen", 1280, 800, 0.02],
    // The window is a sixteenth of the size, so the same shift has a larger share.
    ["at 400 %", 320, 256, 0.05],
  ] as const)(
    "has no layout shift, no foreign request, a title, and full keyboard access %s",
    async (_, width, height, cls) => {
      const { context, seen } = await openContext(site.browser, site.service.base, { width, locale: "de" }, session)
      await site.service.query((sql) => sql`update org set language = 'de'`)
      const page = await context.newPage()
      const wire = await context.newCDPSession(page)
      let requests = 0
      page.on("request", () => requests++)
      await page.setViewportSize({ width, height })
      for (const to of pathsOf(handle)) {
        // A busy machine can draw a page between two responses, so a page is loaded again before its shift counts.
        let shifted = Number.POSITIVE_INFINITY
        for (let loads = 0; shifted > cls && loads < 3; loads++) {
          requests = 0
          await page.goto(`${site.service.base}/console${to}`)
          await settled(page)
          shifted = await page.evaluate<number>(shift)
        }
        expect(shifted, to).toBeLessThanOrEqual(cls)
        expect(requests, to).toBeLessThanOrEqual(40)
        expect(await page.title(), to).toMatch(/.+ · Agent Identity Service$/)
        const [language, robots, description] = await page.evaluate<ReadonlyArray<string>>(
          `[document.documentElement.lang, ...["robots", "description"].map((name) => document.querySelector(\`meta[name="\${name}"]\`).content)]`,
        )
        expect([language, robots], to).toEqual(["de", "noindex"])
        expect(description, to).toMatch(/\w{3}/)
        await expectNoSidewaysScroll(page, to)
        await walk(page, wire, to)
      }
      expect(seen).toEqual({ errors: [], foreign: [] })
      await context.close()
    },
  )
})
