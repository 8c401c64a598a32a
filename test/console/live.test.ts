/** Open pages show what the API, an agent, a mail program or another tab changed, and say when the service is unreachable. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { heading, navigate, openContext, settled } from "../harness/Console.ts"
import { startConsoleMail } from "../harness/ConsoleMail.ts"
import { ImapClient } from "../harness/Imap.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { startSilentProxy } from "../harness/SilentProxy.ts"
import { has } from "../harness/Programs.ts"
import { eventually } from "../harness/Service.ts"

const isLive = (page: Page) => page.locator(".connection").getByText("Live", { exact: true }).waitFor()
const isGone = { state: "detached" } as const

describe.skipIf(!has("chromium"))("An open page", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  it("shows messages that the API, the agent and a mail program read, flag, move and delete, in every tab", async () => {
    const { handle, secrets } = await mail.agent()
    const ids: Record<string, string> = {}
    for (const subject of ["One", "Two", "Three"])
      ids[subject] = (await mail.arrives(handle, { subject, text: "x" })).id
    const { context, page, seen } = await mail.open(`${handle}/mail?direction=inbound`)
    const other = await context.newPage()
    await other.goto(`${mail.service.base}/console/identities/${handle}/mail`)
    await Promise.all([isLive(page), isLive(other)])
    const row = (at: Page, subject: string) => at.locator(".mails > li").filter({ hasText: subject })
    const unread = (at: Page, subject: string) => at.locator(".mails > li[data-unread]").filter({ hasText: subject })
    await Promise.all([page, other].map((at) => unread(at, "One").waitFor()))

    // The API.
    await mail.api("PATCH", `${handle}/messages/${ids["One"]}`, { seen: true })
    await Promise.all([page, other].map((at) => unread(at, "One").waitFor(isGone)))
    await mail.api("PATCH", `${handle}/messages/${ids["One"]}`, { flagged: true })
    await row(page, "One").getByTitle("Flagged").waitFor()
    // The agent.
    await mail.api("DELETE", `${handle}/messages/${ids["Two"]}`, undefined, secrets.identity_key)
    await Promise.all([page, other].map((at) => row(at, "Two").waitFor(isGone)))
    // A mail program.
    const imap = await ImapClient.login(mail.service.imapPort, handle, secrets.identity_key)
    await imap.say("SELECT INBOX")
    await imap.say("STORE 1:* +FLAGS (\\Seen)")
    await Promise.all([page, other].map((at) => unread(at, "Three").waitFor(isGone)))
    await imap.say("STORE 1 -FLAGS (\\Flagged)")
    await row(page, "One").getByTitle("Flagged").waitFor(isGone)
    await imap.say("STORE 1:* +FLAGS (\\Deleted)")
    await imap.say("EXPUNGE")
    await page.getByText("No mail yet").waitFor()
    await other.getByText("No mail yet").waitFor()
    await imap.close()
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("shows changed secrets, Webhooks, Allowed Recipients, settings, Approvals, drafts and keys", async () => {
    const { handle, secrets } = await mail.agent()
    const { context, page, seen } = await mail.open(handle)
    await isLive(page)
    const at = `/identities/${handle}`
    const api = (method: string, path: string, body?: unknown) => mail.call(method, path.slice("/api/".length), body)

    await navigate(page, "/vault")
    await api("PUT", "/api/vault/secrets/db-password", { value: "1" })
    await page.getByText("db-password").first().waitFor()
    await api("DELETE", "/api/vault/secrets/db-password")
    await page.getByText("db-password").first().waitFor(isGone)

    await navigate(page, `${at}/webhooks`)
    const webhook = await api("POST", `/api${at}/webhooks`, { url: "http://127.0.0.1:9/hook", event_types: ["*"] })
    await page.getByText("http://127.0.0.1:9/hook").waitFor()
    await api("DELETE", `/api${at}/webhooks/${webhook.body.id}`)
    await page.getByText("http://127.0.0.1:9/hook").waitFor(isGone)

    await navigate(page, `${at}/mail/settings`)
    await api("POST", `/api${at}/allowed-recipients`, { address: "grace@example.org" })
    await page.getByText("grace@example.org").first().waitFor()
    await api("DELETE", `/api${at}/allowed-recipients/grace@example.org`)
    await page.getByText("grace@example.org").first().waitFor(isGone)
    await api("PUT", `/api${at}/ai-disclosure`, { text: "Written by a program." })
    await eventually(
      () => page.getByLabel("Text", { exact: true }).inputValue(),
      (text) => text === "Written by a program.",
    )
    // Text that a person has typed stays.
    await page.getByLabel("Text", { exact: true }).fill("Mine")
    await api("PUT", `/api${at}/ai-disclosure`, { text: "Changed again." })
    await api("PATCH", `/api${at}/mail`, { outgoing: "stopped" })
    await page.getByText("Outgoing mail is stopped for").first().waitFor()
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toBe("Mine")
    await api("PATCH", `/api${at}/mail`, { outgoing: "active" })

    await navigate(page, `${at}/mail/approvals`)
    await api("POST", `/api${at}/allowed-recipients`, { address: "grace@example.org" })
    await api("PATCH", `/api${at}/mail`, { approval: "required" })
    const sent = await mail.api(
      "POST",
      `${handle}/messages/send`,
      { to: ["grace@example.org"], subject: "May I?", text: "x" },
      secrets.identity_key,
    )
    await page.getByText("May I?").first().waitFor()
    await api("POST", `/api${at}/approvals/${sent.body.id}/refuse`, {})
    await page.getByText("May I?").first().waitFor(isGone)

    await navigate(page, `${at}/mail/drafts`)
    const draft = await mail.api("POST", `${handle}/drafts`, { subject: "Of the agent" }, secrets.identity_key)
    await page.getByText("Of the agent").waitFor()
    await mail.api("DELETE", `${handle}/drafts/${draft.body.id}`, undefined, secrets.identity_key)
    await page.getByText("Of the agent").waitFor(isGone)

    await navigate(page, "/keys")
    const key = await api("POST", "/api/keys", { name: "nightly" })
    await page.getByText("nightly").first().waitFor()
    await api("DELETE", `/api/keys/${key.body.api_key.id}`)
    await page.getByText("nightly").first().waitFor(isGone)

    await navigate(page, "/settings")
    await api("PATCH", "/api/account", { language: "de" })
    await heading(page).filter({ hasText: "Einstellungen" }).waitFor()
    await api("PATCH", "/api/account", { language: "en" })
    await heading(page).filter({ hasText: "Settings" }).waitFor()
    expect(seen.foreign).toEqual([])
    await context.close()
  })

  it("shows a Webhook whose deliveries all fail as failing, until one succeeds", async () => {
    const { handle } = await mail.agent()
    let status = 500
    const receiver = await startReceiver((response) => response.writeHead(status).end("out of order"))
    const made = await mail.api("POST", `${handle}/webhooks`, { url: receiver.url, event_types: ["*"] })
    const { context, page } = await mail.open(`${handle}/webhooks/${made.body.id}`)
    await isLive(page)
    await page.getByText("Active", { exact: true }).waitFor()
    await mail.api("POST", `${handle}/webhooks/${made.body.id}/test`)
    await page.getByText("Failing", { exact: true }).waitFor()
    await page.getByText("All recent deliveries have failed since").waitFor()
    // Home leads to the response of the endpoint.
    await page.goto(`${mail.service.base}/console/`)
    await page.getByRole("link", { name: /All recent deliveries to a Webhook of/ }).click()
    await page.getByText("out of order").waitFor()
    await navigate(page, `/identities/${handle}/webhooks`)
    await page.getByText("Failing", { exact: true }).waitFor()
    status = 200
    await mail.api("POST", `${handle}/webhooks/${made.body.id}/test`)
    await page.getByText("Failing", { exact: true }).waitFor(isGone)
    await page.getByText("Active", { exact: true }).waitFor()
    await context.close()
    await receiver.stop()
  })

  it("says that the service does not respond, disables changes, and is current again afterwards", async () => {
    const { session } = await signUp(mail.service.base)
    const { handle } = await makeIdentity(mail.service.base, session)
    const token = { token: session }
    const proxy = await startSilentProxy({ port: mail.service.httpPort, host: "127.0.0.1" })
    const base = `http://127.0.0.1:${proxy.port}`
    const { context } = await openContext(mail.browser, base, {}, session)
    const page = await context.newPage()
    await page.goto(`${base}/console/identities/${handle}/profile`)
    await isLive(page)
    await settled(page)
    const notice = page.getByText("Can’t reach the service. This page may be out of date")
    const save = page.getByRole("button", { name: "Save" })
    expect(await save.isDisabled()).toBe(false)
    const place = await page.locator("main").boundingBox()
    proxy.silenceAll()
    await notice.waitFor()
    expect(await page.locator("main").boundingBox()).toEqual(place)
    expect(await save.isDisabled()).toBe(true)
    expect(await save.getAttribute("title")).toBe("Can’t reach the service")
    await call(mail.service.base, "PATCH", `/api/identities/${handle}/card`, {
      ...token,
      body: { description: "Changed meanwhile" },
    })
    proxy.restore()
    await notice.waitFor(isGone)
    expect(await save.isDisabled()).toBe(false)
    // The form shows the change that it has missed.
    await page.locator("main").getByText("Changed meanwhile").first().waitFor()
    await navigate(page, "/vault")
    await isLive(page)
    await call(mail.service.base, "PUT", "/api/vault/secrets/later", { ...token, body: { value: "1" } })
    await page.getByText("later").first().waitFor()
    await context.close()
    await proxy.stop()
  })
})
