/** Reading, replying, searching and marking mail in a browser. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { newHandle } from "../harness/Client.ts"
import { openContext } from "../harness/Console.ts"
import { startConsoleMail } from "../harness/ConsoleMail.ts"
import { send } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

describe.skipIf(!has("chromium"))("Mail in the console", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  it("leads a new account holder to a live message and a reply", async () => {
    const { context, seen } = await openContext(mail.browser, mail.service.base)
    const page = await context.newPage()
    await page.goto(`${mail.service.base}/console/`)
    await page.getByLabel("Your email address").fill("answers@example.org")
    await page.getByRole("checkbox").check()
    await page.getByRole("button", { name: "Email me a sign-in link" }).click()
    await page.getByRole("link", { name: "Development" }).click()
    await page.getByRole("button", { name: "Sign in" }).click()
    const handle = newHandle("answers")
    await page.getByLabel("Name", { exact: true }).fill(handle)
    await page.getByText(`${handle} is available`).waitFor()
    await page.getByRole("button", { name: "Create Identity" }).click()
    // No warning appears on leaving after the confirmation, even if the response is slow.
    const remaining = Promise.withResolvers<void>()
    await page.route("**/identity-key/ack", (route) => remaining.promise.then(() => route.continue()))
    await page.getByRole("button", { name: "I have stored them" }).click()
    await page.getByRole("link", { name: "Open mail" }).click()
    await page.getByText("No mail yet").waitFor()
    remaining.resolve()

    await send(mail.service.smtpPort, {
      from: "Grace <grace@example.org>",
      to: `${handle}@mail.localhost`,
      subject: "Minutes",
      text: "Is section 3 right?\n\nGrace\n\nOn 1 May 2026, Ada wrote:\n> an older word",
    })
    await page.getByRole("link", { name: /Minutes/ }).click()
    const article = page.getByRole("article")
    await article.getByText("Is section 3 right?").waitFor()
    // Quoted text is folded at first.
    expect(await article.getByText("an older word").count()).toBe(0)
    await article.getByRole("button", { name: "Show quoted text" }).click()
    await article.getByText("an older word").waitFor()

    await article.getByRole("link", { name: "Reply", exact: true }).click()
    // Recipients that are not allowed are shown before sending, and can be allowed there.
    await page.getByText("is not an Allowed Recipient").last().waitFor()
    expect(await page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA")
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true)
    await page.getByRole("button", { name: "Allow grace@example.org" }).click()
    expect(await page.getByLabel("Subject").inputValue()).toBe("Re: Minutes")
    // The quote is folded below the text, in which the caret is.
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toBe("")
    await page.getByText("not by a person").waitFor()
    await page.getByLabel("Text", { exact: true }).fill("It is.")
    await page.getByRole("button", { name: "Send", exact: true, disabled: false }).click()
    await page.getByRole("button", { name: "Send now" }).click()

    await page.waitForURL("**/mail/msg_*")
    await page.getByRole("region", { name: "Delivery" }).getByText("delivered").waitFor()
    const answer = mail.taken().find(({ to }) => to.includes("grace@example.org"))!
    expect(answer.raw).toMatch(/It is\.[\s\S]*> Is section 3 right\?/)
    expect(answer.raw).toMatch(/^In-Reply-To: </m)
    // Both messages are in one conversation, and no draft is left.
    await page.getByRole("region", { name: "Conversation" }).getByText("2 messages").waitFor()
    await page.getByRole("link", { name: "Drafts" }).click()
    await page.getByText("No drafts").waitFor()
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("marks the mail of a verified agent, and says what was proved", async () => {
    const [{ handle }, sender] = [await mail.agent(), await mail.agent()]
    const to = `${handle}@mail.localhost`
    await mail.api("POST", `${sender.handle}/allowed-recipients`, { address: to })
    await mail.api("POST", `${sender.handle}/messages/send`, { to: [to], subject: "From an agent", text: "?" })
    await mail.arrives(handle, { subject: "From anybody", text: "?" })
    const { context, page, seen } = await mail.open(`${handle}/mail`)
    await page.getByRole("link", { name: /From an agent/ }).click()
    const article = page.getByRole("article")
    await article.getByText("Verified agent").click()
    await article.getByText("An agent of this service sent this message").waitFor()
    await article.getByText(new RegExp(`^did:web:.*:%40${sender.handle}$`)).waitFor()
    await page.getByRole("link", { name: /From anybody/ }).click()
    await article.getByText("grace@example.org").first().waitFor()
    expect(await article.getByText("Verified agent").count()).toBe(0)
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("searches, filters and marks messages, and shares marks with the agent", async () => {
    const { handle, secrets } = await mail.agent()
    const wanted = await mail.arrives(handle, {
      subject: "Invoice 17",
      text: "due",
      to: `${handle}+shop@mail.localhost`,
    })
    await mail.arrives(handle, { subject: "Chatter", text: "nothing", from: "bob@example.com" })
    const { context, page, seen } = await mail.open(`${handle}/mail`)
    await page.getByRole("link", { name: /Chatter/ }).waitFor()
    await page.getByRole("searchbox").fill("from:grace subject:invoice")
    await page.getByRole("link", { name: /Chatter/ }).waitFor({ state: "detached" })
    await page.getByRole("link", { name: /Invoice 17/ }).click()
    const article = page.getByRole("article")
    await article.getByRole("button", { name: "Flag" }).click()
    await article.getByRole("button", { name: "Add label" }).click()
    await page.getByLabel("Add label").last().fill("To-Pay")
    await page.keyboard.press("Enter")
    await article.getByRole("link", { name: "to-pay" }).waitFor()
    const marked = await eventually(
      () => mail.api("GET", `${handle}/messages/${wanted.id}`, undefined, secrets.identity_key),
      ({ body }) => body.seen && body.flagged && body.labels.length === 1,
    )
    expect(marked.body.labels).toEqual(["to-pay"])

    await article.getByRole("link", { name: "shop" }).click()
    await page.waitForURL("**/mail?tag=shop")
    await page.getByRole("link", { name: /Invoice 17/ }).waitFor()
    await page.getByRole("button", { name: "Unread" }).click()
    await page.getByText("No results").waitFor()
    await page.getByRole("button", { name: "Remove filter shop" }).click()
    await page.getByRole("link", { name: /Chatter/ }).waitFor()
    expect(await page.getByRole("link", { name: /Invoice 17/ }).count()).toBe(0)

    // An invalid search explains the error, beside the search tips.
    await page.getByRole("searchbox").fill("is:blue")
    await page.getByText('not "blue"', { exact: false }).first().waitFor()
    await page.getByRole("button", { name: "Search tips" }).click()
    await page.getByText("has:attachment").waitFor()
    expect(seen.foreign).toEqual([])
    await context.close()
  })

  it("opens a conversation at its newest message, and marks what is opened as read", async () => {
    const { handle } = await mail.agent()
    const long = Array.from({ length: 60 }, (_, line) => `Line ${line}`).join("\n")
    let first: string | undefined
    for (let at = 0; at < 8; at++) {
      const message = await mail.arrives(handle, {
        subject: at === 0 ? "Plan" : `Re: Plan ${at}`,
        text: long,
        messageId: `<plan-${at}@example.org>`,
        ...(at === 0 ? {} : { inReplyTo: `<plan-${at - 1}@example.org>`, references: [`<plan-0@example.org>`] }),
      })
      first ??= message.id
    }
    const { context, page } = await mail.open(`${handle}/mail`)
    await page.getByRole("link", { name: /Plan/ }).first().click()
    const articles = page.getByRole("article")
    await articles.nth(7).getByText("Line 0").waitFor()
    // The last message starts below the header, in the upper half of the window.
    await eventually(
      () =>
        page.evaluate<boolean>(
          `(({ top }) => top >= 0 && top < innerHeight / 2)([...document.querySelectorAll("article")].at(-1).getBoundingClientRect())`,
        ),
      (is) => is,
    )
    const seen = () => mail.api("GET", `${handle}/messages`)
    await eventually(seen, ({ body }) => body.messages[0].seen === true)
    expect((await mail.api("GET", `${handle}/messages/${first}`)).body.seen).toBe(false)
    await articles.nth(7).getByRole("button", { name: "Mark as unread" }).click()
    await articles.nth(7).getByRole("button", { name: "Mark as read" }).waitFor()
    await eventually(seen, ({ body }) => body.messages[0].seen === false)
    await context.close()
  })

  it("shows HTML mail in its natural height, and in dark colors if its author allows them", async () => {
    const { handle } = await mail.agent()
    const tall = `<div style="height:1700px">Tall</div><p>The end</p>`
    const light = await mail.arrives(handle, { subject: "Light", html: tall })
    const dark = await mail.arrives(handle, {
      subject: "Dark",
      html: `<meta name="color-scheme" content="light dark">${tall}`,
    })
    const { context, page, seen } = await mail.open(`${handle}/mail/${light.id}`, { scheme: "dark" })
    const ground = async () => {
      await page.getByRole("button", { name: "HTML" }).click()
      await page.frameLocator("iframe").getByText("The end").waitFor()
      await eventually(
        () =>
          page.evaluate<boolean>(
            `(({ clientHeight, contentDocument: { documentElement } }) => clientHeight > 1700 && documentElement.scrollHeight <= clientHeight)(document.querySelector("iframe"))`,
          ),
        (is) => is,
      )
      return page.evaluate<string>(
        `getComputedStyle(document.querySelector("iframe").contentDocument.body).backgroundColor`,
      )
    }
    expect(await ground()).toBe("rgb(255, 255, 255)")
    await page.goto(`${mail.service.base}/console/identities/${handle}/mail/${dark.id}`)
    expect(await ground()).toBe("rgb(27, 28, 32)")
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("loads long lists in pages, and puts new messages on top", async () => {
    const { handle } = await mail.agent()
    for (let at = 0; at < 52; at += 13) {
      await Promise.all(
        Array.from({ length: 13 }, (_, index) =>
          send(mail.service.smtpPort, {
            from: "grace@example.org",
            to: `${handle}@mail.localhost`,
            subject: `Number ${at + index}`,
            text: "x",
          }),
        ),
      )
    }
    const { context, page } = await mail.open(`${handle}/mail`)
    const rows = page.locator("[data-list] > li")
    await rows.nth(49).waitFor()
    expect(await rows.count()).toBe(50)
    // A click would scroll to the button first, which also loads the next page and can remove the button before the click.
    await page.getByRole("button", { name: "Show more" }).dispatchEvent("click")
    await rows.nth(49).scrollIntoViewIfNeeded()
    await rows.nth(51).waitFor()
    expect(await rows.count()).toBe(52)
    await send(mail.service.smtpPort, {
      from: "grace@example.org",
      to: `${handle}@mail.localhost`,
      subject: "Newest",
      text: "x",
    })
    await rows.first().getByText("Newest").waitFor()
    expect(await rows.count()).toBe(53)
    await context.close()
  })

  it("can be read and answered by keyboard", async () => {
    const { handle } = await mail.agent()
    await mail.api("POST", `${handle}/allowed-recipients`, { address: "grace@example.org" })
    await mail.arrives(handle, { subject: "By hand", text: "Only keys." })
    const { context, page } = await mail.open(`${handle}/mail`)
    await page.getByRole("link", { name: /By hand/ }).waitFor()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.getByRole("article").getByText("Only keys.").waitFor()
    await page.getByRole("link", { name: "Reply", exact: true }).focus()
    await page.keyboard.press("Enter")
    // The caret of a reply is in the text.
    await page.locator("textarea:focus").waitFor()
    await page.keyboard.press("Control+Home")
    await page.keyboard.type("Answered.")
    await page.getByRole("button", { name: "Send", exact: true, disabled: false }).waitFor()
    await page.keyboard.press("Control+Enter")
    await page.waitForURL("**/mail/msg_*")
    await page.getByRole("region", { name: "Conversation" }).getByText("2 messages").waitFor()
    await context.close()
  })
})
