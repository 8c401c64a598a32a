/** The consent page in a real browser, with its rules for forms, redirects and frames. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { closeContexts, openBrowser } from "../harness/Browser.ts"
import { makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { authorizationUrl, challengeOf, registerClient, verifierOf } from "./Consent.ts"
import { has } from "../harness/Programs.ts"

describe.skipIf(!has("chromium"))("the consent page", () => {
  let service: TestService
  let chromium: Browser
  let app: Server
  let other: Server
  const portOf = (server: Server) => (server.address() as AddressInfo).port
  const listen = (server: Server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  beforeAll(async () => {
    service = await sharedService()
    chromium = await openBrowser()
    other = createServer((_, response) => response.end("the app has it"))
    await listen(other)
    // A hosted app that forwards to its local program, as claude.ai does.
    app = createServer((request, response) =>
      response.writeHead(307, { location: `http://127.0.0.1:${portOf(other)}${request.url}` }).end(),
    )
    await listen(app)
  })
  afterAll(async () => {
    await closeContexts()
    app?.close()
    other?.close()
  })

  /** A signed-in browser at the consent page of an app. */
  const atConsentPage = async () => {
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session, newHandle("ada"))
    const redirect = `http://127.0.0.1:${portOf(app)}/callback`
    const client = (await registerClient(service.base, [redirect], "Clawed")).body["client_id"] as string
    const url = authorizationUrl(service.base, { client, redirect, challenge: challengeOf(verifierOf()) }).href
    const context = await chromium.newContext()
    await context.addCookies([
      { name: "svc_session", value: session, url: service.base, httpOnly: true, sameSite: "Lax" },
    ])
    const page = await context.newPage()
    const complaints: Array<string> = []
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()))
    await page.goto(url)
    return { page, url, handle, complaints, context }
  }

  const arrived = async (page: Page) => {
    await page.getByText("the app has it").waitFor()
    return new URL(page.url()).searchParams
  }

  it("connects an app over two redirects without blocked content", async () => {
    const { page, handle, complaints } = await atConsentPage()
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Connect Clawed to your agents?")
    expect(await page.getByLabel(`Act as @${handle} only`).isChecked()).toBe(true)
    expect(await page.getByLabel("Read only").isChecked()).toBe(true)
    await page.getByRole("button", { name: "Allow" }).click()
    const answer = await arrived(page)
    expect(answer.get("code")).toMatch(/^svc_oac_/)
    expect([answer.get("state"), answer.get("iss")]).toEqual(["s-1", service.base])
    expect(complaints.filter((text) => /security policy/i.test(text))).toEqual([])
  })

  it("denies an app over two redirects", async () => {
    const { page } = await atConsentPage()
    await page.getByRole("button", { name: "Deny" }).click()
    expect((await arrived(page)).get("error")).toBe("access_denied")
  })

  it("cannot be framed", async () => {
    const { url, context } = await atConsentPage()
    const frame = createServer((_, response) =>
      response
        .writeHead(200, { "content-type": "text/html" })
        .end(`<iframe src="${url.replaceAll("&", "&amp;")}"></iframe>`),
    )
    await listen(frame)
    const page = await context.newPage()
    const refused = page.waitForEvent("console", { predicate: (message) => /frame-ancestors/i.test(message.text()) })
    await page.goto(`http://127.0.0.1:${portOf(frame)}/`)
    await refused
    frame.close()
  })
})
