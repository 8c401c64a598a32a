/** Charts of activity: values for the pointer, the keyboard and screen readers, and as a table, in both themes. */
import { bucketOf } from "@svc/cluster/usage/UsageCounters"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import {
  expectNoSidewaysScroll,
  navigate,
  openContext,
  settled,
  startConsole,
  type TestConsole,
  violations,
} from "../harness/Console.ts"
import { has } from "../harness/Programs.ts"

describe.skipIf(!has("chromium"))("The charts of the console", () => {
  let site: TestConsole
  let session: string
  let handle: string
  let webhook: string
  beforeAll(async () => {
    site = await startConsole()
    session = (await signUp(site.service.base)).session
    handle = (await makeIdentity(site.service.base, session)).handle
    const { body } = await call(site.service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: session,
      body: { url: "https://hook.example.com/", event_types: ["email.sent"] },
    })
    webhook = body.id
    // Activity of two days; the days between them and today have none.
    const write = (
      days: number,
      kind: string,
      count: number,
      failed = 0,
      millis: number | null = null,
      bytes = 0,
      of = false,
    ) =>
      site.service.query(
        (sql) => sql`
          with i as (select * from identity where canonical = ${handle.replaceAll("-", "")})
          insert into usage_hour (org_id, identity_id, hour, kind, webhook_id, bucket, count, failed, bytes_in, bytes_out)
          select i.org_id, w.owner, date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - ${`${days} days`}::interval,
                 ${kind}, case when ${of} and w.owner is not null then (select id from webhook where identity_id = i.id) end,
                 ${millis === null ? null : bucketOf(millis)}::smallint, ${count}, ${failed}, ${bytes}, ${bytes / 2}
          from i cross join lateral (values (i.id), (null)) as w (owner)`,
      )
    await write(3, "mail_received", 5)
    await write(3, "mail_sent", 2)
    await write(3, "mail_refused", 1)
    await write(2, "mail_received", 7)
    await write(3, "delivery", 10, 2, 256, 0, true)
    await write(2, "delivery", 30, 0, 128, 0, true)
    await write(3, "tunnel", 50, 0, null, 4000)
    await write(3, "tunnel_http", 45, 0, 32)
    await write(3, "tunnel_http", 5, 5)
    await write(3, "mailbox", 123_456)
  })
  afterAll(() => site?.stop())

  const open = async (path: string, look: Parameters<typeof openContext>[2] = {}) => {
    const { context, seen } = await openContext(site.browser, site.service.base, look, session)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console${path}`)
    await settled(page)
    return { context, seen, page }
  }
  const chart = (page: Page, name: string) => page.getByRole("slider", { name, exact: true })
  const valueText = (page: Page, name: string) => chart(page, name).getAttribute("aria-valuetext")
  /** Returns the rows of the table of a chart that have a value. */
  const rowsOf = async (page: Page, name: string) => {
    await page.getByRole("button", { name: `Show as table: ${name}` }).click()
    const rows = await page
      .getByRole("table", { name })
      .locator("tbody tr")
      .evaluateAll((all: ReadonlyArray<any>) =>
        all.map(({ cells }) => Array.from(cells, ({ textContent }: any) => textContent)),
      )
    expect(rows.length).toBeGreaterThan(6)
    return rows.map(([, ...values]) => values).filter((values) => values.some((value) => !/^(?:0|–)$/.test(value)))
  }

  it("show the mail of each day to the keyboard, the pointer and as a table", async () => {
    const { page, context, seen } = await open(`/identities/${handle}`)
    const mail = chart(page, "Mail")
    await mail.waitFor()
    const legend = page.locator(".chart .legend")
    await legend.getByText("Received 12", { exact: true }).waitFor()
    await mail.focus()
    expect(await valueText(page, "Mail")).toMatch(/: Received 0, Sent 0, Rejected 0$/)
    for (const _ of "two") await page.keyboard.press("ArrowLeft")
    expect(await valueText(page, "Mail")).toMatch(/^\w+ \d+: Received 5, Sent 2, Rejected 1$/)
    await legend.getByText("Received 5", { exact: true }).waitFor()
    await page.keyboard.press("Home")
    expect(await mail.getAttribute("aria-valuenow")).toBe("1")
    await page.keyboard.press("Escape")
    await legend.getByText("Received 12", { exact: true }).waitFor()
    const box = (await mail.boundingBox())!
    await page.mouse.move(box.x + box.width * (27.5 / 30), box.y + 10)
    await legend.getByText("Received 7", { exact: true }).waitFor()
    await page.mouse.move(0, 0)
    expect(await rowsOf(page, "Mail")).toEqual([
      ["7", "0", "0"],
      ["5", "2", "1"],
    ])
    // The period is part of the address.
    await page.getByRole("button", { name: "24 hours" }).click()
    await page.getByText("No activity in this period").waitFor()
    expect(page.url()).toMatch(/span=day$/)
    await page.getByRole("button", { name: "7 days" }).click()
    await legend.getByText("Received 12", { exact: true }).waitFor()
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("show success and latency of a Webhook and of a Tunnel", async () => {
    const { page, context } = await open(`/identities/${handle}/webhooks/${webhook}`)
    await chart(page, "Delivery attempts").waitFor()
    await page.getByText("Succeeded 38", { exact: true }).waitFor()
    expect(await rowsOf(page, "Delivery attempts")).toEqual([
      ["30", "0"],
      ["8", "2"],
    ])
    expect(await rowsOf(page, "Response time of your endpoint")).toEqual([
      ["128 ms", "128 ms"],
      ["256 ms", "256 ms"],
    ])
    // The mean of all attempts, not of the days.
    await page.getByText("Median 128 ms – 256 ms", { exact: true }).waitFor()
    await navigate(page, `/identities/${handle}/tunnel`)
    await chart(page, "Tunnel requests").waitFor()
    await page.getByText("Successful 45", { exact: true }).waitFor()
    expect(await rowsOf(page, "Tunnel requests")).toEqual([["45", "5"]])
    expect(await rowsOf(page, "Response time of the agent")).toEqual([["32 ms", "32 ms"]])
    await context.close()
  })

  it("show the use of limits of the account and of an Identity", async () => {
    const { page, context } = await open("/settings/limits")
    await chart(page, "Tunnel data transfer").waitFor()
    await page.getByText("To the agents 3.9 KiB", { exact: true }).waitFor()
    await page.locator(".legend").getByText("Limit").waitFor()
    await page.getByLabel("Show", { exact: true }).selectOption(handle)
    await chart(page, "Mailbox size").waitFor()
    await page.getByText("Largest size 120.6 KiB", { exact: true }).waitFor()
    await context.close()
  })

  it("show the activity of each Identity in the list", async () => {
    const { page, context } = await open("/identities")
    const row = page.getByRole("row").filter({ hasText: handle })
    await row.getByText(/^\d+ activities in 30 days$/).waitFor({ state: "attached" })
    const heights = [...(await row.locator(".sparkline path").getAttribute("d"))!.matchAll(/ ([\d.]+)/g)].map(
      ([, y]) => 19 - Number(y),
    )
    expect(heights).toHaveLength(30)
    // Messages, deliveries and Tunnel requests: 68 on one day, 37 on the next one. Today has the API calls of this test.
    expect(heights[27]! / heights[26]!).toBeCloseTo(37 / 68)
    expect(heights.slice(0, 26)).toEqual(Array.from({ length: 26 }, () => 0))
    await context.close()
  })

  it.each([
    { scheme: "light", width: 320, locale: "de" },
    { scheme: "dark", width: 1280, locale: "fr" },
  ] as const)("are accessible and fit in %j", async (look) => {
    await site.service.query((sql) => sql`update org set language = ${look.locale}`)
    const { page, context, seen } = await open("/identities", look)
    for (const to of [
      `/identities/${handle}`,
      `/identities/${handle}/webhooks/${webhook}`,
      `/identities/${handle}/tunnel`,
      "/settings/limits",
      "/identities",
    ]) {
      await navigate(page, to)
      await page
        .locator(to === "/identities" ? ".sparkline" : ".chart")
        .first()
        .waitFor()
      const tables = page.locator(".chart .link")
      for (let index = 0; index < (await tables.count()); index++) await tables.nth(index).click()
      expect(await violations(page), to).toEqual([])
      await expectNoSidewaysScroll(page, to)
    }
    expect(seen).toEqual({ errors: [], foreign: [] })
    await site.service.query((sql) => sql`update org set language = 'en'`)
    await context.close()
  })
})
