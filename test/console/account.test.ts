/** Account pages: secrets, keys, devices, sessions, limits, exports, mail programs. */
import type { Page } from "playwright-core"
import { newestVersion } from "@svc/domain/Versions"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { openContext, startConsole, type TestConsole } from "../harness/Console.ts"
import { eventually } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

describe.skipIf(!has("chromium"))("Account pages of the console", () => {
  let site: TestConsole
  beforeAll(async () => {
    site = await startConsole({ env: { SVC_IDENTITY_QUOTA: "1", SVC_LIMIT_CALLS: "6000" } })
  })
  afterAll(() => site?.stop())

  const open = async (path: string) => {
    const owner = await signUp(site.service.base)
    const { context, seen } = await openContext(site.browser, site.service.base, {}, owner.session)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console${path}`)
    const api = (method: string, at: string, body?: unknown) =>
      call(site.service.base, method, at, { token: owner.session, ...(body === undefined ? {} : { body }) })
    return { ...owner, page, context, seen, api }
  }
  const dialog = (page: Page) => page.getByRole("dialog")
  const clipboard = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()")

  it("stores a secret, reveals it only on request, changes, restores and deletes it", async () => {
    const { page, context, seen, api } = await open("/vault")
    await page.getByRole("button", { name: "Add secret" }).click()
    await dialog(page).getByLabel("Name").fill("erp.token")
    await dialog(page).getByLabel("Value").fill("first-value")
    await dialog(page).getByLabel("Description").fill("Reads orders")
    await dialog(page).getByRole("button", { name: "Save" }).click()
    await page.getByRole("link", { name: "erp.token" }).click()
    expect(await page.content()).not.toContain("first-value")
    await dialog(page).getByRole("button", { name: "Reveal" }).click()
    await dialog(page).getByText("first-value").waitFor()
    await dialog(page).getByRole("button", { name: "Change value" }).click()
    await dialog(page).getByLabel("Value").fill("second-value")
    await dialog(page).getByRole("button", { name: "Save" }).click()
    await page.getByText("erp.token saved").first().waitFor()
    await eventually(
      () => api("GET", "/api/vault/secrets/erp.token/value"),
      ({ body }) => body.value === "second-value",
    )
    await dialog(page)
      .getByRole("button", { name: /Restore: Version 1/ })
      .click()
    await eventually(
      () => api("GET", "/api/vault/secrets/erp.token/value"),
      ({ body }) => body.value === "first-value" && body.version === 3,
    )
    await dialog(page).getByRole("button", { name: "Delete" }).click()
    const last = dialog(page).getByRole("button", { name: "Delete" })
    expect(await last.isDisabled()).toBe(true)
    await dialog(page).getByRole("textbox").fill("erp.token")
    await last.click()
    await page.getByText("No secrets yet").waitFor()
    expect((await api("GET", "/api/vault/secrets/erp.token/value")).status).toBe(404)
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("shows a new key once and revokes it", async () => {
    const { page, context, seen } = await open("/keys")
    await page.getByRole("button", { name: "Create key" }).click()
    await dialog(page).getByLabel("Name").fill("laptop")
    await dialog(page).getByRole("button", { name: "Create key" }).click()
    await dialog(page).getByRole("button", { name: "Copy Key" }).click()
    const key = await clipboard(page)
    expect(key).toMatch(/^svc_admin_/)
    expect(await page.content()).not.toContain(key)
    await page.keyboard.press("Escape")
    await dialog(page).getByRole("button", { name: "I have stored it" }).click()
    expect((await call(site.service.base, "GET", "/api/auth/whoami", { token: key })).body.caller.key_name).toBe(
      "laptop",
    )
    await page.getByRole("button", { name: "Revoke laptop" }).click()
    await dialog(page).getByRole("button", { name: "Revoke" }).click()
    await page.getByText("No Admin Keys yet").waitFor()
    await eventually(
      () => call(site.service.base, "GET", "/api/auth/whoami", { token: key }),
      ({ status }) => status === 401,
    )
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("approves or denies a terminal by its code", async () => {
    const { page, context } = await open("/keys/devices")
    const ask = async () =>
      (await call(site.service.base, "POST", "/api/auth/device", { body: { name: "<i>desk</i>", client: "svc" } })).body
    const answer = async (asked: { readonly device_code: string }) =>
      (await call(site.service.base, "POST", "/api/auth/device/token", { body: { device_code: asked.device_code } }))
        .body
    const wanted = await ask()
    await page.getByLabel("Code").fill(wanted.user_code)
    await page.getByRole("button", { name: "Continue" }).click()
    await page.getByText("<i>desk</i>").waitFor()
    await page.getByRole("button", { name: "Approve" }).click()
    await page
      .getByText(/terminal/i)
      .first()
      .waitFor()
    await eventually(
      () => answer(wanted),
      ({ key }) => String(key).startsWith("svc_admin_"),
    )
    const unwanted = await ask()
    await page.goto(`${site.service.base}/console/keys/devices?user_code=${unwanted.user_code}`)
    await page.getByRole("button", { name: "Deny" }).click()
    await page.getByRole("button", { name: "Deny" }).waitFor({ state: "detached" })
    expect((await answer(unwanted)).code).toBe("device_code_denied")
    await context.close()
  })

  it("changes the account's language and signs out other sessions", async () => {
    const { page, context, api, email } = await open("/settings")
    await page.getByLabel("Language").selectOption("de")
    await page.getByRole("heading", { level: 1, name: "Einstellungen" }).waitFor()
    // The page is drawn in the new language before its element says so.
    await page.locator("html[lang=de]").waitFor({ state: "attached" })
    await eventually(
      () => api("GET", "/api/auth/session"),
      ({ body }) => body.org.language === "de",
    )
    await page.reload()
    await page.getByRole("heading", { level: 1, name: "Einstellungen" }).waitFor()
    const link = await call(site.service.base, "POST", "/api/auth/magic-link", { body: { email } })
    const token = new URL(link.body.dev_magic_link).searchParams.get("token")
    const other = (await call(site.service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })).body
    await page.reload()
    await page.getByRole("button", { name: /^Abmelden: / }).click()
    await page.getByRole("button", { name: /^Abmelden: / }).waitFor({ state: "detached" })
    await eventually(
      () => call(site.service.base, "GET", "/api/auth/session", { token: other.session_token }),
      ({ status }) => status === 401,
    )
    expect((await api("GET", "/api/auth/session")).status).toBe(200)
    await context.close()
  })

  it("shows the account's version of the API and changes it", async () => {
    const { page, context, api, email } = await open("/settings")
    await site.service.query((sql) => sql`update org set api_version = '2026-01-01' where email = ${email}`)
    await page.reload()
    const choice = page.getByLabel("API version")
    expect(await choice.inputValue()).toBe("2026-01-01")
    await choice.selectOption({ label: `${newestVersion} (newest)` })
    await eventually(
      () => api("GET", "/api/account"),
      ({ body }) => body.api_version === newestVersion,
    )
    await page.reload()
    expect(await choice.inputValue()).toBe(newestVersion)
    await context.close()
  })

  it("shows the usage of each limit, and says when a limit is reached", async () => {
    const { page, context, seen, session } = await open("/settings/limits")
    await page.getByText("0 of 1", { exact: true }).waitFor()
    await makeIdentity(site.service.base, session)
    await page.reload()
    await page.getByText("1 of 1", { exact: true }).waitFor()
    const line = page.getByRole("listitem").filter({ hasText: "ever created" })
    expect(await line.innerText()).toContain("Limit reached")
    expect(await line.getByRole("meter").getAttribute("aria-valuenow")).toBe("100")
    await page.getByText(/of 6,000/).waitFor()
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("returns to the list of Identities after it deletes one", async () => {
    const { page, context, session } = await open("/")
    const { handle } = await makeIdentity(site.service.base, session)
    await page.goto(`${site.service.base}/console/identities/${handle}/settings`)
    await page.getByRole("button", { name: "Delete Identity" }).click()
    await dialog(page).getByRole("textbox").fill(handle)
    await dialog(page).getByRole("button", { name: "Delete Identity" }).click()
    await page.getByRole("heading", { level: 1, name: "Identities" }).waitFor()
    expect(new URL(page.url()).pathname).toBe("/console/identities")
    await context.close()
  })

  it("creates and downloads an export", async () => {
    const { page, context, seen } = await open("/settings/data")
    await page.getByRole("button", { name: "Create export" }).click()
    const link = page.getByRole("link", { name: "Download" })
    await link.waitFor()
    const [download] = await Promise.all([page.waitForEvent("download"), link.click()])
    expect(download.suggestedFilename()).toMatch(/^exp_.*\.zip$/)
    expect(await download.failure()).toBe(null)
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("shows the servers and the password of a mail program, and rotates the password", async () => {
    const { page, context, seen, session, api } = await open("/")
    const { handle, secrets } = await makeIdentity(site.service.base, session)
    const at = `${site.service.base}/console/identities/${handle}/mail/programs`
    await page.goto(at)
    await page.getByText(`${handle}@mail.localhost`).first().waitFor()
    await page.getByText(String(secrets.imap.port), { exact: true }).waitFor()
    // The masked password shows none of its characters.
    expect(await page.content()).not.toContain(secrets.imap.password.slice(0, 7))
    await page.getByRole("button", { name: "Copy Incoming mail (IMAP): Password" }).click()
    expect(await clipboard(page)).toBe(secrets.imap.password)
    await page.getByRole("button", { name: "mutt" }).click()
    await page.getByText(`:${secrets.imap.port}/`).waitFor()
    for (const [program, link, file] of [
      ["Apple Mail", "Download profile", "mail.mobileconfig"],
      ["Thunderbird", "Download configuration", "config-v1.1.xml"],
    ] as const) {
      await page.getByRole("button", { name: program }).click()
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: link }).click(),
      ])
      expect([download.suggestedFilename(), await download.failure()]).toEqual([file, null])
    }

    await api("POST", `/api/identities/${handle}/identity-key/ack`)
    await page.goto(at)
    await page.getByText("Only shown once, when it was created.").first().waitFor()
    // The servers stay visible after the password has expired.
    await page.getByText(String(secrets.imap.port), { exact: true }).waitFor()
    await page.getByRole("button", { name: "Rotate password" }).click()
    await dialog(page).getByRole("button", { name: "Rotate password" }).click()
    await page.getByRole("button", { name: "Copy Incoming mail (IMAP): Password" }).click()
    const renewed = await clipboard(page)
    expect(renewed).not.toBe(secrets.imap.password)
    expect((await api("GET", `/api/identities/${handle}/identity-key`)).body.imap.password).toBe(renewed)
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("shows the SMTP server if the service has one", async () => {
    const { page, context, session } = await open("/")
    const { handle, secrets } = await makeIdentity(site.service.base, session)
    const smtp = { ...secrets.imap, host: "submit.example", port: 1465, security: "tls" }
    await page.route("**/identity-key", (route) => route.fulfill({ json: { ...secrets, smtp } }))
    await page.goto(`${site.service.base}/console/identities/${handle}/mail/programs`)
    await page.getByText("submit.example").first().waitFor()
    await page.getByText("1465", { exact: true }).waitFor()
    await page.getByRole("button", { name: "mutt" }).click()
    await page.getByText(/set smtp_url = "smtps:\/\/.*@submit\.example:1465\//).waitFor()
    await context.close()
  })
})
