/** The composer: drafts, recipient checks, attachments and delivery status. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { violations } from "../harness/Console.ts"
import { draftKept, startConsoleMail } from "../harness/ConsoleMail.ts"
import { has } from "../harness/Programs.ts"

/** A picture of one pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** Sends without waiting for the time in which sending can be undone. */
const sendNow = async (page: Page) => {
  await page.getByRole("button", { name: "Send", exact: true, disabled: false }).click()
  await page.getByText("Not sent yet: sending in").waitFor()
  await page.getByRole("button", { name: "Send now" }).click()
}

describe.skipIf(!has("chromium"))("The composer", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  it("saves a draft while typing, and asks before it overwrites another version", async () => {
    const { handle } = await mail.agent()
    const { context, page, seen } = await mail.open(`${handle}/mail/compose`)
    await page.getByLabel("To", { exact: true }).last().fill("grace@example.org,")
    await page.getByLabel("Subject").fill("First")
    await page
      .getByLabel("Attach files")
      .setInputFiles({ name: "a b.csv", mimeType: "text/csv", buffer: Buffer.from("1,2") })
    await draftKept(page)
    await page.waitForURL("**/compose?draft=msg_*")
    const drafts = async () => (await mail.api("GET", `${handle}/drafts`)).body.drafts
    // On a busy machine the fields are saved before the attachment.
    await expect.poll(drafts).toMatchObject([
      {
        to: ["grace@example.org"],
        subject: "First",
        attachments: [{ filename: "a b.csv", content_type: "text/csv" }],
      },
    ])
    await draftKept(page)
    const [draft] = await drafts()
    expect(await violations(page)).toEqual([])

    // The agent changes the draft in the meantime: neither version is lost.
    await mail.api("PUT", `${handle}/drafts/${draft.id}`, { subject: "Of the agent", text: "Mine." })
    await page.getByLabel("Text").fill("Of a person.")
    await page.getByText("This draft was changed, sent or deleted elsewhere").waitFor()
    expect((await mail.api("GET", `${handle}/drafts/${draft.id}`)).body.subject).toBe("Of the agent")
    await page.getByRole("button", { name: "Keep my version" }).click()
    await draftKept(page)
    expect((await mail.api("GET", `${handle}/drafts/${draft.id}`)).body).toMatchObject({
      subject: "First",
      text: "Of a person.",
      attachments: [{ filename: "a b.csv", content_base64: "MSwy" }],
    })

    // The draft is saved as soon as the page is left, and continued from the list.
    await page.getByLabel("Text").fill("Of a person, longer.")
    await page.getByRole("link", { name: "All mail" }).click()
    await page.getByRole("link", { name: /Drafts/ }).click()
    await page.getByRole("link", { name: /Of a person, longer/ }).click()
    expect(await page.getByLabel("Text").inputValue()).toBe("Of a person, longer.")
    await page.getByRole("button", { name: "Discard" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click()
    await page.getByText("No drafts").waitFor()
    expect((await mail.api("GET", `${handle}/drafts`)).body.drafts).toEqual([])
    expect(seen.foreign).toEqual([])
    await context.close()
  })

  it("completes recipients from Allowed Recipients and recent mail on Enter and Tab", async () => {
    const { handle } = await mail.agent()
    for (const address of ["board@example.org", "boardwalk@example.org"]) {
      await mail.api("POST", `${handle}/allowed-recipients`, { address })
    }
    await mail.service.query(
      (sql) =>
        sql`update allowed_recipient set suppressed_at = now(), suppression = '{}' where address = 'boardwalk@example.org'`,
    )
    await mail.arrives(handle, { subject: "Hello", text: "x" })
    const { context, page } = await mail.open(`${handle}/mail/compose`)
    const to = page.getByRole("combobox", { name: "To" })
    const option = (name: RegExp) => page.getByRole("option", { name })
    await to.pressSequentially("boa")
    await option(/board@example\.org/).waitFor()
    // Suppressed recipients are not suggested.
    expect(await page.getByRole("option").count()).toBe(1)
    expect(await violations(page)).toEqual([])
    await to.press("Enter")
    await to.pressSequentially("gra")
    await option(/Grace grace@example\.org/).waitFor()
    await to.press("Tab")
    // A complete address is not replaced by a longer one.
    await to.pressSequentially("board@example.or")
    await option(/board/).waitFor({ state: "detached" })
    await to.press("Enter")
    expect(await page.getByRole("list", { name: "To" }).getByRole("listitem").allInnerTexts()).toEqual([
      expect.stringContaining("board@example.org"),
      expect.stringContaining("grace@example.org"),
      expect.stringContaining("board@example.or"),
    ])
    await to.press("Tab")
    expect(await page.evaluate("document.activeElement.matches('[role=combobox]')")).toBe(false)
    await context.close()
  })

  it("sends after 10 seconds in which sending can be undone, and never after the page is left", async () => {
    const { handle } = await mail.agent()
    await mail.api("POST", `${handle}/allowed-recipients`, { address: "undo@example.org" })
    const { context, page } = await mail.open(`${handle}/mail/compose?to=undo@example.org`)
    const questions: Array<string> = []
    page.on("dialog", (dialog) => {
      questions.push(dialog.message())
      void dialog.accept()
    })
    await page.getByLabel("Subject").fill("Undone")
    await draftKept(page)
    const send = page.getByRole("button", { name: "Send", exact: true, disabled: false })
    await send.click()
    await page.getByText("Not sent yet: sending in").waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole("button", { name: "Undo", exact: true }).click()
    await send.click()
    await page.getByRole("link", { name: "All mail" }).click()
    await page.getByRole("link", { name: /Drafts/ }).waitFor()
    expect(questions).toEqual([expect.stringContaining("This message is not sent yet")])
    const draft = (await mail.api("GET", `${handle}/drafts`)).body.drafts[0]
    expect(draft.subject).toBe("Undone")
    expect((await mail.api("GET", `${handle}/messages?direction=outbound`)).body.messages).toEqual([])
    await page.clock.install()
    await page.goto(`${mail.service.base}/console/identities/${handle}/mail/compose?draft=${draft.id}`)
    await send.click()
    await page.getByText("Not sent yet: sending in").waitFor()
    await page.clock.fastForward(10_000)
    await page.waitForURL("**/mail/msg_*")
    await mail.delivered("undo@example.org")
    expect(mail.taken().filter(({ to }) => to.includes("undo@example.org"))).toHaveLength(1)
    await context.close()
  })

  it("asks nothing after sending, also in a tab that renders no frames", async () => {
    const { handle } = await mail.agent()
    await mail.api("POST", `${handle}/allowed-recipients`, { address: "hidden@example.org" })
    const { context, page } = await mail.open(`${handle}/mail/compose?to=hidden@example.org`)
    const questions: Array<string> = []
    page.on("dialog", (dialog) => (questions.push(dialog.message()), void dialog.dismiss()))
    await page.getByLabel("Text", { exact: true }).fill("Sent.")
    await draftKept(page)
    await page.getByRole("button", { name: "Send", exact: true, disabled: false }).click()
    await page.getByText("Not sent yet: sending in").waitFor()
    // The browser stops the frames of hidden tabs, and delays short timers.
    await page.evaluate(`{
      const timer = window.setTimeout
      window.requestAnimationFrame = () => 0
      window.setTimeout = (run, delay, ...given) => timer(run, delay === 35 ? 5000 : delay, ...given)
    }`)
    await page.getByRole("button", { name: "Send now" }).click()
    await page.waitForURL("**/mail/msg_*")
    expect(questions).toEqual([])
    await context.close()
  })

  it("attaches pasted and dropped files with a preview, and sends formatted text with a plain part", async () => {
    const { handle } = await mail.agent()
    await mail.api("POST", `${handle}/allowed-recipients`, { address: "format@example.org" })
    const { context, page, seen } = await mail.open(`${handle}/mail/compose?to=format@example.org`)
    const text = page.getByLabel("Text", { exact: true })
    await text.fill("Some **bold** text <b>x</b>\n\n> ![pixel](https://tracker.example/p.png) [x](javascript:alert(1))")
    const give = (type: "paste" | "drop", names: ReadonlyArray<string>) =>
      page.evaluate(`(() => {
        const data = new DataTransfer()
        const bytes = Uint8Array.from(atob(${JSON.stringify(pixel)}), (letter) => letter.charCodeAt(0))
        for (const name of ${JSON.stringify(names)}) data.items.add(new File([bytes], name, { type: "image/png" }))
        const how = { bubbles: true, cancelable: true }
        const event = ${JSON.stringify(type)} === "paste"
          ? new ClipboardEvent("paste", { ...how, clipboardData: data })
          : new DragEvent("drop", { ...how, dataTransfer: data })
        document.querySelector("main textarea").dispatchEvent(event)
      })()`)
    await give("paste", ["pasted.png"])
    const attachments = page.getByRole("list", { name: "Attachments" })
    await attachments.getByText("pasted.png").waitFor()
    await give("drop", ["one.png", "two.png"])
    await attachments.getByText("two.png").waitFor()
    expect(await attachments.locator("img").count()).toBe(3)
    expect(await violations(page)).toEqual([])
    await page.getByRole("checkbox", { name: "Send with formatting" }).check()
    await sendNow(page)
    await page.waitForURL("**/mail/msg_*")
    await mail.delivered("format@example.org")
    const id = new URL(page.url()).pathname.split("/").at(-1)
    const { body } = await mail.api("GET", `${handle}/messages/${id}`)
    expect(body.text).toContain("Some **bold** text")
    expect(body.html).toContain("<strong>bold</strong> text &lt;b&gt;x&lt;/b&gt;")
    expect(body.html).not.toMatch(/<img|javascript:/)
    expect(body.attachments.map(({ filename }: any) => filename)).toEqual(["pasted.png", "one.png", "two.png"])
    expect(seen.foreign).toEqual([])
    await context.close()
  })

  it("rejects files that are too large before it reads them", async () => {
    const { handle } = await mail.agent()
    const { context, page } = await mail.open(`${handle}/mail/compose`)
    await page.getByLabel("Attach files").setInputFiles({
      name: "large.bin",
      mimeType: "application/octet-stream",
      buffer: Buffer.alloc(7_000_001),
    })
    await page.getByRole("alert").getByText("The limit is 7 MB").waitFor()
    expect(await page.getByText("large.bin").count()).toBe(0)
    await context.close()
  })

  it("forwards a message with its attachments", async () => {
    const { handle } = await mail.agent()
    await mail.arrives(handle, {
      subject: "Figures",
      text: "See below.",
      attachments: [{ filename: "f.csv", content: "1,2" }],
    })
    await mail.api("POST", `${handle}/allowed-recipients`, { address: "board@example.org" })
    const { context, page } = await mail.open(`${handle}/mail`)
    await page.getByRole("link", { name: /Figures/ }).click()
    await page.getByRole("link", { name: "Forward" }).click()
    await page.getByRole("list", { name: "Attachments" }).getByText("f.csv").waitFor()
    await page.getByLabel("To", { exact: true }).last().fill("board@example.org")
    await page.getByLabel("Text").focus()
    await sendNow(page)
    await page.waitForURL("**/mail/msg_*")
    const { raw } = await mail.delivered("board@example.org")
    expect(raw).toContain("Subject: Fwd: Figures")
    expect(raw).toContain(Buffer.from("1,2").toString("base64"))
    expect(raw).toContain("Grace <grace@example.org>")
    await context.close()
  })

  it("shows suppressed recipients, and lifts a suppression", async () => {
    const { handle } = await mail.agent()
    await mail.api("POST", `${handle}/allowed-recipients`, { address: "nobody@example.org" })
    const sent = await mail.api("POST", `${handle}/messages/send`, {
      to: ["nobody@example.org"],
      subject: "Lost",
      text: "?",
    })
    const { context, page } = await mail.open(`${handle}/mail/${sent.body.id}`)
    const delivery = page.getByRole("region", { name: "Delivery" })
    await delivery.getByText("Bounced").waitFor()
    await delivery.getByText("no such user").waitFor()
    await page.goto(`${mail.service.base}/console/identities/${handle}/mail/compose?to=nobody@example.org`)
    await page.getByText("is suppressed, because mail to it bounced").last().waitFor()
    await page.goto(`${mail.service.base}/console/identities/${handle}/mail/settings`)
    await page.getByText("Suppressed", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Lift suppression of nobody@example.org" }).click()
    await page.getByText("Suppressed", { exact: true }).waitFor({ state: "detached" })
    const listed = await mail.api("GET", `${handle}/allowed-recipients?address=nobody@example.org`)
    expect(listed.body.allowed_recipients[0].suppressed).toBe(null)
    await context.close()
  })

  it("disables sending while outgoing mail is stopped", async () => {
    const { handle } = await mail.agent()
    await mail.api("POST", `${handle}/allowed-recipients`, { address: "held@example.org" })
    await mail.api("PATCH", `${handle}/mail`, { outgoing: "stopped", reason: "Looking into it" })
    const { context, page } = await mail.open(`${handle}/mail/compose?to=held@example.org`)
    await page.getByText("send it when sending is resumed").waitFor()
    await page.getByText("Looking into it").waitFor()
    await page.getByLabel("Text").fill("Not yet.")
    await draftKept(page)
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true)
    await page.getByLabel("Text").press("Control+Enter")
    // Sending is resumed by the API.
    await mail.api("PATCH", `${handle}/mail`, { outgoing: "active" })
    await sendNow(page)
    await page.waitForURL("**/mail/msg_*")
    await page.getByRole("region", { name: "Delivery" }).getByText("delivered").waitFor()
    expect(mail.taken().filter(({ to }) => to.includes("held@example.org"))).toHaveLength(1)
    await context.close()
  })
})
