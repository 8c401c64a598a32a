/** Input that the service does not have yet: stored in the browser, restored, and deleted when it is no longer needed. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { heading, settled } from "../harness/Console.ts"
import { draftKept, startConsoleMail } from "../harness/ConsoleMail.ts"
import { eventually } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

/** Returns what the browser has stored for forms and composers. */
const storedIn = (page: Page) =>
  page.evaluate<string>(
    `Object.entries(localStorage).filter(([key]) => key.startsWith("svc-unsaved:")).map((entry) => entry.join("=")).join("\\n")`,
  )

const emptied = (page: Page) =>
  eventually(
    () => storedIn(page),
    (stored) => stored === "",
  )

/** Collects the questions of the page, and answers each with yes. */
const questionsOf = (page: Page) => {
  const questions: Array<string> = []
  page.on("dialog", (dialog) => {
    questions.push(dialog.type() === "beforeunload" ? "beforeunload" : dialog.message())
    void dialog.accept()
  })
  return questions
}

describe.skipIf(!has("chromium"))("Input that the service does not have", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  it("survives leaving and reloading the composer, and is saved once the service can be reached", async () => {
    const { handle } = await mail.agent()
    const { context, page } = await mail.open(`${handle}/mail`)
    const questions = questionsOf(page)
    const drafts = "**/api/identities/*/drafts*"
    await page.route(drafts, (route) => (route.request().method() === "POST" ? route.abort() : route.continue()))
    await page.getByRole("link", { name: "Compose" }).click()
    await page.getByLabel("Subject").fill("Written offline")
    await page.getByLabel("Text").fill("Every word of it.")
    await page.getByLabel("Attach files").setInputFiles({
      name: "large.bin",
      mimeType: "application/octet-stream",
      buffer: Buffer.alloc(1_500_000),
    })
    await page.getByText("kept in this browser until it can be saved").waitFor()

    // Navigation asks. The message is in the list of drafts, and in the composer.
    await page.getByRole("link", { name: "All mail" }).click()
    await page.getByRole("link", { name: /Drafts/ }).click()
    expect(questions).toEqual([expect.stringContaining("It is kept in this browser")])
    await page
      .getByRole("region", { name: "Not saved yet" })
      .getByRole("link", { name: /Written offline/ })
      .click()
    await page.getByText("Changes that were not saved were restored").waitFor()
    await page.getByText("Attach these files again: large.bin").waitFor()
    expect(await page.getByLabel("Text").inputValue()).toBe("Every word of it.")

    // A reload asks, too.
    await page.reload()
    await page.getByText("Changes that were not saved were restored").waitFor()
    expect(questions.at(-1)).toBe("beforeunload")
    expect(await page.getByLabel("Subject").inputValue()).toBe("Written offline")

    await page.unroute(drafts)
    await draftKept(page)
    await emptied(page)
    const { body } = await mail.api("GET", `${handle}/drafts`)
    expect(body.drafts).toMatchObject([{ subject: "Written offline", snippet: "Every word of it." }])
    const asked = questions.length
    await page.reload()
    await settled(page)
    expect(questions).toHaveLength(asked)
    await context.close()
  })

  it("does not overwrite a version of the draft that is newer than the restored one", async () => {
    const { handle } = await mail.agent()
    const { body: draft } = await mail.api("POST", `${handle}/drafts`, { subject: "Shared", text: "One" })
    const { context, page } = await mail.open(`${handle}/mail/compose?draft=${draft.id}`)
    questionsOf(page)
    await page.route("**/drafts/*", (route) => (route.request().method() === "PUT" ? route.abort() : route.continue()))
    await page.getByLabel("Text").fill("Mine")
    await page.getByText("kept in this browser until it can be saved").waitFor()
    await mail.api("PUT", `${handle}/drafts/${draft.id}`, { subject: "Shared", text: "Of the agent" })
    await page.unroute("**/drafts/*")
    await page.reload()
    await page.getByText("This draft was changed, sent or deleted elsewhere").waitFor()
    expect(await page.getByLabel("Text").inputValue()).toBe("Mine")
    expect((await mail.api("GET", `${handle}/drafts/${draft.id}`)).body.text).toBe("Of the agent")
    await page.getByRole("button", { name: "Show the other version" }).click()
    await page.getByText("Changes that were not saved were restored").waitFor({ state: "detached" })
    expect(await page.getByLabel("Text").inputValue()).toBe("Of the agent")
    expect(await storedIn(page)).toBe("")
    await context.close()
  })

  it("survives a failed request, leaving and reloading a form, but without secrets", async () => {
    const { handle } = await mail.agent()
    const { context, page } = await mail.open(`${handle}/tunnel`)
    const questions = questionsOf(page)
    await page.getByLabel("Host header").fill("internal.example")
    await page.getByLabel("Require a password").check()
    await page.getByLabel("User name").fill("ada")
    await page.getByLabel("Password", { exact: true }).fill("correct horse")
    await page.route("**/tunnel", (route) => (route.request().method() === "PATCH" ? route.abort() : route.continue()))
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Can’t reach the service").first().waitFor()
    expect(await page.getByLabel("Password", { exact: true }).inputValue()).toBe("correct horse")
    await page.unroute("**/tunnel")

    await page.getByRole("link", { name: "Vault" }).first().click()
    await heading(page).filter({ hasText: "Vault" }).waitFor()
    expect(questions).toEqual([expect.stringContaining("Your changes are not saved")])
    expect(await storedIn(page)).toContain("internal.example")
    expect(await storedIn(page)).not.toContain("correct horse")
    await page.goBack()
    await page.getByText("Your earlier input was restored").waitFor()
    await page.reload()
    await page.getByText("Your earlier input was restored").waitFor()
    expect(questions.at(-1)).toBe("beforeunload")
    expect(await page.getByLabel("Host header").inputValue()).toBe("internal.example")
    expect(await page.getByLabel("Password", { exact: true }).inputValue()).toBe("")
    await page.getByLabel("Password", { exact: true }).fill("correct horse")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    await emptied(page)
    expect((await mail.api("GET", `${handle}/tunnel`)).body.settings.host_header).toBe("internal.example")
    await context.close()
  })

  it("is deleted at sign-out, after a question", async () => {
    const { context, page } = await mail.open("")
    await page.goto(`${mail.service.base}/console/vault`)
    const questions = questionsOf(page)
    await page.getByRole("button", { name: "Add" }).first().click()
    await page.getByRole("textbox", { name: "Name" }).fill("db/password")
    await page.getByLabel("Value").fill("correct horse")
    expect(await storedIn(page)).toContain("db/password")
    expect(await storedIn(page)).not.toContain("correct horse")
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "detached" })
    expect(questions).toEqual(["Discard what you entered?"])
    expect(await storedIn(page)).toBe("")
    await page.getByRole("button", { name: "Add" }).first().click()
    await page.getByRole("textbox", { name: "Name" }).fill("db/password")
    await page.reload()
    await settled(page)
    expect(await storedIn(page)).toContain("db/password")
    await page.keyboard.press("Control+k")
    await page.getByRole("combobox", { name: "Search or jump to" }).fill("Sign out")
    await page.keyboard.press("Enter")
    await page.getByLabel("Email").waitFor()
    expect(questions.at(-1)).toContain("will be deleted from this browser")
    expect(await storedIn(page)).toBe("")
    await context.close()
  })
})
