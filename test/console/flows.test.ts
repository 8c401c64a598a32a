/** The three main flows of the console, in a browser with real SMTP and a real receiver. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { heading, openContext, startConsole, type TestConsole } from "../harness/Console.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

describe.skipIf(!has("chromium"))("The main flows of the console", () => {
  let site: TestConsole
  beforeAll(async () => {
    site = await startConsole()
  })
  afterAll(() => site?.stop())

  it("lead a new account holder to a received message and a delivered Webhook", async () => {
    const receiver = await startReceiver((response) => response.end("thanks"))
    const { context, seen } = await openContext(site.browser, site.service.base)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console/`)

    await page.getByLabel("Your email address").fill("first@example.org")
    await page.getByRole("checkbox").check()
    await page.getByRole("button", { name: "Email me a sign-in link" }).click()
    await page.getByRole("link", { name: "Development" }).click()
    await page.getByRole("button", { name: "Sign in" }).click()

    const handle = newHandle("first")
    await heading(page).getByText("Name your agent").waitFor()
    await page.getByLabel("Name", { exact: true }).fill(handle)
    await page.getByText(`${handle} is available`).waitFor()
    await page.getByRole("button", { name: "Create Identity" }).click()

    // Secrets are masked, and copied in full.
    await page.getByText("Store these secrets now").waitFor()
    expect(await page.getByRole("main").innerText()).not.toMatch(/svc_id_[0-9A-Za-z]{20}/)
    await page.getByRole("button", { name: "Copy .env" }).click()
    const env = await page.evaluate<string>("navigator.clipboard.readText()")
    const key = /^SVC_KEY=(svc_id_\S+)$/m.exec(env)![1]!
    expect((await call(site.service.base, "GET", "/api/auth/whoami", { token: key })).body.caller.handle).toBe(handle)
    await page.getByRole("button", { name: "I have stored them" }).click()

    // A message appears while the page is open.
    await page.getByRole("link", { name: "Open mail" }).click()
    await page.getByText("No mail yet").waitFor()
    await send(site.service.smtpPort, {
      from: "grace@example.org",
      to: `${handle}@mail.localhost`,
      subject: "Hello there",
      text: "Are you up?",
    })
    await page.getByRole("link", { name: /Hello there/ }).click()
    await page.getByRole("article").getByText("Are you up?").waitFor()
    await page.getByText("Anyone could have written this", { exact: false }).waitFor()

    await page.getByRole("link", { name: "Webhooks" }).click()
    await page.getByRole("link", { name: "Add a Webhook" }).first().click()
    await page.getByLabel("URL").fill(receiver.url)
    await page.getByRole("button", { name: "Create Webhook" }).click()
    await page.getByRole("button", { name: "I have stored it" }).click()
    await page.getByRole("button", { name: "Send test" }).click()
    await page.getByText("webhook.test").first().waitFor()
    await page.getByText("Delivered", { exact: true }).last().waitFor()
    expect(receiver.got.map(({ body }) => body.type)).toEqual(["webhook.test"])

    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
    await receiver.stop()
  })

  it("stop outgoing mail of all agents with one click and without confirmation", async () => {
    const { session, email } = await signUp(site.service.base)
    const handles = [
      (await makeIdentity(site.service.base, session)).handle,
      (await makeIdentity(site.service.base, session)).handle,
    ]
    const states = () =>
      Promise.all(
        handles.map(async (handle) => {
          const { body } = await call(site.service.base, "GET", `/api/identities/${handle}/mail`, { token: session })
          return body.outgoing
        }),
      )
    const { context, seen } = await openContext(site.browser, site.service.base, {}, session)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console/activity`)
    await page.getByRole("button", { name: "Stop all mail" }).click()
    await page.getByText("Outgoing mail is stopped.").waitFor()
    expect(await states()).toEqual(["stopped", "stopped"])
    for (const handle of handles) {
      const sent = await call(site.service.base, "POST", `/api/identities/${handle}/messages/send`, {
        token: session,
        body: { to: [email], subject: "s", text: "t" },
      })
      expect(sent.body.code).toBe("mail_paused")
    }

    // Another tab shows the stop as well.
    const other = await context.newPage()
    await other.goto(`${site.service.base}/console/`)
    await other.getByText("Outgoing mail is stopped.").waitFor()

    // Resuming asks for confirmation.
    await page.getByRole("button", { name: "Resume sending" }).click()
    expect(await states()).toEqual(["stopped", "stopped"])
    await page.getByRole("dialog").getByRole("button", { name: "Resume sending" }).click()
    await eventually(states, (all) => all.every((one) => one === "active"))
    await other.getByText("Outgoing mail is stopped.").waitFor({ state: "detached" })
    expect(seen.errors).toEqual([])
    await context.close()
  })

  it("lead from an Event to the failed delivery and its response, and resend it", async () => {
    let well = false
    const receiver = await startReceiver((response) => {
      response.statusCode = well ? 200 : 500
      response.end(well ? "ok" : "database is locked")
    })
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session)
    const made = await call(site.service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: session,
      body: { url: receiver.url, event_types: ["email.received"] },
    })
    await send(site.service.smtpPort, {
      from: "grace@example.org",
      to: `${handle}@mail.localhost`,
      subject: "Lost",
      text: "?",
    })
    await eventually(
      () =>
        call(site.service.base, "GET", `/api/identities/${handle}/webhooks/${made.body.id}/deliveries`, {
          token: session,
        }),
      ({ body }) => body.deliveries[0]?.attempts.length === 1,
    )
    const { context, seen } = await openContext(site.browser, site.service.base, {}, session)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console/activity`)
    await page.getByRole("link", { name: `${handle} received an email` }).click()
    await page.getByText("HTTP 500").waitFor()
    await page.getByText("database is locked").waitFor()
    await page.getByText("Only 2xx counts as received").last().waitFor()
    await page.getByRole("button", { name: "Show request" }).click()
    expect(await page.getByLabel("curl", { exact: true }).innerText()).toContain('"type":"email.received"')

    well = true
    await page.getByRole("button", { name: "Resend" }).click()
    await page.getByText("Delivered", { exact: true }).waitFor()
    expect(receiver.got).toHaveLength(2)
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
    await receiver.stop()
  })
})
