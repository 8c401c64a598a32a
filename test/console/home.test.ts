/** Home: one request, what needs a person, the activity of today, live updates, and a layout that does not move. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { heading, openContext, settled, startConsole, type TestConsole } from "../harness/Console.ts"
import { send } from "../harness/Mail.ts"
import { insertSignIn } from "../harness/SignIns.ts"
import { has } from "../harness/Programs.ts"
import { eventually } from "../harness/Service.ts"

/** Runs in the page: returns the sum of its layout shifts, and the elements that moved. */
const shift = `new Promise((resolve) => {
  let sum = 0
  const moved = []
  new PerformanceObserver((list) => {
    for (const { hadRecentInput, value, sources } of list.getEntries()) {
      if (hadRecentInput) continue
      sum += value
      for (const { node } of sources) moved.push([value, node?.outerHTML?.slice(0, 200) ?? node?.data])
    }
  }).observe({ type: "layout-shift", buffered: true })
  requestAnimationFrame(() => setTimeout(() => resolve({ sum, moved }), 50))
})`

describe.skipIf(!has("chromium"))("Home", () => {
  let site: TestConsole
  let session: string
  let handles: ReadonlyArray<string>
  let key: string
  beforeAll(async () => {
    site = await startConsole()
    session = (await signUp(site.service.base)).session
    const made = []
    for (let count = 0; count < 12; count++) made.push(await makeIdentity(site.service.base, session))
    handles = made.map(({ handle }) => handle)
    key = made[0]!.secrets.identity_key
  })
  afterAll(() => site?.stop())

  const open = async () => {
    const { context, seen } = await openContext(site.browser, site.service.base, {}, session)
    const page = await context.newPage()
    const requests: Array<string> = []
    page.on("request", (request) => {
      const { pathname } = new URL(request.url())
      if (pathname.startsWith("/api/")) requests.push(pathname)
    })
    return { context, seen, page, requests }
  }
  const live = async (page: Page) => {
    await page.goto(`${site.service.base}/console/`)
    await settled(page)
    await page.getByText("Live", { exact: true }).waitFor()
  }
  const mail = (handle: string, subject: string) =>
    send(site.service.smtpPort, { from: "grace@example.org", to: `${handle}@mail.localhost`, subject, text: "?" })
  const api = (method: string, at: string, body?: unknown, token = session) =>
    call(site.service.base, method, at, { token, ...(body === undefined ? {} : { body }) })

  it("reads everything that it shows with one request", async () => {
    const { page, context, requests, seen } = await open()
    await live(page)
    await heading(page).getByText("All agents healthy").waitFor()
    await page.waitForLoadState("networkidle").catch(() => undefined)
    const own = requests.filter(
      // The shell asks for these on every page.
      (path) =>
        !["/api/auth/session", "/api/identities", "/api/account/mail", "/api/events", "/api/events/stream"].includes(
          path,
        ),
    )
    // A second time, it is read for Events from before the stream was open.
    expect([...new Set(own)]).toEqual(["/api/overview"])
    expect(own.length).toBeLessThanOrEqual(3)
    expect(await page.getByRole("table", { name: "Identities" }).locator("tbody tr").count()).toBe(12)
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it.each(["/api/overview", "/api/identities", "/api/auth/session"])("does not move if %s is slow", async (slow) => {
    const { page, context } = await open()
    // The response waits until everything else is there.
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    await page.route(`**${slow}*`, async (route) => {
      await gate
      await route.continue()
    })
    await page.goto(`${site.service.base}/console/`)
    if (slow !== "/api/auth/session") await page.getByText("Vault").first().waitFor({ state: "attached" })
    if (slow === "/api/identities") await page.getByText("Today (UTC)").waitFor()
    if (slow === "/api/overview") await page.getByRole("navigation").getByText(handles[0]!).waitFor()
    await page.evaluate("document.fonts.ready")
    release()
    await page.getByText("Today (UTC)").waitFor()
    await page.getByRole("navigation").getByText(handles[0]!).waitFor()
    const { sum, moved } = await page.evaluate<{ readonly sum: number; readonly moved: ReadonlyArray<unknown> }>(shift)
    expect(sum, JSON.stringify(moved)).toBeLessThanOrEqual(0.02)
    await context.close()
  })

  it("shows a new message with one request", async () => {
    const { page, context, requests } = await open()
    await live(page)
    await page.waitForLoadState("networkidle").catch(() => undefined)
    requests.length = 0
    await mail(handles[3]!, "Minutes of the meeting")
    await page.getByRole("row").filter({ hasText: handles[3]! }).getByText("Minutes of the meeting").waitFor()
    // The console looks up Events from before the stream opened. This may happen late, and reads the Identities again.
    const late = ["/api/events", "/api/identities"]
    expect(requests.filter((path) => path !== "/api/overview" && !late.includes(path))).toEqual([])
    expect(requests.filter((path) => path === "/api/identities").length).toBeLessThanOrEqual(1)
    // The Event, the changed Mailbox and the poll cause one request each if they do not come together.
    expect(requests.filter((path) => path === "/api/overview").length).toBeLessThanOrEqual(3)
    await context.close()
  })

  it("lists what needs the person, and removes it when it is done", async () => {
    const { page, context } = await open()
    await live(page)
    const at = `/api/identities/${handles[0]}`
    await api("PATCH", `${at}/mail`, { approval: "required" })
    await api("POST", `${at}/allowed-recipients`, { address: "grace@example.org" })
    const sent = await api(
      "POST",
      `${at}/messages/send`,
      { to: ["grace@example.org"], subject: "Offer", text: "?" },
      key,
    )
    await heading(page).getByText("1 item needs your attention").waitFor()
    const need = page.getByRole("link", { name: /requests approval to send .*Offer/ })
    expect(await need.getAttribute("href")).toBe(`/console/identities/${handles[0]}/mail/approvals/${sent.body.id}`)
    await api("POST", `${at}/approvals/${sent.body.id}/refuse`, { reason: "no" })
    await heading(page).getByText("All agents healthy").waitFor()
    await need.waitFor({ state: "detached" })
    await context.close()
  })

  it("leads to a sign-in that awaits approval, until it is decided", async () => {
    const [waiting] = await site.service.query((sql) => insertSignIn(sql, handles[1]!))
    const { page, context } = await open()
    await live(page)
    const need = page.getByRole("link", { name: /requests approval to sign in at .*shop\.example/ })
    expect(await need.getAttribute("href")).toBe(`/console/identities/${handles[1]}/proof`)
    await api("POST", `/api/identities/${handles[1]}/sign-ins/${waiting!.id}/refuse`)
    await need.waitFor({ state: "detached" })
    await context.close()
  })

  it("shows what happened today, with failures", async () => {
    await site.service.query(
      (sql) => sql`
        insert into usage_hour (org_id, identity_id, hour, kind, count, failed, bytes_in, bytes_out)
        select id, null, date_trunc('hour', now()), 'delivery', 41, 2, 0, 0 from org
        where id = (select org_id from identity where handle = ${handles[0]!})`,
    )
    const { page, context } = await open()
    await live(page)
    const figure = page.locator(".figures > div").filter({ hasText: "Webhook deliveries" })
    await eventually(
      () => figure.innerText(),
      (text) => /41\s+2 failed/.test(text),
    )
    await context.close()
  })
})
