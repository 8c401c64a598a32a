/** Drafts of the composer: from the first letter on, and uploads that show their progress and can be cancelled. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { violations } from "../harness/Console.ts"
import { draftKept, startConsoleMail } from "../harness/ConsoleMail.ts"
import { has } from "../harness/Programs.ts"
import { eventually } from "../harness/Service.ts"

describe.skipIf(!has("chromium"))("A draft in the composer", () => {
  let mail: Awaited<ReturnType<typeof startConsoleMail>>
  beforeAll(async () => {
    mail = await startConsoleMail()
  })
  afterAll(() => mail?.stop())

  it("makes a reply a draft with its first letter, and no draft remains of an unchanged reply", async () => {
    const { handle } = await mail.agent()
    const { id } = await mail.arrives(handle, { subject: "Question", text: "Well?" })
    const drafts = async () => (await mail.api("GET", `${handle}/drafts`)).body.drafts
    const { context, page } = await mail.open(`${handle}/mail/compose?reply=${id}`)
    const text = page.getByLabel("Text", { exact: true })
    await text.waitFor()
    await page.getByRole("link", { name: "All mail" }).click()
    await page.getByRole("link", { name: /Question/ }).waitFor()
    expect(await drafts()).toEqual([])
    await page.goBack()
    // The clock is frozen: nothing is saved by time.
    await text.waitFor()
    await page.clock.install()
    await page.clock.pauseAt(new Date(Date.now() + 60_000))
    await text.pressSequentially("Y")
    await page.clock.runFor(1)
    await eventually(drafts, (all) => all.length === 1)
    const [{ id: draft }] = await drafts()
    expect((await mail.api("GET", `${handle}/drafts/${draft}`)).body).toMatchObject({
      reply_to_message: id,
      to: ["grace@example.org"],
      subject: "Re: Question",
      text: expect.stringMatching(/^Y\s+On .* wrote:\n> Well\?/),
    })
    await context.close()
  })

  it("uploads attachments with their progress, and leaves them out if the upload is cancelled", async () => {
    const { handle } = await mail.agent()
    const { context, page, seen } = await mail.open(`${handle}/mail/compose`)
    const files = page.getByRole("list", { name: "Attachments" })
    const attach = (name: string, size: number) =>
      page.getByLabel("Attach files").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.alloc(size, "a") })
    await attach("small.txt", 10)
    await draftKept(page)
    const cdp = await context.newCDPSession(page)
    const slow = (bytesPerSecond: number) =>
      cdp.send("Network.emulateNetworkConditions", {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: bytesPerSecond,
      })
    await slow(300_000)
    await attach("large.txt", 3_000_000)
    await files.getByText("large.txt").waitFor()
    // Saves without waiting for a pause.
    await page.evaluate(
      `Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`,
    )
    const progress = page.getByLabel("Uploading attachments")
    await eventually(
      () => progress.evaluate((bar: any) => bar.value as number),
      (share) => share > 0 && share < 1,
    )
    expect(await violations(page)).toEqual([])
    const cancelled = page.waitForEvent("requestfailed", (request) => request.method() === "PUT")
    await page.getByRole("button", { name: "Cancel upload" }).click()
    await cancelled
    await files.getByText("large.txt").waitFor({ state: "detached" })
    await draftKept(page)
    await slow(-1)
    const [draft] = (await mail.api("GET", `${handle}/drafts`)).body.drafts
    expect(draft.attachments).toMatchObject([{ filename: "small.txt" }])
    await attach("large.txt", 3_000_000)
    await eventually(
      () => mail.api("GET", `${handle}/drafts`),
      ({ body }) => body.drafts[0].attachments.length === 2,
      30,
    )
    expect(seen.foreign).toEqual([])
    await context.close()
  })
})
