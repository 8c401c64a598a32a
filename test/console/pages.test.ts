/** Every page of the console with and without data, in several looks: no accessibility violation, error or overflow. */
import { globSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import {
  expectNoSidewaysScroll,
  navigate,
  type Look,
  openContext,
  settled,
  startConsole,
  type TestConsole,
  violations,
} from "../harness/Console.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually } from "../harness/Service.ts"
import { root } from "../house/Imports.ts"
import { has } from "../harness/Programs.ts"

/** The paths of `Routes.ts` with their parameters filled in; `hasMember` marks a page about one item of a list. */
const paths = (places: Readonly<Record<string, string>>) =>
  [...readFileSync(path.join(root, "packages/console/src/Routes.ts"), "utf8").matchAll(/page\("([^"]+)"/g)]
    .map(([, pattern]) => ({
      hasMember: pattern!.endsWith("/:id"),
      to: pattern!
        .replace(/\/approvals\/:id$/, `/approvals/${places["waiting"]}`)
        .replace(/\/mail\/:id$/, `/mail/${places["message"]}`)
        .replace(/\/mail\/compose$/, `/mail/compose?reply=${places["message"]}&all=1`)
        .replace(/\/threads\/:id$/, `/threads/${places["thread"]}`)
        .replace(/\/webhooks\/:id$/, `/webhooks/${places["webhook"]}`)
        .replace(/^\/activity\/:id$/, `/activity/${places["event"]}`)
        .replace(/:handle/, places["handle"]!)
        .replace(/:platform/, "mastodon")
        .replace(/:name$/, places["secret"] ?? "token"),
    }))
    // The callback redirects; test/console/connectors.test.ts covers it.
    .filter(({ to }) => to !== "/connectors/callback")

const looks: ReadonlyArray<Look> = [
  { width: 1280, scheme: "light", locale: "en" },
  { width: 320, scheme: "dark", locale: "de" },
]

describe.skipIf(!has("chromium"))("Every page", { timeout: 600_000 }, () => {
  let site: TestConsole
  let receiver: Awaited<ReturnType<typeof startReceiver>>
  let session: string
  let places: Record<string, string>
  beforeAll(async () => {
    site = await startConsole()
    receiver = await startReceiver((response) => {
      response.statusCode = 503
      response.end("out of order ".repeat(60))
    })
    session = (await signUp(site.service.base)).session
    const { handle, secrets } = await makeIdentity(
      site.service.base,
      session,
      "the-longest-name-that-an-agent-may-ever",
    )
    const at = `/api/identities/${handle}`
    const token = session
    const webhook = await call(site.service.base, "POST", `${at}/webhooks`, {
      token,
      body: { url: `${receiver.url}?${"q".repeat(200)}`, event_types: ["*"] },
    })
    const long = "Unbreakable".repeat(30)
    await call(site.service.base, "PATCH", `${at}/card`, {
      token,
      body: {
        name: long.slice(0, 200),
        description: long,
        skills: [{ id: "s", name: long.slice(0, 100), description: long }],
      },
    })
    await call(site.service.base, "PUT", "/api/vault/secrets/token", {
      token,
      body: { value: "s3cret", description: "A token" },
    })
    await send(site.service.smtpPort, {
      from: `${"Name".repeat(40)} <somebody@example.org>`,
      to: `${handle}+${"tag".repeat(15)}@mail.localhost`,
      subject: long,
      text: `${long}\n\n${long}`,
      attachments: [{ filename: `${long}.txt`, content: "x" }],
    })
    const found = await eventually(
      () => call(site.service.base, "GET", `${at}/messages`, { token }),
      ({ body }) => body.messages.length === 1,
    )
    // A draft, a message that awaits approval, and a suppressed recipient.
    await call(site.service.base, "POST", `${at}/drafts`, {
      token,
      body: { to: [`${"a".repeat(60)}@example.org`], text: long },
    })
    await call(site.service.base, "PATCH", `${at}/messages/${found.body.messages[0].id}`, {
      token,
      body: { flagged: true, labels: ["l".repeat(100), "done"] },
    })
    await call(site.service.base, "PATCH", `${at}/mail`, { token, body: { approval: "required" } })
    await call(site.service.base, "POST", `${at}/allowed-recipients`, {
      token,
      body: { address: `${"b".repeat(60)}@example.org` },
    })
    const waiting = await call(site.service.base, "POST", `${at}/messages/send`, {
      token: secrets.identity_key,
      body: { to: [`${"b".repeat(60)}@example.org`], subject: long, text: long },
    })
    await site.service.query(
      (sql) => sql`update allowed_recipient set suppressed_at = now(), suppression = ${long} where address like 'b%'`,
    )
    const events = await eventually(
      () => call(site.service.base, "GET", "/api/events?type=email.received", { token }),
      ({ body }) => body.events.length > 0,
    )
    places = {
      handle,
      webhook: webhook.body.id,
      message: found.body.messages[0].id,
      waiting: waiting.body.id,
      thread: found.body.messages[0].thread_id,
      event: events.body.events[0].id,
    }
  })
  afterAll(async () => {
    await site?.stop()
    await receiver?.stop()
  })

  it.each(looks)("has no accessibility violation, error or overflow with data in %j", async (look) => {
    await setLanguage(look)
    const { context, seen } = await openContext(site.browser, site.service.base, look, session)
    const page = await context.newPage()
    for (const { to, hasMember } of paths(places)) {
      // Loaded by its address once; test/console/walks.test.ts does so for the other pages.
      if ((look === looks[0] && hasMember) || page.url() === "about:blank") {
        await page.goto(`${site.service.base}/console${to}`)
        await settled(page)
      } else await navigate(page, to)
      expect(await violations(page), to).toEqual([])
      await expectNoSidewaysScroll(page, to)
      expect(await page.getByRole("heading", { level: 1 }).count(), to).toBe(1)
    }
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it.each(looks.slice(-1))("has no accessibility violation, error or overflow without data in %j", async (look) => {
    const { context, seen } = await openContext(
      site.browser,
      site.service.base,
      look,
      (await signUp(site.service.base)).session,
    )
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console/keys`)
    await settled(page)
    for (const to of ["/", "/identities", "/identities/new", "/activity", "/nowhere"]) {
      await navigate(page, to)
      expect(await violations(page), to).toEqual([])
      await expectNoSidewaysScroll(page, to)
    }
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it.each([...looks, { width: 1280, scheme: "dark", locale: "fr" } as const])(
    "shows an accessible sign-in page in %j",
    async (look) => {
      const { context, seen } = await openContext(site.browser, site.service.base, look)
      const page = await context.newPage()
      await page.goto(`${site.service.base}/console/activity`)
      await settled(page)
      expect(await page.evaluate("document.documentElement.lang")).toBe(look.locale)
      expect(await violations(page)).toEqual([])
      await expectNoSidewaysScroll(page, "the way in")
      expect(seen).toEqual({ errors: [], foreign: [] })
      await context.close()
    },
  )

  it("can be reached by keyboard", async () => {
    await setLanguage({})
    const { context } = await openContext(site.browser, site.service.base, {}, session)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console/`)
    await settled(page)
    // The palette is loaded when the page is idle, or when it is opened for the first time.
    await page.keyboard.press("Control+k")
    await page.getByRole("combobox").waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("combobox").waitFor({ state: "detached" })
    // Once it is loaded, it has the focus before the next frame, so that the next key is typed into it.
    const focused = await page.evaluate(
      `dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }))
       Promise.resolve().then(() => {}).then(() => document.activeElement.role)`,
    )
    expect(focused).toBe("combobox")
    await page.keyboard.type("webhooks of")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/webhooks")
    await page.keyboard.press("g")
    await page.keyboard.press("a")
    await page.waitForURL("**/activity")
    await page.getByRole("heading", { name: "Activity" }).waitFor()
    await page.locator("[data-list]").getByRole("link", { name: "received an email" }).waitFor()
    // The heading has the focus after navigation; `j` moves to the list and Enter opens an item.
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/activity/evt_*")
    await page.keyboard.press("?")
    await page.getByRole("dialog").getByText("Open command palette").waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "detached" })
    await context.close()
  })

  const setLanguage = async ({ locale }: Look) => {
    await site.service.query((sql) => sql`update org set language = ${locale ?? "en"}`)
  }
})

describe("The sources of the console", () => {
  it("create no markup from text, which the content security policy forbids", () => {
    for (const file of globSync("packages/console/src/**/*.{ts,tsx}", { cwd: root })) {
      expect(readFileSync(path.join(root, file), "utf8"), file).not.toMatch(
        /innerHTML|insertAdjacentHTML|srcdoc|document\.write|eval\(/,
      )
    }
  })
})
