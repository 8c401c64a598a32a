/** Lists of thousands of rows: their size in the document, requests, keyboard, focus, Back, and what screen readers learn. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { settled, violations } from "../harness/Console.ts"
import { startConsoleMail } from "../harness/ConsoleMail.ts"
import { has } from "../harness/Programs.ts"
import { eventually } from "../harness/Service.ts"

const count = 1_000
const perPage = 50

const rows = (page: Page) => page.locator(".mails > li[data-entry]")
const row = (page: Page, subject: string) => rows(page).filter({ hasText: subject })
const scrollTo = (page: Page, top: number | string) => page.evaluate(`scrollTo(0, ${top})`)
const nodes = (page: Page) => page.evaluate<number>("document.querySelectorAll('*').length")
/** Scrolls to the end until this number of rows is loaded. */
const load = (page: Page, wanted: number) =>
  eventually(
    () =>
      page.evaluate<number>(`(() => {
        scrollTo(0, document.body.scrollHeight)
        const last = [...document.querySelectorAll(".mails > li[aria-posinset]")].at(-1)
        return Number(last?.getAttribute("aria-posinset"))
      })()`),
    (loaded) => loaded >= wanted,
  )

describe.skipIf(!has("chromium"))("A list of 1,000 messages", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  /** The Mailbox of all tests. Those that change it come last. */
  let handle: string
  beforeAll(async () => {
    mail = await startConsoleMail()
    handle = await filled()
  })
  afterAll(() => mail?.stop())

  /** A Mailbox whose oldest messages are copies of one that was received. */
  const filled = async () => {
    const { handle } = await mail.agent()
    await mail.arrives(handle, { subject: "Newest", text: "x" })
    await mail.service.query(
      (sql) => sql`
        with copies as (
          select m.id as of, gen_random_uuid() as id, gen_random_uuid() as thread_id, n
          from message m join identity i on i.id = m.identity_id, generate_series(1, ${count - 1}::int) n
          where i.canonical = ${handle}
        ), contents as (
          insert into message_content
          select (jsonb_populate_record(t, jsonb_build_object('message_id', c.id))).*
          from message_content t join copies c on c.of = t.message_id
        )
        insert into message
        select (jsonb_populate_record(m, jsonb_build_object(
          'id', c.id, 'thread_id', c.thread_id, 'uid', -c.n, 'message_id', null,
          'received_at', m.received_at - c.n * interval '1 minute',
          'summary', m.summary || jsonb_build_object('subject', 'Message ' || c.n || ' end')))).*
        from message m join copies c on c.of = m.id`,
    )
    return handle
  }
  const requestsOf = (page: Page) => {
    const seen: Array<string> = []
    page.on("request", (request) => {
      if (request.method() === "GET" && /\/(?:threads|messages)\?/.test(request.url())) seen.push(request.url())
    })
    return seen
  }

  it("has few rows in the document, and tells screen readers how many there are", async () => {
    const { context, page, seen } = await mail.open(`${handle}/mail`)
    await row(page, "Newest").waitFor()
    expect(await rows(page).first().getAttribute("aria-setsize")).toBe("-1")
    await load(page, count)
    await row(page, "Message 999 end").waitFor()
    expect(await nodes(page)).toBeLessThan(2_500)
    expect(await row(page, "Message 999 end").getAttribute("aria-posinset")).toBe("1000")
    expect(await row(page, "Message 999 end").getAttribute("aria-setsize")).toBe("1000")
    expect(await violations(page)).toEqual([])
    await scrollTo(page, 0)
    await row(page, "Newest").waitFor()
    expect(await nodes(page)).toBeLessThan(2_500)
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("keeps the focus while the list scrolls, and moves on with letters past the rows in the document", async () => {
    const { context, page } = await mail.open(`${handle}/mail`)
    await row(page, "Newest").waitFor()
    await load(page, 4 * perPage)
    await scrollTo(page, 0)
    await row(page, "Message 3 end").getByRole("link").focus()
    await scrollTo(page, 150 * 37)
    await row(page, "Message 150 end").waitFor()
    expect(await page.evaluate("document.activeElement.textContent")).toContain("Message 3 end")
    for (let at = 4; at < 90; at++) await page.keyboard.press("j")
    expect(await page.evaluate("document.activeElement.textContent")).toContain("Message 89 end")
    await page.keyboard.press("x")
    await page.getByText("1 selected").waitFor()
    await scrollTo(page, 0)
    await row(page, "Newest").waitFor()
    await page.getByText("1 selected").waitFor()
    await context.close()
  })

  it("is at its place after Back, and shows the row of the open message beside it", async () => {
    const { context, page } = await mail.open(`${handle}/mail`)
    await row(page, "Newest").waitFor()
    await load(page, 8 * perPage)
    await row(page, "Message 330 end")
      .waitFor({ state: "detached" })
      .catch(() => undefined)
    await scrollTo(page, 330 * 37)
    const middle = rows(page).filter({ hasText: "Message 33" }).first()
    await middle.waitFor()
    const subject = (await middle.locator(".subject").innerText()).trim()
    await middle.scrollIntoViewIfNeeded()
    const top = await page.evaluate<number>("scrollY")
    await middle.getByRole("link").click()
    await page.getByRole("article").first().waitFor()
    await page.locator(".mails > li[data-open]").filter({ hasText: subject }).waitFor()
    expect(
      await page.evaluate<boolean>(
        `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector("li[data-open]").getBoundingClientRect())`,
      ),
    ).toBe(true)
    await page.goBack()
    await eventually(
      () => page.evaluate<number>("scrollY"),
      (now) => Math.abs(now - top) < 3,
    )
    await row(page, subject).waitFor()
    await context.close()
  })

  it("needs one request for a new message while 16 pages are loaded, keeps every row, and shows changes far below", async () => {
    const { context, page } = await mail.open(`${handle}/mail`)
    await page.locator(".connection").getByText("Live", { exact: true }).waitFor()
    await load(page, 16 * perPage)
    await scrollTo(page, 0)
    await row(page, "Newest").waitFor()
    await settled(page)
    const requests = requestsOf(page)
    await mail.arrives(handle, { subject: "Arrived", text: "x" })
    await row(page, "Arrived").waitFor()
    await row(page, "Newest").waitFor()
    expect(requests).toHaveLength(1)
    // The row that left the first page is still there, once, before the next page is read again.
    const held = page.waitForRequest(/threads\?.*cursor=/)
    const { promise: isChecked, resolve: release } = Promise.withResolvers<void>()
    await page.route(/threads\?.*cursor=/, (route) => isChecked.then(() => route.continue()))
    await scrollTo(page, 45 * 37)
    await row(page, "Message 51 end").waitFor()
    await held
    for (const at of [49, 50, 51]) {
      expect(await row(page, `Message ${at} end`).count()).toBe(1)
      expect(await row(page, `Message ${at} end`).getAttribute("aria-posinset")).toBe(String(at + 2))
    }
    release()
    // The page may have cancelled a held request, whose handler would never end.
    await page.unrouteAll({ behavior: "ignoreErrors" })

    // Changed and deleted messages, on the screen and elsewhere.
    const idOf = async (subject: string) => {
      let cursor = ""
      for (;;) {
        const { body } = await mail.api("GET", `${handle}/messages?limit=100${cursor}`)
        const found = body.messages.find((one: { subject: string }) => one.subject === subject)
        if (found !== undefined) return found.id as string
        cursor = `&cursor=${body.next_cursor}`
      }
    }
    const [near, deep] = [await idOf("Message 60 end"), await idOf("Message 590 end")]
    await scrollTo(page, 590 * 37 - 300)
    await row(page, "Message 590 end").waitFor()
    // Outside the screen.
    await mail.api("DELETE", `${handle}/messages/${near}`)
    await mail.api("PATCH", `${handle}/messages/${deep}`, { seen: true })
    await page.locator(".mails > li:not([data-unread])").filter({ hasText: "Message 590 end" }).waitFor()
    await mail.api("DELETE", `${handle}/messages/${deep}`)
    await row(page, "Message 590 end").waitFor({ state: "detached" })
    await row(page, "Message 591 end").waitFor()
    await scrollTo(page, 60 * 37 - 300)
    await row(page, "Message 61 end").waitFor()
    await row(page, "Message 60 end").waitFor({ state: "detached" })
    expect(await row(page, "Message 59 end").count()).toBe(1)
    await context.close()
  })
})
