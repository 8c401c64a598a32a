/** Hostile names, messages and cards in a browser: they run no script, load nothing and break no layout. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { expectNoSidewaysScroll, heading, openContext, startConsole, type TestConsole } from "../harness/Console.ts"
import { send } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"
import { startTrap } from "../harness/Trap.ts"
import { has } from "../harness/Programs.ts"

/** Letters with many combining marks, which reach far out of their line. */
const zalgo = [..."mail"].map((letter) => letter + "\u0301\u0336\u0489\u0310".repeat(60)).join("")
/** One visible character that consists of many code points. */
const family = "👩‍👩‍👧‍👦".repeat(400)
const backwards = "\u202E\u2066invoice\u202Efdp.exe"
const unending = "x".repeat(90_000)
const subjects = [
  zalgo,
  family,
  backwards,
  unending,
  "{{constructor.constructor('heard(1)')()}} ${heard(1)} <img src=x onerror=heard(1)>",
  "\u0000\u0007\u001b[31mred\u2028\u2029line",
  "{count} {handle} %s __proto__",
]

describe.skipIf(!has("chromium"))("Content by strangers", () => {
  let site: TestConsole
  let trap: Awaited<ReturnType<typeof startTrap>>
  beforeAll(async () => {
    site = await startConsole()
    trap = await startTrap()
  })
  afterAll(async () => {
    await site?.stop()
    trap?.stop()
  })

  it("appears in lists as text on one line, also at 320 px", async () => {
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session)
    for (const subject of subjects) {
      await send(site.service.smtpPort, {
        from: { name: subject.slice(0, 4000), address: "stranger@example.org" },
        to: `${handle}@mail.localhost`,
        subject,
        text: subject,
      })
    }
    await eventually(
      () => call(site.service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
      ({ body }) => body.messages.length === subjects.length,
    )
    await call(site.service.base, "PATCH", `/api/identities/${handle}/card`, {
      token: session,
      body: {
        name: zalgo.slice(0, 190),
        description: family.slice(0, 900),
        provider: { organization: backwards, url: "https://x.example/\u202Efdp" },
      },
    })
    const { context, seen } = await openContext(site.browser, site.service.base, { width: 320 }, session)
    const page = await context.newPage()
    const heard: Array<unknown> = []
    await page.exposeFunction("heard", (what: unknown) => heard.push(what))
    for (const to of [
      "/",
      "/activity",
      `/identities/${handle}`,
      `/identities/${handle}/mail`,
      `/identities/${handle}/profile`,
    ]) {
      await page.goto(`${site.service.base}/console${to}`)
      await heading(page).first().waitFor()
      await page.locator(".skeleton").first().waitFor({ state: "detached" })
      await expectNoSidewaysScroll(page, to)
      // Overflowing marks cover nothing else: each row keeps its height.
      const heights = await page
        .locator("[data-list] > li")
        .evaluateAll((all: ReadonlyArray<any>) => all.map((one) => one.getBoundingClientRect().height))
      for (const height of heights) expect(height, to).toBeLessThan(140)
    }
    // The public profile shows the same text.
    await page.goto(`${site.service.base}/@${handle}`)
    await expectNoSidewaysScroll(page, "the profile")
    expect(heard).toEqual([])
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("stays in its frame if it is HTML", async () => {
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session)
    await send(site.service.smtpPort, {
      from: "stranger@example.org",
      to: `${handle}@mail.localhost`,
      subject: "Covers",
      html: `<style>
          html, body { position: fixed; inset: 0; z-index: 2147483647; width: 300vw }
          body::after { content: "Sign in again"; position: fixed; inset: 0; background: url(${trap.base}/after) }
          @font-face { font-family: f; src: url(${trap.base}/font) } * { font-family: f }
          a { position: fixed; inset: 0; display: block }
          input[value^=a] { background: url(${trap.base}/leak) }
        </style>
        <p id=seen>seen</p><a href="${trap.base}/kept">kept</a>
        <svg><foreignObject><body onload="parent.heard(1)"><script>parent.heard(1)</script></foreignObject><image href="${trap.base}/svg" /><use href="data:image/svg+xml,<svg id=x onload=heard(1)>#x" /></svg>
        <math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=parent.heard(1)&gt;"></table></mtext></math>
        <a id=data href="data:text/html,<script>opener.heard(1)</script>">data</a>
        <a id=blob href="blob:${trap.base}/x">blob</a><a id=view href="view-source:${trap.base}/">source</a>
        <a id=tab href="java&#9;script:heard(1)">tab</a><a id=vb href=" &#1; VBScript:x">vb</a>
        <embed src="${trap.base}/embed"><object type="text/html" data="data:text/html,<script>parent.heard(1)</script>"></object>
        <input autofocus onfocus=parent.heard(1) value=a><select><option>x</select><dialog open>Your session ended</dialog>
        <a href="${trap.base}/ping" ping="${trap.base}/pinged">p</a><img srcset="${trap.base}/set 1x" lowsrc="${trap.base}/low" dynsrc="${trap.base}/dyn">
        <body background="${trap.base}/background"><table background="${trap.base}/cell"><tr><td>x</table>
        <template shadowrootmode=open><script>heard(1)</script></template><noscript><p title="</noscript><img src=x onerror=parent.heard(1)>"></noscript>`,
    })
    const listed = await eventually(
      () => call(site.service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
      ({ body }) => body.messages.length === 1,
    )
    const { context } = await openContext(site.browser, site.service.base, {}, session)
    const page = await context.newPage()
    const heard: Array<unknown> = []
    await page.exposeFunction("heard", (what: unknown) => heard.push(what))
    await page.goto(`${site.service.base}/console/identities/${handle}/mail/${listed.body.messages[0].id}`)
    await page.getByRole("button", { name: "HTML" }).click()
    const frame = page.frameLocator("iframe")
    await frame.locator("#seen").waitFor()
    const links = await frame
      .locator("a[href]")
      .evaluateAll((all: ReadonlyArray<any>) => all.map((one) => new URL(one.href).pathname))
    expect([...new Set(links)]).toEqual(["/console/leave"])
    expect(
      await frame
        .locator(
          "input, select, button, dialog, object, embed, svg, math, script, form, base, meta[http-equiv=refresh]",
        )
        .count(),
    ).toBe(0)
    // The controls around the frame stay usable.
    const box = (await page.locator("iframe").boundingBox())!
    const main = (await page.getByRole("main").boundingBox())!
    expect(box.width).toBeLessThanOrEqual(main.width)
    await page.getByRole("button", { name: "Headers" }).click()
    await page.getByText("Content-Type").first().waitFor()
    await expectNoSidewaysScroll(page, "a message that covers")
    expect(trap.asked).toEqual([])
    expect(heard).toEqual([])
    await context.close()
  })
})
