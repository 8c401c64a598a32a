/** Approval in the console: a person sees exactly the message that is sent, and decides on that. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Look, violations } from "../harness/Console.ts"
import { startConsoleMail } from "../harness/ConsoleMail.ts"
import { has } from "../harness/Programs.ts"
import { eventually } from "../harness/Service.ts"

const asked = "asked@example.org"
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const base64 = (text: string) => Buffer.from(text).toString("base64")

describe.skipIf(!has("chromium"))("Approval in the console", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  const agent = async () => {
    const { handle, secrets } = await mail.agent()
    await mail.api("PATCH", `${handle}/mail`, { approval: "required" })
    await mail.api("POST", `${handle}/allowed-recipients`, { address: asked })
    const asks = async (letter: object): Promise<string> => {
      const { body } = await mail.api(
        "POST",
        `${handle}/messages/send`,
        { to: [asked], ...letter },
        secrets.identity_key,
      )
      expect(body.status).toBe("awaiting_approval")
      return body.id
    }
    return { handle, asks }
  }
  const approveButton = (page: Page) => page.getByRole("button", { name: "Approve and send" })
  const sentBy = (handle: string) => mail.taken().filter(({ raw }) => raw.includes(`From: ${handle}@`))

  it("decides only on the page that shows the whole message", async () => {
    const { handle, asks } = await agent()
    const [wise, rash] = [
      await asks({ subject: "Wise", text: "May I?" }),
      await asks({ subject: "Rash", text: "Now!" }),
    ]
    const { context, page, seen } = await mail.open(`${handle}/mail`)
    await page.getByText("2 messages need your approval").waitFor()
    await page.getByRole("link", { name: "Review" }).click()
    await page.getByRole("article", { name: "Rash" }).waitFor()
    expect(await approveButton(page).count()).toBe(0)
    expect(await violations(page)).toEqual([])
    await page.getByRole("article", { name: "Rash" }).getByRole("link", { name: "Review" }).click()
    await page.getByRole("button", { name: "Reject" }).click()
    await page.getByLabel("Reason").fill("Not before Monday")
    await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click()
    await page.getByText("This message was not sent").waitFor()
    await page.getByText("Not before Monday").waitFor()
    const refused = (await mail.api("GET", `${handle}/messages/${rash}`)).body
    expect([refused.status, refused.approval.reason]).toEqual(["refused", "Not before Monday"])

    // Another message arrives while the list is open.
    await page.getByRole("link", { name: /Approvals/ }).click()
    await page.getByRole("article", { name: "Wise" }).waitFor()
    await asks({ subject: "Late", text: "May I?" })
    await page.getByRole("article", { name: "Late" }).waitFor()
    await page.getByRole("link", { name: "Wise" }).click()
    await page.frameLocator("iframe").getByText("May I?").waitFor()
    await approveButton(page).click()
    await page.getByText("Approved by a person.").waitFor()
    await eventually(
      () => mail.api("GET", `${handle}/messages/${wise}`),
      ({ body }) => body.status === "done",
    )
    expect(sentBy(handle)).toHaveLength(1)
    await page.goto(`${mail.service.base}/console/identities/${handle}/mail/approvals/${wise}`)
    await page.getByText("This message no longer needs approval").waitFor()
    expect(seen.foreign).toEqual([])
    await context.close()
  })

  const looks: ReadonlyArray<Look> = [{ scheme: "light" }, { scheme: "dark" }]
  it.each(looks)("shows HTML first, its differences from the text, and all attachments in %j", async (look) => {
    const { handle, asks } = await agent()
    const id = await asks({
      subject: "Invoice",
      text: "Harmless",
      html: "<h1>Invoice</h1><p>wire EUR 9,000</p>",
      attachments: [
        { filename: "list.csv", content_type: "text/csv", content_base64: base64("payee,amount\nGrace,9000\n") },
        { filename: "dot.png", content_type: "image/png", content_base64: pixel },
        { filename: "terms.pdf", content_type: "application/pdf", content_base64: base64("%PDF-1.4\n") },
      ],
    })
    const { context, page, seen } = await mail.open(`${handle}/mail/approvals/${id}`, look)
    await page.frameLocator("iframe").getByText("wire EUR 9,000").waitFor()
    await page.getByText("The HTML and the plain text say different things").waitFor()
    expect(await page.getByRole("listitem").filter({ hasText: "wire EUR 9,000" }).count()).toBe(1)
    expect(await page.getByRole("listitem").filter({ hasText: "Harmless" }).count()).toBe(1)
    const files = page.getByRole("region", { name: "Attachments" })
    await files.getByText("Grace,9000").waitFor()
    await files.getByRole("img", { name: "dot.png" }).waitFor()
    const width = `document.querySelector("img.preview").decode().then(() => document.querySelector("img.preview").naturalWidth)`
    expect(await page.evaluate(width)).toBe(1)
    await files.getByText("terms.pdf").waitFor()
    await files.getByText("No preview for this file type").waitFor()
    await files.getByText("70 B").waitFor()
    await page.getByRole("button", { name: "Plain text" }).click()
    await page.getByRole("article").getByText("Harmless").last().waitFor()
    expect(await violations(page)).toEqual([])
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("disables approval while the page leaves something out, and shows long messages whole", async () => {
    const { handle, asks } = await agent()
    const image = (scheme: string) => `<p>Look</p><img src="${scheme}://images.example/a.png" alt="a">`
    const [remote, plain, long] = [
      await asks({ subject: "Remote", html: image("https") }),
      await asks({ subject: "Clear", html: image("http") }),
      await asks({ subject: "Long", text: `${"word ".repeat(20_000)}the very end` }),
    ]
    const { context, page } = await mail.open(`${handle}/mail/approvals/${remote}`)
    await page.route("https://images.example/**", (route) =>
      route.fulfill({ contentType: "image/png", body: Buffer.from(pixel, "base64") }),
    )
    await page.getByText("contains images from other servers").waitFor()
    expect(await approveButton(page).isDisabled()).toBe(true)
    await page.getByRole("button", { name: "Show images" }).click()
    await page.getByText("contains images from other servers").waitFor({ state: "detached" })
    expect(await approveButton(page).isDisabled()).toBe(false)

    await page.goto(`${mail.service.base}/console/identities/${handle}/mail/approvals/${plain}`)
    await page.getByText("loaded without encryption").waitFor()
    expect(await approveButton(page).isDisabled()).toBe(true)
    expect(await page.getByRole("button", { name: "Reject" }).isDisabled()).toBe(false)

    await page.goto(`${mail.service.base}/console/identities/${handle}/mail/approvals/${long}`)
    await page.frameLocator("iframe").getByText("the very end").waitFor()
    expect(await approveButton(page).isDisabled()).toBe(false)
    await context.close()
  })
})
