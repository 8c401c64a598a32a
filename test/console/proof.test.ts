/** The Proof tab: decisions on sign-ins, lists of sites and audiences, keys, tokens, and what others see. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { heading, openContext, startConsole, type TestConsole, violations } from "../harness/Console.ts"
import { has } from "../harness/Programs.ts"
import { eventually } from "../harness/Service.ts"
import { open, postSignIn, startRelyingParty } from "../proof/RelyingParty.ts"

describe.skipIf(!has("chromium"))("Proof in the console", () => {
  let site: TestConsole
  beforeAll(async () => {
    site = await startConsole()
  })
  afterAll(() => site?.stop())

  const owner = async () => {
    const { base } = site.service
    const { session } = await signUp(base)
    const made = await makeIdentity(base, session, newHandle("ada"))
    const key: string = made.secrets.identity_key
    const { context, seen } = await openContext(site.browser, base, {}, session)
    const page = await context.newPage()
    await page.goto(`${base}/console/identities/${made.handle}/proof`)
    await heading(page).getByText(made.handle).waitFor()
    return { session, handle: made.handle, id: made.identity.id as string, key, context, seen, page }
  }

  it("approves a sign-in while it waits, shows it when the site has it, and ends it", async () => {
    const { base } = site.service
    const { handle, key, context, seen, page, id } = await owner()
    const shop = await startRelyingParty(base, { clientBy: "registration", metadata: { client_name: "<b>Shop</b>" } })
    try {
      await page.getByText("No sign-ins yet").waitFor()
      const first = await postSignIn(base, handle, key, await shop.login())
      expect(first.body.status).toBe("awaiting_approval")
      // The Event of the request opens the section.
      await page.getByRole("heading", { name: "Awaiting your approval" }).waitFor()
      await page.getByText("Calls itself “<b>Shop</b>”").waitFor()
      await page.getByRole("button", { name: "Approve 127.0.0.1" }).press("Enter")
      await page.getByRole("heading", { name: "Awaiting your approval" }).waitFor({ state: "detached" })
      const { body } = await postSignIn(base, handle, key, await shop.login())
      const visitor = await open(body.redirect_url)
      expect(visitor.claims!.sub).toBe(`agent:${id}`)
      const row = page.getByRole("table", { name: "Sign-ins" }).getByRole("row").filter({ hasText: "127.0.0.1" })
      await row.getByText("Signed in").waitFor()
      await row.getByRole("button", { name: "End sign-in at 127.0.0.1" }).click()
      await page.getByRole("dialog").getByRole("button", { name: "End sign-in" }).click()
      await row.getByText("Ended").waitFor()
      const response = await fetch(`${base}/api/oauth/userinfo`, {
        headers: { authorization: `Bearer ${visitor.access}` },
      })
      expect(response.status).toBe(401)
      // A refused request does not come back.
      await postSignIn(base, handle, key, await shop.login())
      await page.getByRole("button", { name: "Reject 127.0.0.1" }).click()
      await row.filter({ hasText: "Rejected" }).waitFor()
      expect(seen.errors).toEqual([])
    } finally {
      await shop.stop()
      await context.close()
    }
  })

  it("stores sites and audiences, and names a site that is not valid", async () => {
    const { base } = site.service
    const { session, handle, context, page } = await owner()
    const settings = async () => (await call(base, "GET", `/api/identities/${handle}/proof`, { token: session })).body
    await page.getByLabel("Allowed sites").fill("https://shop.example")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("expected a host in lower case", { exact: false }).first().waitFor()
    await page.getByLabel("Allowed sites").fill("shop.example\nforum.example:8443")
    await page.getByLabel("Allowed audiences of tokens").fill("sts.amazonaws.com")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Settings saved").first().waitFor()
    expect(await settings()).toEqual({
      audiences: ["sts.amazonaws.com"],
      sites: ["shop.example", "forum.example:8443"],
    })
    await page.getByLabel("Sign in at every site without approval").check()
    await page.getByRole("button", { name: "Save" }).click()
    await eventually(settings, ({ sites }) => sites === "any")
    await context.close()
  })

  it("rotates the key, lists tokens, links what others see, and copies the trust of each cloud", async () => {
    const { base } = site.service
    const { session, handle, id, context, seen, page } = await owner()
    await call(base, "POST", `/api/identities/${handle}/tokens`, { token: session, body: { audience: "api.example" } })
    const keys = page.getByRole("table", { name: "Signing keys" })
    await keys.getByText("Active").waitFor()
    await page.getByRole("button", { name: "Rotate key" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click()
    await keys.getByText("Rotated").waitFor()
    await eventually(
      () => call(base, "GET", `/api/audit?action=proof.createToken&identity=${handle}`, { token: session }),
      ({ body }) => body.records.length === 1,
    )
    await page.reload()
    await page.getByRole("table", { name: "Identity tokens" }).getByText("api.example").waitFor()
    for (const name of ["DID document", "Key set (JWKS)"]) {
      const link = page.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]").getByRole("link")
      const response = await fetch((await link.getAttribute("href"))!)
      expect(response.status, name).toBe(200)
    }
    for (const cloud of ["AWS", "Google Cloud", "Azure", "Kubernetes"]) {
      await page.getByRole("button", { name: cloud, exact: true }).click()
      const trust = page.getByLabel(`Trust for ${cloud}`, { exact: true })
      expect(await trust.innerText(), cloud).toContain(`agent:${id}`)
    }
    await page.getByRole("button", { name: "AWS", exact: true }).click()
    await page.getByRole("button", { name: "Copy Trust for AWS" }).click()
    const copied = JSON.parse(await page.evaluate("navigator.clipboard.readText()"))
    expect(copied.Statement[0].Condition.StringEquals).toMatchObject({ [`${new URL(base).host}:sub`]: `agent:${id}` })
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("has no violation of accessibility and does not scroll sideways, in each theme, language and width", async () => {
    const { base } = site.service
    const { session, handle, key, context } = await owner()
    await context.close()
    const shop = await startRelyingParty(base, { clientBy: "registration" })
    await postSignIn(base, handle, key, await shop.login())
    await open((await postSignIn(base, handle, session, await shop.login())).body.redirect_url)
    await postSignIn(base, handle, key, await shop.login())
    await call(base, "POST", `/api/identities/${handle}/tokens`, { token: session, body: { audience: "api.example" } })
    await call(base, "POST", `/api/identities/${handle}/tokens`, { token: key, body: { audience: "other.example" } })
    for (const [locale, scheme, width] of [
      ["en", "light", 1280],
      ["de", "dark", 1280],
      ["fr", "light", 320],
      ["en", "dark", 320],
    ] as const) {
      await call(base, "PATCH", "/api/account", { token: session, body: { language: locale } })
      const { context, seen } = await openContext(site.browser, base, { scheme, locale, width }, session)
      const page = await context.newPage()
      await page.goto(`${base}/console/identities/${handle}/proof`)
      await page.getByRole("table").nth(2).waitFor()
      expect(await violations(page), `${locale} ${scheme} ${width}`).toEqual([])
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), `${locale} ${width}`).toBe(true)
      expect(seen.errors).toEqual([])
      const folder = process.env["PROOF_SHOTS"]
      if (folder !== undefined) {
        mkdirSync(folder, { recursive: true })
        await page.screenshot({ path: join(folder, `${locale}-${scheme}-${width}.png`), fullPage: true })
      }
      await context.close()
    }
    await shop.stop()
  })
})
