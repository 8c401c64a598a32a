/** Connected apps and the audit log, as the account holder sees them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { heading, openContext, startConsole, type TestConsole, violations } from "../harness/Console.ts"
import { eventually } from "../harness/Service.ts"
import { browser as consenting, obtainTokens, mcp, registerClient } from "../oauth/Consent.ts"
import { has } from "../harness/Programs.ts"

const here = "http://localhost:4711/callback"

describe.skipIf(!has("chromium"))("Connected apps and audit log in the console", () => {
  let site: TestConsole
  beforeAll(async () => {
    site = await startConsole()
  })
  afterAll(() => site?.stop())

  const owner = async () => {
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session, newHandle("ada"))
    const { context, seen } = await openContext(site.browser, site.service.base, {}, session)
    return { session, handle, context, seen, page: await context.newPage() }
  }

  it("narrows an app's access from the link in a problem, and revokes it", async () => {
    const { session, handle, context, seen, page } = await owner()
    // The app chooses its name, which must appear as text.
    const client = (await registerClient(site.service.base, [here], "<b>Claude</b>")).body["client_id"]
    const { access } = await obtainTokens(site.service.base, consenting(site.service.base, session), client, here)
    const use = async (name: string) =>
      (await mcp(site.service.base, access, "tools/call", { name, arguments: { handle } })).body["result"]
        .structuredContent
    await use("svc_whoami")
    const { body } = await call(site.service.base, "GET", "/api/grants", { token: session })
    await page.goto(`${site.service.base}/console/keys/${body.grants[0].id}`)
    const form = page.getByRole("dialog")
    await form.getByRole("checkbox", { name: "mail:read" }).uncheck()
    await form.getByRole("button", { name: "Save" }).click()
    await form.waitFor({ state: "detached" })
    expect(await use("svc_email_list")).toMatchObject({ code: "scope_missing" })
    const apps = page.getByRole("table", { name: "Connected apps" })
    await apps.getByText("<b>Claude</b>").waitFor()
    const row = await apps.innerText()
    for (const part of ["localhost", `@${handle}`, "card:read"]) expect(row).toContain(part)
    expect(row).not.toContain("mail:read")
    expect(await violations(page)).toEqual([])
    await apps.getByRole("button", { name: /^Revoke / }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click()
    await page.getByText("No connected apps").waitFor()
    expect((await mcp(site.service.base, access, "tools/list")).status).toBe(401)
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("opens the page that was requested before sign-in, if that was recently, and shows no data of another account", async () => {
    const [ada, bob] = [await owner(), await owner()]
    await bob.context.close()
    const { base } = site.service
    const { context, page } = ada
    const cookies = page.context()
    const signInAs = ({ session }: { readonly session: string }) =>
      cookies.addCookies([{ name: "svc_session", value: session, url: base, httpOnly: true, sameSite: "Lax" }])
    const leave = (millisAgo: number) =>
      page.evaluate(
        `localStorage.setItem("svc-return", JSON.stringify({ path: "/activity/audit", at: Date.now() - ${millisAgo} }))`,
      )
    await page.goto(`${base}/console`)
    await page.getByText(ada.handle).first().waitFor()
    await leave(15 * 60_000)
    await page.goto(`${base}/console`)
    await page.getByText(ada.handle).first().waitFor()
    expect(page.url()).not.toContain("audit")
    await leave(14 * 60_000)
    await page.goto(`${base}/console`)
    await page.waitForURL(`${base}/console/activity/audit`)

    await page.goto(`${base}/console`)
    await page.getByText(ada.handle).first().waitFor()
    // No answer for the other account arrives yet.
    let answer = () => {}
    const answered = new Promise<void>((resolve) => (answer = resolve))
    await page.route(/\/api\/(?!auth)/, async (route) => {
      await answered
      await route.continue()
    })
    await signInAs(bob)
    // The first answer about the session is lost.
    await page.route("**/api/auth/session", (route) => route.abort(), { times: 1 })
    await page.evaluate(`new BroadcastChannel("svc-session").postMessage("changed")`)
    await page.getByText(ada.handle).first().waitFor({ state: "detached" })
    answer()
    await page.getByText(bob.handle).first().waitFor()
    await context.close()
  })

  it("filters audit records by category and outcome, and shows names as text", async () => {
    const { session, handle, context, seen, page } = await owner()
    const made = await call(site.service.base, "POST", "/api/keys", { token: session, body: { name: "<i>ci</i>" } })
    await call(site.service.base, "PATCH", `/api/identities/${handle}/card`, {
      token: made.body.key,
      body: { description: "x" },
    })
    await call(site.service.base, "PATCH", "/api/identities/nobody-here/card", {
      token: made.body.key,
      body: { description: "x" },
    })
    // Records are listed when no earlier transaction is running any more.
    await eventually(
      () => call(site.service.base, "GET", "/api/audit", { token: session }),
      ({ body }) => body.records.some(({ action }: { action: string }) => action === "cards.patch"),
    )
    await page.goto(`${site.service.base}/console/activity/audit`)
    await heading(page).getByText("Audit log").waitFor()
    const lines = page.locator("[data-list] > li")
    await lines.filter({ hasText: "The account holder created the key" }).first().waitFor()
    await lines
      .filter({ hasText: `<i>ci</i> changed the card of ${handle}` })
      .first()
      .waitFor()
    const line = lines.filter({ hasText: "changed the card" }).first()
    const raw = line.getByText('"action": "cards.patch"')
    expect(await raw.isVisible()).toBe(false)
    await line.locator("summary").click()
    await raw.waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByLabel("Outcome").selectOption({ label: "Denied" })
    await eventually(
      () => lines.allInnerTexts(),
      (all) => all.length > 0 && all.every((text) => text.includes("refused (not_found)")),
    )
    await page.getByLabel("Outcome").selectOption({ label: "All outcomes" })
    await page.getByLabel("Category").selectOption({ label: "Secrets" })
    await eventually(
      () => lines.allInnerTexts(),
      (all) =>
        all.some((text) => text.includes("created the key")) && !all.some((text) => text.includes("changed the card")),
    )
    // Viewing the log is recorded as well.
    await lines.filter({ hasText: "viewed the audit log" }).first().waitFor()
    expect(seen.errors).toEqual([])
    await context.close()
  })
})
