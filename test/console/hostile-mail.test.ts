/** Hostile mail in a browser: it runs no script, loads nothing and sends nothing. */
import { allowsDark, mailDocument } from "@svc/api/console/MailDocument"
import { Effect } from "effect"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { expectNoSidewaysScroll, openContext, startConsole, type TestConsole } from "../harness/Console.ts"
import { send } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"
import { startTrap } from "../harness/Trap.ts"
import { has } from "../harness/Programs.ts"

const pictures = new Map([["logo@x", "data:image/png;base64,AAAA"]])
const written = (html: string, images = false) =>
  Effect.runPromise(
    mailDocument(html, {
      remote: images ? (url) => `/images/${encodeURIComponent(url)}` : undefined,
      pictures,
      leave: (to) => `/leave?${encodeURIComponent(to)}`,
    }),
  )
const body = async (html: string, images = false) => /<body>(.*)<\/body>/s.exec(await written(html, images))![1]!

describe("Sanitized HTML of a message", () => {
  it.each([
    [`<script>steal()</script>kept`, "kept"],
    [`<p onclick="x()" style="color:red">a</p>`, `<p style="color:red">a</p>`],
    [`<a href="javascript:alert(1)">a</a>`, "<a>a</a>"],
    [`<a href="data:text/html,x">a</a>`, "<a>a</a>"],
    [
      `<a href=" https://x.example/ ">a</a>`,
      `<a href="/leave?https%3A%2F%2Fx.example%2F" target="_blank" rel="noopener noreferrer">a</a>`,
    ],
    [`<form action="https://x"><input name=a><button>go</button></form>`, "go"],
    [`<meta http-equiv=refresh content="0;url=https://x"><base href="https://x">`, ""],
    [`<svg onload=x><a href="https://x"><script>x</script></svg>kept`, "kept"],
    [`<style>p{color:red}</style><p>a</p>`, "<style>p{color:red}</style><p>a</p>"],
    [`<style></style><img src=x onerror=y></style>`, "<style></style><img></style>"],
    [`<img src="https://t.example/pixel.gif">`, "<img>"],
    [
      `<img src="CID:logo%40x"><img src="cid:other"><img src="cid:%E0%A4%A">`,
      `<img src="data:image/png;base64,AAAA"><img><img>`,
    ],
    [`<p title='"><script>x</script>'>a</p>`, `<p title="&quot;&gt;&lt;script&gt;x&lt;/script&gt;">a</p>`],
    [`&lt;script&gt;x`, "&lt;script&gt;x"],
  ])("turns %s into %s", async (html, expected) => expect(await body(html)).toBe(expected))

  it.each([
    [`<meta name="color-scheme" content="light dark"><p>a`, true],
    [`<style>@media (prefers-color-scheme: dark) { p { color: white } }</style>`, true],
    [`<style>:root { color-scheme: light }</style><p>dark`, false],
    [`<p>a</p>`, false],
  ])("has dark colors only if its author allows them: %s", (html, expected) => expect(allowsDark(html)).toBe(expected))

  it("contains remote images only on request", async () =>
    expect(
      await body(`<img src="https://t.example/p.gif"><img src="http://t.example/?a&b"><img src="//x">`, true),
    ).toBe(
      `<img src="/images/https%3A%2F%2Ft.example%2Fp.gif"><img src="/images/http%3A%2F%2Ft.example%2F%3Fa%26b"><img>`,
    ))

  it("repeats embedded images only up to a size limit", async () => {
    const large = new Map([["a", `data:image/png;base64,${"A".repeat(4 * 1024 * 1024)}`]])
    const html = await Effect.runPromise(
      mailDocument(`<img src="cid:a">`.repeat(50), { remote: undefined, pictures: large, leave: String }),
    )
    expect(html.length).toBeLessThan(17 * 1024 * 1024)
  })

  it("contains exactly as many links, remote images and attributes as its limits", async () => {
    const count = async (html: string, what: RegExp) => ((await body(html, true)).match(what) ?? []).length
    const image = (length: number) => `<img src="https://t.example/${"a".repeat(length - 18)}">`
    expect(await count(`<a href="https://x.example/">x</a>`.repeat(1001), /href=/g)).toBe(1000)
    expect(await count(image(30).repeat(201), /src=/g)).toBe(200)
    expect(await count(`<img src="data:image/png;base64,AAAA">`.repeat(201) + image(30), /src=/g)).toBe(202)
    expect([await count(image(4000), /src=/g), await count(image(4001), /src=/g)]).toEqual([1, 0])
    const link = (length: number) => `<a href="https://x.example/${"a".repeat(length - 18)}">x</a>`
    expect([await count(link(4000), /href=/g), await count(link(4001), /href=/g)]).toEqual([1, 0])
    const others = (number: number) => Array.from({ length: number }, (_, n) => `x${n}=1`).join(" ")
    expect(await count(`<p ${others(59)} title=a>`, /title=/g)).toBe(1)
    expect(await count(`<p ${others(60)} title=a>`, /title=/g)).toBe(0)
    expect(await body("a".repeat(1_000_000))).toBe("a".repeat(1_000_000))
    expect(await body(`${"a".repeat(1_000_000)}b`)).toBe(`${"a".repeat(1_000_000)}<hr><p>…</p>`)
  })

  it("is generated without blocking the event loop", async () => {
    // Counts how often the event loop gets a turn.
    for (const html of [
      "<b>".repeat(150_000) + "</i>".repeat(130_000),
      `<a href="https://x.example/">`.repeat(35_000),
    ]) {
      let turns = 0
      const timer = setInterval(() => turns++, 0)
      await written(html)
      clearInterval(timer)
      expect(turns).toBeGreaterThan(10)
    }
  })
})

describe.skipIf(!has("chromium"))("A hostile message", () => {
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

  it("runs no script and loads nothing remote", async () => {
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session)
    await send(site.service.smtpPort, {
      from: `"Bank \u202Egnp.exe <script>" <no-reply@bank.example>`,
      to: `${handle}@mail.localhost`,
      subject: `${"W".repeat(300)} \u202Ereversed <img src=x onerror=alert(1)>`,
      html: `<style>p{color:rgb(1,2,3)} @import url("${trap.base}/import")</style><p style="background:url(${trap.base}/style)">hello</p>
<script>parent.postMessage("ran","*");fetch("${trap.base}/fetch")</script><img src="${trap.base}/pixel.gif"><img src=x onerror="parent.postMessage('ran','*')">
<svg onload="parent.postMessage('ran','*')"></svg><iframe src="${trap.base}/frame"></iframe><object data="${trap.base}/object"></object>
<meta http-equiv=refresh content="0;url=${trap.base}/refresh"><link rel=stylesheet href="${trap.base}/sheet"><video src="${trap.base}/video"></video>
<form action="${trap.base}/form"><button id=b>go</button></form><base href="${trap.base}/"><a href="https://xn--80ak6aa92e.example/pay">https://bank.example</a>
<div style="position:fixed;inset:0;z-index:9999">cover</div>`,
      attachments: [{ filename: "../../etc/pass\u202Egnp.exe", content: "x" }],
    })
    const listed = await eventually(
      () => call(site.service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
      ({ body }) => body.messages.length === 1,
    )
    const { context } = await openContext(site.browser, site.service.base, { width: 390 }, session)
    const page = await context.newPage()
    const heard: Array<string> = []
    await page.exposeFunction("heard", (what: string) => heard.push(what))
    await page.addInitScript(`addEventListener("message", ({ data }) => globalThis.heard(String(data)))`)
    await page.goto(`${site.service.base}/console/identities/${handle}/mail/${listed.body.messages[0].id}`)
    await page.getByRole("button", { name: "HTML" }).click()
    const frame = page.frameLocator("iframe")
    await frame.getByText("hello").waitFor()
    expect(
      await frame
        .locator("p")
        .first()
        .evaluate((p: any) => (globalThis as any).getComputedStyle(p).color),
    ).toBe("rgb(1, 2, 3)")
    expect(trap.asked).toEqual([])
    await page.getByRole("button", { name: "Show images" }).click()
    // The service requests the image in place of the reader.
    await eventually(
      () => Promise.resolve(trap.asked),
      (asked) => asked.includes("/pixel.gif"),
    )
    await frame.getByText("hello").waitFor()
    // The sandbox of the frame and that of its document forbid scripts.
    expect(await page.locator("iframe").getAttribute("sandbox")).not.toContain("allow-scripts")
    await page.getByRole("button", { name: "Headers" }).click()
    await page.getByText("Content-Type").first().waitFor()
    await expectNoSidewaysScroll(page, "a hostile message")

    // Links lead to a page that names the host in both spellings first.
    await page.getByRole("button", { name: "HTML" }).click()
    const [leaving] = await Promise.all([
      context.waitForEvent("page"),
      frame
        .getByRole("link")
        .first()
        .evaluate((link: any) => link.click()),
    ])
    await leaving.waitForLoadState()
    expect(leaving.url()).toContain(`${site.service.base}/console/leave?to=`)
    expect(await leaving.locator("pre").innerText()).toContain("xn--80ak6aa92e.example")
    expect(await leaving.locator("main").innerText()).toContain("other alphabets")

    // The policy may block requests; none was sent but for the image.
    expect(trap.asked).toEqual(["/pixel.gif"])
    expect(heard).toEqual([])
    await context.close()
  })

  it("shows its embedded images without script or remote requests", async () => {
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session)
    const picture = Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC",
      "base64",
    )
    const script = `<svg xmlns="http://www.w3.org/2000/svg" onload="parent.postMessage('ran','*')"><image href="${trap.base}/svg"/></svg>`
    await send(site.service.smtpPort, {
      from: "news@shop.example",
      to: `${handle}@mail.localhost`,
      subject: "A picture",
      html: `<p>seen</p><img id=a src="cid:logo@shop"><img id=b src="cid:drawn@shop"><img id=c src="cid:absent@shop">`,
      attachments: [
        { filename: "logo.png", content: picture, cid: "logo@shop" },
        { filename: "drawn.svg", content: script, contentType: "image/svg+xml", cid: "drawn@shop" },
      ],
    })
    const { body } = await eventually(
      () => call(site.service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
      ({ body }) => body.messages.length === 1,
    )
    const { context, seen } = await openContext(site.browser, site.service.base, {}, session)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console/identities/${handle}/mail/${body.messages[0].id}`)
    await page.getByRole("button", { name: "HTML" }).click()
    const frame = page.frameLocator("iframe")
    await frame.getByText("seen").waitFor()
    const widths = () =>
      frame.locator("img").evaluateAll((all: ReadonlyArray<any>) => all.map(({ naturalWidth }) => naturalWidth))
    await eventually(widths, ([first]) => first === 10)
    expect(await widths()).toEqual([10, 0, 0])
    expect(seen).toEqual({ errors: [], foreign: [] })
    await context.close()
  })

  it("has remote images only on request, fetched by the service without the reader's address, browser and cookies", async () => {
    const picture = Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC",
      "base64",
    )
    const asked: Array<IncomingMessage> = []
    const sender = createServer((request, response) => {
      asked.push(request)
      const { pathname } = new URL(request.url!, "http://x")
      if (pathname === "/moved.png")
        return response.writeHead(302, { location: "/open.png", "set-cookie": "a=1" }).end()
      if (pathname === "/page.png") return response.end("<script>parent.postMessage('ran','*')</script>")
      if (pathname === "/large.png") return response.end(Buffer.concat([picture, Buffer.alloc(6 * 1024 * 1024)]))
      response.writeHead(200, { "content-type": "text/html" }).end(picture)
    })
    await new Promise<void>((resolve) => sender.listen(0, "127.0.0.1", resolve))
    const base = `http://127.0.0.1:${(sender.address() as AddressInfo).port}`
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session)
    await send(site.service.smtpPort, {
      from: "news@shop.example",
      to: `${handle}@mail.localhost`,
      subject: "Offers",
      html: `<p>seen</p>${["open", "moved", "page", "large"].map((name) => `<img src="${base}/${name}.png?reader=ada&amp;x">`).join("")}
<p style="background:url(/console/mail/x/y/images/z)">x</p>`,
    })
    const { body } = await eventually(
      () => call(site.service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
      ({ body }) => body.messages.length === 1,
    )
    const { context, seen } = await openContext(site.browser, site.service.base, {}, session)
    const page = await context.newPage()
    await page.goto(`${site.service.base}/console/identities/${handle}/mail/${body.messages[0].id}`)
    await page.getByRole("button", { name: "HTML" }).click()
    const frame = page.frameLocator("iframe")
    await frame.getByText("seen").waitFor()
    expect(asked).toHaveLength(0)
    const answers: Array<string | undefined> = []
    page.on("response", (response) => {
      if (response.url().includes("/images/")) answers.push(response.headers()["cache-control"])
    })
    await page.getByRole("button", { name: "Show images" }).click()
    const widths = () =>
      frame
        .locator("img")
        .evaluateAll((all: ReadonlyArray<any>) => all.map(({ complete, naturalWidth }) => complete && naturalWidth))
    await eventually(widths, (all) => all.length === 4 && !all.includes(false))
    expect(await widths()).toEqual([10, 10, 0, 0])
    expect(answers.toSorted()).toEqual(["no-store", "no-store", "private, max-age=86400", "private, max-age=86400"])
    expect(asked.length).toBeGreaterThanOrEqual(5)
    for (const { headers } of asked) {
      expect(headers["user-agent"]).toBe("Mozilla/5.0 (compatible; mail image proxy)")
      for (const name of ["cookie", "referer", "accept-language", "x-forwarded-for", "sec-fetch-site"])
        expect(headers[name]).toBeUndefined()
    }
    // Only the console's frame of this account gets the image.
    const path = await frame.locator("img").first().getAttribute("src")
    const own = { cookie: `svc_session=${session}`, "sec-fetch-site": "same-origin", "sec-fetch-dest": "image" }
    const status = async (headers: Record<string, string>, at = path) =>
      (await fetch(`${site.service.base}${at}`, { headers })).status
    expect(await status(own)).toBe(200)
    expect(await status({ ...own, "sec-fetch-dest": "document" })).toBe(404)
    expect(await status({ ...own, "sec-fetch-site": "cross-site" })).toBe(404)
    expect(await status({ ...own, cookie: `svc_session=${(await signUp(site.service.base)).session}` })).toBe(404)
    expect(await status(own, `${path}x`)).toBe(404)
    expect(seen.foreign).toEqual([])
    await context.close()
    sender.close()
  })

  it("is only served to the console's frame", async () => {
    const { session } = await signUp(site.service.base)
    const { handle } = await makeIdentity(site.service.base, session)
    await send(site.service.smtpPort, {
      from: "a@example.org",
      to: `${handle}@mail.localhost`,
      subject: "s",
      html: "<p>x</p>",
    })
    const listed = await eventually(
      () => call(site.service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
      ({ body }) => body.messages.length === 1,
    )
    const path = `/console/mail/${handle}/${listed.body.messages[0].id}/body`
    const own = { cookie: `svc_session=${session}`, "sec-fetch-site": "same-origin", "sec-fetch-dest": "iframe" }
    const status = async (headers: Record<string, string>) =>
      (await fetch(`${site.service.base}${path}`, { headers })).status
    const framed = await fetch(`${site.service.base}${path}`, { headers: own })
    expect([framed.status, framed.headers.get("cache-control")]).toEqual([200, "no-store"])
    expect(framed.headers.get("content-security-policy")).toMatch(
      /default-src 'none'.*sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox$/,
    )
    expect(await status({ ...own, "sec-fetch-dest": "document" })).toBe(403)
    expect(await status({ ...own, "sec-fetch-site": "same-site" })).toBe(403)
    expect(await status({ ...own, cookie: `svc_session=${(await signUp(site.service.base)).session}` })).toBe(404)
    expect(
      (
        await fetch(
          `${site.service.base}/console/leave?to=${Buffer.from("https://evil.example/").toString("base64url")}`,
        )
      ).status,
    ).toBe(404)
  })
})
