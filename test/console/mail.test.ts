/** Mail in the console, as somebody meets it in a real browser: read, answered, kept, judged, with real SMTP at both ends. */
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { hasBrowser, openBrowser } from "../harness/Browser.ts"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { buildConsole, heading, openContext, violations } from "../harness/Console.ts"
import { send } from "../harness/Mail.ts"
import { freePort } from "../harness/Ports.ts"
import { startRelay } from "../harness/Relay.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

describe.skipIf(!hasBrowser)("mail in the console", { timeout: 120_000 }, () => {
  let service: TestService
  let browser: Browser
  let relay: Awaited<ReturnType<typeof startRelay>>
  let session: string
  beforeAll(async () => {
    buildConsole()
    const port = await freePort()
    relay = await startRelay(port)
    service = await startService({
      env: {
        SVC_SMTP_RELAY_URL: `smtp://user:secret@127.0.0.1:${port}`,
        SVC_SYSTEM_FROM: "no-reply@mail.localhost",
      },
    })
    browser = await openBrowser()
    session = (await signUp(service.base)).session
  })
  afterAll(async () => {
    await browser?.close()
    await service?.stop()
    await relay?.stop()
  })

  const agent = () => makeIdentity(service.base, session)
  const api = (method: string, path: string, body?: unknown, token = session) =>
    call(service.base, method, `/api/identities/${path}`, { token, ...(body === undefined ? {} : { body }) })
  const arrives = async (handle: string, mail: Parameters<typeof send>[1]) => {
    await send(service.smtpPort, { from: "Grace <grace@example.org>", to: `${handle}@mail.localhost`, ...mail })
    const { body } = await eventually(
      () => api("GET", `${handle}/messages`),
      ({ body }) => body.messages[0]?.subject === mail.subject,
    )
    return body.messages[0]
  }
  const open = async (path: string) => {
    const { context, seen } = await openContext(browser, service.base, {}, session)
    const page = await context.newPage()
    await page.goto(`${service.base}/console/identities/${path}`)
    await heading(page).waitFor()
    return { context, page, seen }
  }
  const kept = (page: Page) => page.getByText("Draft kept").waitFor()

  it("somebody comes from nothing to a mail that arrives live, and answers it", async () => {
    const { context, seen } = await openContext(browser, service.base)
    const page = await context.newPage()
    await page.goto(`${service.base}/console/`)
    await page.getByLabel("Your email address").fill("answers@example.org")
    await page.getByRole("checkbox").check()
    await page.getByRole("button", { name: "Mail me a link" }).click()
    await page.getByRole("link", { name: "Development" }).click()
    await page.getByRole("button", { name: "Sign in" }).click()
    const handle = newHandle("answers")
    await page.getByLabel("Name", { exact: true }).fill(handle)
    await page.getByText(`${handle} is free`).waitFor()
    await page.getByRole("button", { name: "Create Identity" }).click()
    await page.getByRole("button", { name: "I have stored them" }).click()
    await page.getByRole("link", { name: "Open mail" }).click()
    await page.getByText("No mail yet").waitFor()

    await send(service.smtpPort, {
      from: "Grace <grace@example.org>",
      to: `${handle}@mail.localhost`,
      subject: "Minutes",
      text: "Is section 3 right?\n\nGrace\n\nOn 1 May 2026, Ada wrote:\n> an older word",
    })
    await page.getByRole("link", { name: /Minutes/ }).click()
    const article = page.getByRole("article")
    await article.getByText("Is section 3 right?").waitFor()
    // What is quoted is folded until somebody wants it.
    expect(await article.getByText("an older word").count()).toBe(0)
    await article.getByRole("button", { name: "Show what is quoted" }).click()
    await article.getByText("an older word").waitFor()

    await article.getByRole("link", { name: "Reply", exact: true }).click()
    // Who may not be written to is said before anything is sent, and allowed from there.
    await page.getByText("is not an Allowed Recipient").last().waitFor()
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true)
    await page.getByRole("button", { name: "Allow grace@example.org" }).click()
    expect(await page.getByLabel("Subject").inputValue()).toBe("Re: Minutes")
    expect(await page.getByLabel("Text").inputValue()).toContain("> Is section 3 right?")
    await page.getByText("not by a person").waitFor()
    await page.getByLabel("Text").fill("It is.")
    await page.getByRole("button", { name: "Send", exact: true, disabled: false }).click()

    await page.waitForURL("**/mail/msg_*")
    await page.getByRole("region", { name: "Delivery" }).getByText("delivered").waitFor()
    const answer = relay.taken.find(({ to }) => to.includes("grace@example.org"))!
    expect(answer.raw).toContain("It is.")
    expect(answer.raw).toMatch(/^In-Reply-To: </m)
    // One conversation, and no draft is left.
    await page.getByRole("region", { name: "Conversation" }).getByText("2 messages").waitFor()
    await page.getByRole("link", { name: "Drafts" }).click()
    await page.getByText("No drafts").waitFor()
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("a draft is kept while somebody writes, and who comes second is asked", async () => {
    const { handle } = await agent()
    const { context, page, seen } = await open(`${handle}/mail/compose`)
    await page.getByLabel("To", { exact: true }).last().fill("grace@example.org,")
    await page.getByLabel("Subject").fill("First")
    await page
      .getByLabel("Attach files")
      .setInputFiles({ name: "a b.csv", mimeType: "text/csv", buffer: Buffer.from("1,2") })
    await kept(page)
    await page.waitForURL("**/compose?draft=msg_*")
    const [draft] = (await api("GET", `${handle}/drafts`)).body.drafts
    expect(draft).toMatchObject({
      to: ["grace@example.org"],
      subject: "First",
      attachments: [{ filename: "a b.csv", content_type: "text/csv" }],
    })
    expect(await violations(page)).toEqual([])

    // The agent changes it meanwhile: neither loses what it wrote.
    await api("PUT", `${handle}/drafts/${draft.id}`, { subject: "Of the agent", text: "Mine." })
    await page.getByLabel("Text").fill("Of a person.")
    await page.getByText("Somebody else changed this draft").waitFor()
    expect((await api("GET", `${handle}/drafts/${draft.id}`)).body.subject).toBe("Of the agent")
    await page.getByRole("button", { name: "Keep what is here" }).click()
    await kept(page)
    expect((await api("GET", `${handle}/drafts/${draft.id}`)).body).toMatchObject({
      subject: "First",
      text: "Of a person.",
      attachments: [{ filename: "a b.csv", content_base64: "MSwy" }],
    })

    // It is gone on with from the list, where it is left as soon as the page is.
    await page.getByLabel("Text").fill("Of a person, longer.")
    await page.getByRole("link", { name: "All mail" }).click()
    await page.getByRole("link", { name: /Drafts/ }).click()
    await page.getByRole("link", { name: /Of a person, longer/ }).click()
    expect(await page.getByLabel("Text").inputValue()).toBe("Of a person, longer.")
    await page.getByRole("button", { name: "Discard" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click()
    await page.getByText("No drafts").waitFor()
    expect((await api("GET", `${handle}/drafts`)).body.drafts).toEqual([])
    expect(seen.foreign).toEqual([])
    await context.close()
  })

  it("files that are too large are refused before they are read", async () => {
    const { handle } = await agent()
    const { context, page } = await open(`${handle}/mail/compose`)
    await page.getByLabel("Attach files").setInputFiles({
      name: "large.bin",
      mimeType: "application/octet-stream",
      buffer: Buffer.alloc(7_000_001),
    })
    await page.getByRole("alert").getByText("7 MB fit").waitFor()
    expect(await page.getByText("large.bin").count()).toBe(0)
    await context.close()
  })

  it("a message is passed on with what was attached to it", async () => {
    const { handle } = await agent()
    await arrives(handle, {
      subject: "Figures",
      text: "See below.",
      attachments: [{ filename: "f.csv", content: "1,2" }],
    })
    await api("POST", `${handle}/allowed-recipients`, { address: "board@example.org" })
    const { context, page } = await open(`${handle}/mail`)
    await page.getByRole("link", { name: /Figures/ }).click()
    await page.getByRole("link", { name: "Forward" }).click()
    await page.getByRole("list", { name: "Attachments" }).getByText("f.csv").waitFor()
    await page.getByLabel("To", { exact: true }).last().fill("board@example.org")
    await page.getByLabel("Text").focus()
    await page.getByRole("button", { name: "Send", exact: true, disabled: false }).click()
    await page.waitForURL("**/mail/msg_*")
    const { raw } = (await eventually(
      () => Promise.resolve(relay.taken.find(({ to }) => to.includes("board@example.org"))),
      (found) => found !== undefined,
    ))!
    expect(raw).toContain("Subject: Fwd: Figures")
    expect(raw).toContain(Buffer.from("1,2").toString("base64"))
    expect(raw).toContain("Grace <grace@example.org>")
    await context.close()
  })

  it("what an agent asks for is approved or refused from the message, with a reason", async () => {
    const { handle, secrets } = await agent()
    await api("PATCH", `${handle}/mail`, { approval: "required" })
    await api("POST", `${handle}/allowed-recipients`, { address: "asked@example.org" })
    const asks = async (subject: string) => {
      const mail = { to: ["asked@example.org"], subject, text: "May I?" }
      const { body } = await api("POST", `${handle}/messages/send`, mail, secrets.identity_key)
      expect(body.status).toBe("awaiting_approval")
      return body.id as string
    }
    const [wise, rash] = [await asks("Wise"), await asks("Rash")]
    const { context, page, seen } = await open(`${handle}/mail`)
    await page.getByText("2 messages want your approval").waitFor()
    await page.getByRole("link", { name: "Waiting for you" }).click()
    expect(await violations(page)).toEqual([])
    await page.getByRole("link", { name: "Rash" }).click()
    await page.getByText("Nothing goes out before you approve it").waitFor()
    await page.getByRole("button", { name: "Refuse" }).click()
    await page.getByLabel("Reason").fill("Not before Monday")
    await page.getByRole("dialog").getByRole("button", { name: "Refuse" }).click()
    await page.getByText("it went nowhere").waitFor()
    await page.getByText("Not before Monday").waitFor()
    const refused = (await api("GET", `${handle}/messages/${rash}`)).body
    expect([refused.status, refused.approval.reason]).toEqual(["refused", "Not before Monday"])

    // One more comes while somebody looks.
    await page.getByRole("link", { name: /For approval/ }).click()
    await page.getByRole("article", { name: "Wise" }).waitFor()
    await asks("Late")
    await page.getByRole("article", { name: "Late" }).waitFor()
    await page.getByRole("article", { name: "Wise" }).getByRole("button", { name: "Approve" }).click()
    await page.getByRole("article", { name: "Wise" }).waitFor({ state: "detached" })
    await eventually(
      () => api("GET", `${handle}/messages/${wise}`),
      ({ body }) => body.status === "done",
    )
    expect(relay.taken.filter(({ to }) => to.includes("asked@example.org"))).toHaveLength(1)
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("an address that mail came back from is seen, said while somebody writes, and lifted", async () => {
    const { handle } = await agent()
    await api("POST", `${handle}/allowed-recipients`, { address: "nobody@example.org" })
    const sent = await api("POST", `${handle}/messages/send`, {
      to: ["nobody@example.org"],
      subject: "Lost",
      text: "?",
    })
    const { context, page } = await open(`${handle}/mail/${sent.body.id}`)
    const delivery = page.getByRole("region", { name: "Delivery" })
    await delivery.getByText("came back").waitFor()
    await delivery.getByText("no such user").waitFor()
    await page.goto(`${service.base}/console/identities/${handle}/mail/compose?to=nobody@example.org`)
    await page.getByText("is suppressed, since mail to it came back").last().waitFor()
    await page.goto(`${service.base}/console/identities/${handle}/mail/settings`)
    await page.getByText("suppressed", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Send again to nobody@example.org" }).click()
    await page.getByText("suppressed", { exact: true }).waitFor({ state: "detached" })
    const listed = await api("GET", `${handle}/allowed-recipients?address=nobody@example.org`)
    expect(listed.body.allowed_recipients[0].suppressed).toBe(null)
    await context.close()
  })

  it("nothing is sent while mail is stopped, and what waits says so", async () => {
    const { handle } = await agent()
    await api("POST", `${handle}/allowed-recipients`, { address: "held@example.org" })
    await api("PATCH", `${handle}/mail`, { outgoing: "stopped", reason: "Looking into it" })
    const { context, page } = await open(`${handle}/mail/compose?to=held@example.org`)
    await page.getByText("it can be sent once mail goes out again").waitFor()
    await page.getByText("Looking into it").waitFor()
    await page.getByLabel("Text").fill("Not yet.")
    await kept(page)
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true)
    await page.getByLabel("Text").press("Control+Enter")
    // Started again elsewhere, it may be sent here.
    await api("PATCH", `${handle}/mail`, { outgoing: "active" })
    await page.getByRole("button", { name: "Send", exact: true, disabled: false }).click()
    await page.waitForURL("**/mail/msg_*")
    await page.getByRole("region", { name: "Delivery" }).getByText("delivered").waitFor()
    expect(relay.taken.filter(({ to }) => to.includes("held@example.org"))).toHaveLength(1)
    await context.close()
  })

  it("messages are found, narrowed and marked, and the agent sees the marks", async () => {
    const { handle, secrets } = await agent()
    const wanted = await arrives(handle, { subject: "Invoice 17", text: "due", to: `${handle}+shop@mail.localhost` })
    await arrives(handle, { subject: "Chatter", text: "nothing", from: "bob@example.com" })
    const { context, page, seen } = await open(`${handle}/mail`)
    await page.getByRole("link", { name: /Chatter/ }).waitFor()
    await page.getByRole("searchbox").fill("from:grace subject:invoice")
    await page.getByRole("link", { name: /Chatter/ }).waitFor({ state: "detached" })
    await page.getByRole("link", { name: /Invoice 17/ }).click()
    const article = page.getByRole("article")
    await article.getByRole("button", { name: "Flag" }).click()
    await article.getByRole("button", { name: "Mark as read" }).click()
    await article.getByRole("button", { name: "Add a label" }).click()
    await page.getByLabel("Add a label").last().fill("To-Pay")
    await page.keyboard.press("Enter")
    await article.getByRole("link", { name: "to-pay" }).waitFor()
    const marked = await eventually(
      () => api("GET", `${handle}/messages/${wanted.id}`, undefined, secrets.identity_key),
      ({ body }) => body.labels.length === 1,
    )
    expect(marked.body).toMatchObject({ seen: true, flagged: true, labels: ["to-pay"] })

    await article.getByRole("link", { name: "shop" }).click()
    await page.waitForURL("**/mail?tag=shop")
    await page.getByRole("link", { name: /Invoice 17/ }).waitFor()
    await page.getByRole("button", { name: "Unread" }).click()
    await page.getByText("Nothing matches").waitFor()
    await page.getByRole("button", { name: "Drop the filter shop" }).click()
    await page.getByRole("link", { name: /Chatter/ }).waitFor()
    expect(await page.getByRole("link", { name: /Invoice 17/ }).count()).toBe(0)

    // What cannot be read as a search says why, and what there is to ask stands beside it.
    await page.getByRole("searchbox").fill("is:blue")
    await page.getByText('not "blue"', { exact: false }).first().waitFor()
    await page.getByRole("button", { name: "What can be searched" }).click()
    await page.getByText("has:attachment").waitFor()
    expect(seen.foreign).toEqual([])
    await context.close()
  })

  it("a long list comes page by page, and what comes in meanwhile stands on top", async () => {
    const { handle } = await agent()
    for (let at = 0; at < 52; at += 13) {
      await Promise.all(
        Array.from({ length: 13 }, (_, index) =>
          send(service.smtpPort, {
            from: "grace@example.org",
            to: `${handle}@mail.localhost`,
            subject: `Number ${at + index}`,
            text: "x",
          }),
        ),
      )
    }
    const { context, page } = await open(`${handle}/mail`)
    const rows = page.locator("[data-list] > li")
    await rows.nth(49).waitFor()
    expect(await rows.count()).toBe(50)
    await page.getByRole("button", { name: "Show more" }).click()
    await rows.nth(51).waitFor()
    expect(await rows.count()).toBe(52)
    await send(service.smtpPort, {
      from: "grace@example.org",
      to: `${handle}@mail.localhost`,
      subject: "Newest",
      text: "x",
    })
    await rows.first().getByText("Newest").waitFor()
    expect(await rows.count()).toBe(53)
    await context.close()
  })

  it("is read and answered by the keyboard alone", async () => {
    const { handle } = await agent()
    await api("POST", `${handle}/allowed-recipients`, { address: "grace@example.org" })
    await arrives(handle, { subject: "By hand", text: "Only keys." })
    const { context, page } = await open(`${handle}/mail`)
    await page.getByRole("link", { name: /By hand/ }).waitFor()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.getByRole("article").getByText("Only keys.").waitFor()
    await page.getByRole("link", { name: "Reply", exact: true }).focus()
    await page.keyboard.press("Enter")
    // An answer begins in its text, above what it quotes.
    await page.waitForFunction(`document.activeElement?.tagName === "TEXTAREA"`)
    await page.keyboard.press("Control+Home")
    await page.keyboard.type("Answered.")
    await page.getByRole("button", { name: "Send", exact: true, disabled: false }).waitFor()
    await page.keyboard.press("Control+Enter")
    await page.waitForURL("**/mail/msg_*")
    await page.getByRole("region", { name: "Conversation" }).getByText("2 messages").waitFor()
    await context.close()
  })
})
