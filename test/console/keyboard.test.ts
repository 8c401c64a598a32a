/** Mail by keyboard and in bulk, what can be undone, the command palette, and what Back restores. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectNoSidewaysScroll, heading, settled, violations } from "../harness/Console.ts"
import { startConsoleMail } from "../harness/ConsoleMail.ts"
import { has } from "../harness/Programs.ts"
import { eventually } from "../harness/Service.ts"

const isGone = { state: "detached" } as const
const row = (page: Page, subject: string) => page.locator(".mails > li").filter({ hasText: subject })
const undo = (page: Page) => page.locator(".toast").last().getByRole("button", { name: "Undo" }).click()

describe.skipIf(!has("chromium"))("Mail in the console by keyboard", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  const filled = async (subjects: ReadonlyArray<string>) => {
    const { handle } = await mail.agent()
    const ids: Record<string, string> = {}
    for (const subject of subjects) ids[subject] = (await mail.arrives(handle, { subject, text: "x" })).id
    return {
      handle,
      ids,
      flags: async (subject: string) => (await mail.api("GET", `${handle}/messages/${ids[subject]}`)).body,
    }
  }

  it("composes, replies, forwards, marks, flags and opens lists with single letters", async () => {
    const { handle, flags } = await filled(["One", "Two"])
    const { context, page } = await mail.open(`${handle}/mail`)
    await row(page, "Two").waitFor()
    await page.keyboard.press("c")
    await page.waitForURL("**/mail/compose")
    await page.goBack()
    await row(page, "Two").waitFor()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/threads/thr_*")
    await page.getByRole("article").getByRole("link", { name: "Reply", exact: true }).waitFor()
    await page.keyboard.press("s")
    await eventually(
      () => flags("Two"),
      ({ flagged }) => flagged,
    )
    await page.keyboard.press("r")
    await page.waitForURL("**/compose?reply=msg_*")
    await page.goBack()
    await page.getByRole("article").getByRole("link", { name: "Reply", exact: true }).waitFor()
    await page.keyboard.press("f")
    await page.waitForURL("**/compose?forward=msg_*")
    await page.getByLabel("Subject").waitFor()
    // Letters are for the text while a person types.
    await page.getByLabel("Text", { exact: true }).focus()
    await page.keyboard.press("e")
    await page.keyboard.press("?")
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toMatch(/e\?$/)
    expect(await page.getByRole("dialog").count()).toBe(0)
    await page.goto(`${mail.service.base}/console/identities/${handle}/mail`)
    await row(page, "One").waitFor()
    // Combinations are for the browser.
    for (const modifier of ["Alt", "Control", "Meta"]) await page.keyboard.press(`${modifier}+c`)
    await page.keyboard.press("/")
    expect(await page.evaluate("document.activeElement.type")).toBe("search")
    await page.getByRole("searchbox").blur()
    await page.keyboard.press("g")
    await page.keyboard.press("k")
    await heading(page).filter({ hasText: "Keys" }).waitFor()
    await page.keyboard.press("?")
    await page.getByRole("dialog").getByText("Archive").waitFor()
    await page.keyboard.press("c")
    expect(await page.evaluate("location.pathname")).toBe("/console/keys")
    expect(await violations(page)).toEqual([])
    await context.close()
  })

  it("archives, marks and deletes selected conversations in one request each, and undoes each", async () => {
    const { handle, ids, flags } = await filled(["One", "Two", "Three"])
    const { context, page, seen } = await mail.open(`${handle}/mail`)
    const requests: Array<string> = []
    page.on("request", (request) => {
      if (request.method() !== "GET" && request.method() !== "HEAD")
        requests.push(`${request.method()} ${new URL(request.url()).pathname.split("/").slice(4).join("/")}`)
    })
    const choose = async () => {
      await page.getByRole("checkbox", { name: "Select One" }).check()
      await page.getByRole("checkbox", { name: "Select Two" }).check()
      await page.getByText("2 selected").waitFor()
    }
    await choose()
    expect(await violations(page)).toEqual([])
    // The selection is part of the address.
    await page.reload()
    await page.getByText("2 selected").waitFor()

    await page.keyboard.press("u")
    await page.locator(".mails > li[data-unread]").filter({ hasText: "One" }).waitFor(isGone)
    expect((await flags("Two")).seen).toBe(true)
    await undo(page)
    await page.locator(".mails > li[data-unread]").filter({ hasText: "One" }).waitFor()

    await choose()
    await page.keyboard.press("e")
    await row(page, "One").waitFor(isGone)
    await page.getByRole("navigation", { name: "Mailbox" }).getByRole("link", { name: "Archive" }).click()
    await row(page, "Two").waitFor()
    expect(await row(page, "Three").count()).toBe(0)
    await undo(page)
    await page.getByText("No archived conversations").waitFor()
    await page.goBack()
    await row(page, "Two").waitFor()
    expect(requests).toEqual(Array.from({ length: 4 }, () => "PATCH messages"))

    await choose()
    await page.keyboard.press("#")
    await row(page, "One").waitFor(isGone)
    await undo(page)
    await row(page, "One").waitFor()
    await page.getByRole("checkbox", { name: "Select Three" }).check()
    await page.getByRole("toolbar").getByRole("button", { name: "Delete" }).click()
    await row(page, "Three").waitFor(isGone)
    expect((await flags("Three")).id).toBe(ids["Three"])
    // Closing the page makes the deletion that is still waiting.
    await page.goto("about:blank")
    await eventually(
      () => mail.api("GET", `${handle}/messages`),
      ({ body }) => body.messages.length === 2,
    )
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("marks a conversation as read with one request", async () => {
    const { handle } = await mail.agent()
    for (let at = 0; at < 5; at++)
      await mail.arrives(handle, {
        subject: at === 0 ? "Plan" : `Re: Plan ${at}`,
        text: "x",
        messageId: `<all-${handle}-${at}@example.org>`,
        ...(at === 0 ? {} : { references: [`<all-${handle}-0@example.org>`] }),
      })
    const { context, page } = await mail.open(`${handle}/mail`)
    const requests: Array<string> = []
    page.on("request", (request) => {
      if (request.method() === "PATCH" && request.postData()?.includes("threads")) requests.push(request.url())
    })
    await page.getByRole("link", { name: /Plan/ }).first().click()
    await page.getByRole("button", { name: "Mark all as read" }).click()
    await eventually(
      () => mail.api("GET", `${handle}/messages?seen=false`),
      ({ body }) => body.messages.length === 0,
    )
    expect(requests).toHaveLength(1)
    await page.getByRole("button", { name: "Mark all as read" }).waitFor(isGone)
    await context.close()
  })

  it("restores the scroll position and the filters on Back", async () => {
    const { handle } = await filled(Array.from({ length: 30 }, (_, n) => `Message ${n} end`))
    const { context, page } = await mail.open(`${handle}/mail?direction=inbound`)
    await row(page, "Message 0 end").waitFor()
    await row(page, "Message 2 end").scrollIntoViewIfNeeded()
    const top = await page.evaluate<number>("scrollY")
    expect(top).toBeGreaterThan(200)
    await row(page, "Message 2 end").getByRole("link").click()
    await page.getByRole("article").first().waitFor()
    await page.goBack()
    await page.waitForURL("**/mail?direction=inbound")
    await eventually(
      () => page.evaluate<number>("scrollY"),
      (now) => Math.abs(now - top) < 3,
    )
    await page.goForward()
    await page.getByRole("article").first().waitFor()
    await context.close()
  })

  it("shows the whole heading, navigation and list at 735 px", async () => {
    const { handle } = await filled(["A message with a subject that is longer than the column"])
    const { context, page } = await mail.open(`${handle}/mail`, { width: 735 })
    await row(page, "A message").waitFor()
    await expectNoSidewaysScroll(page, "the mail list at 735 px")
    const cut = await page.evaluate<ReadonlyArray<string>>(`(() => {
      const box = (one) => one.getBoundingClientRect()
      const head = box(document.querySelector("h1"))
      const covered = [...document.querySelectorAll(".page-head .button")].filter((one) =>
        box(one).left < head.left + document.querySelector("h1").scrollWidth && box(one).top < head.bottom && box(one).bottom > head.top)
      const hidden = [...document.querySelectorAll(".mail-nav a, .mails .sender, .mails .pick, .mails time")].filter((one) => {
        const list = box(one.closest(".mail-nav, .mails"))
        return box(one).left < list.left || box(one).right > list.right + 1 || box(one).width === 0
      })
      return [...covered, ...hidden].map((one) => one.outerHTML.slice(0, 100))
    })()`)
    expect(cut).toEqual([])
    await context.close()
  })

  it("finds actions and settings in the palette by their words", async () => {
    const { handle } = await mail.agent()
    const { context, page } = await mail.open(`${handle}/mail`)
    const first = async (typed: string) => {
      await page.keyboard.press("Control+k")
      await page.getByRole("combobox", { name: "Search or jump to" }).fill(typed)
      const text = await page.getByRole("option").first().innerText()
      await page.keyboard.press("Escape")
      await page.getByRole("combobox", { name: "Search or jump to" }).waitFor(isGone)
      return text
    }
    expect(await first("stop")).toBe("Stop all mail")
    expect(await first("limits")).toBe("Limits & usage")
    expect(await first("quota")).toBe("Limits & usage")
    expect(await first("audit")).toBe("Audit log")
    expect(await first(`${handle} webh`)).toBe(`Webhooks of ${handle}`)
    expect(await first("allowed rec")).toContain("Mail settings of")
    // Scattered letters are no match.
    await page.keyboard.press("Control+k")
    await page.getByRole("combobox", { name: "Search or jump to" }).fill("smm")
    await page.getByText("No results").waitFor()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.getByRole("combobox", { name: "Search or jump to" }).fill("stop")
    await page.keyboard.press("Enter")
    await page.getByText("Outgoing mail stopped for all agents").waitFor()
    await mail.api("PATCH", `${handle}/mail`, { outgoing: "active" })
    await settled(page)
    await context.close()
  })
})
