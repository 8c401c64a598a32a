/** Connectors in the console, against a server with Mastodon's API and a consent page. */
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type MastodonServer, startServer } from "../connectors/mastodon/Server.ts"
import type { Account } from "../connectors/mastodon/World.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { heading, openContext, startConsole, type TestConsole } from "../harness/Console.ts"
import { eventually } from "../harness/Service.ts"
import { has } from "../harness/Programs.ts"

describe.skipIf(!has("chromium"))("Connectors in the console", () => {
  let site: TestConsole
  let server: MastodonServer
  let owner: Awaited<ReturnType<typeof signUp>>
  /** The account that the consent page asks. */
  let account: Account
  beforeAll(async () => {
    site = await startConsole()
    server = await startServer({
      // The consent page of the server.
      instead: (request, response) => {
        const url = new URL(request.url ?? "/", server.base)
        if (url.pathname === "/favicon.ico") return (response.writeHead(204).end(), true)
        if (url.pathname !== "/oauth/authorize") return false
        const redirect = new URL(url.searchParams.get("redirect_uri")!)
        redirect.searchParams.set("error", "access_denied")
        redirect.searchParams.set("error_description", "The resource owner <b>denied</b> the request.")
        redirect.searchParams.set("state", url.searchParams.get("state")!)
        response.writeHead(200, { "content-type": "text/html" })
        const href = (to: string) => to.replaceAll("&", "&amp;")
        response.end(
          `<h1>Authorize?</h1><a href="${href(server.allow(url.href, account))}">Authorize</a> <a href="${href(redirect.href)}">Deny</a>`,
        )
        return true
      },
    })
    owner = await signUp(site.service.base)
  })
  afterAll(async () => {
    await server?.stop()
    await site?.stop()
  })

  const api = (method: string, path: string, body?: unknown) =>
    call(site.service.base, method, path, { token: owner.session, ...(body === undefined ? {} : { body }) })
  const open = async () => {
    const { handle } = await makeIdentity(site.service.base, owner.session)
    account = server.world.join(`bot${handle}`)
    const { context, seen } = await openContext(site.browser, site.service.base, {}, owner.session)
    const page = await context.newPage()
    const at = `/api/identities/${handle}/connectors`
    return { handle, page, context, seen, at }
  }
  /** Starts to connect, up to the consent page. */
  const beginAt = async (page: Page, handle: string) => {
    await page.goto(`${site.service.base}/console/identities/${handle}/connectors`)
    await page.getByRole("link", { name: "Connect Mastodon" }).click()
    await page.getByLabel("Server or account").fill(server.base)
    await page.getByRole("button", { name: "Connect", exact: true }).click()
    // The rules of the server.
    await page.getByText("Say that you are a machine").waitFor()
    await page.getByRole("button", { name: /^Continue to 127/ }).click()
    await page.getByRole("heading", { name: "Authorize?" }).waitFor()
  }
  const connect = async (page: Page, handle: string) => {
    await beginAt(page, handle)
    await page.getByRole("link", { name: "Authorize" }).click()
    await page.waitForURL(`**/console/identities/${handle}/connectors/mastodon`)
    await page.getByText("The profile says that the account is automated").waitFor()
  }

  it("connect by OAuth, post, show mentions, pause and disconnect", async () => {
    const { handle, page, context, seen, at } = await open()
    await connect(page, handle)
    expect(account.bot).toBe(true)
    expect(page.url()).not.toContain("code=")
    expect((await api("GET", `${at}/mastodon`)).body).toMatchObject({ status: "connected", disclosed: true })

    await page.getByLabel("New post").fill("Hello from the console")
    await page.getByRole("button", { name: "Post", exact: true }).click()
    await page.getByRole("main").getByText("Hello from the console").waitFor()
    server.world.publish(server.world.join(`tom${handle}`), `@${account.acct} <b>are you there?</b>`)
    await page.getByRole("button", { name: "Mentions & replies" }).click()
    await page.getByText("<b>are you there?</b>").waitFor()

    await page.getByRole("button", { name: "Pause" }).click()
    await page.getByText("Paused. Nothing is posted").waitFor()
    expect((await api("GET", `${at}/mastodon`)).body.status).toBe("paused")
    await page.getByRole("button", { name: "Resume" }).click()
    await page.getByText("Paused. Nothing is posted").waitFor({ state: "detached" })

    // Pause all connectors from the list.
    await page.getByRole("link", { name: "Connectors" }).click()
    await page.getByRole("button", { name: "Pause all" }).click()
    await page.getByText("All connectors of this Identity are paused").waitFor()
    await eventually(
      () => api("GET", at),
      ({ body }) => body.paused === true,
    )
    await page.getByRole("button", { name: "Resume all" }).click()
    await page.getByText("All connectors of this Identity are paused").waitFor({ state: "detached" })

    await page.getByRole("link", { name: "Mastodon", exact: true }).click()
    await page.getByRole("button", { name: "Disconnect" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Disconnect" }).click()
    await page.getByRole("link", { name: "Connect Mastodon" }).waitFor()
    expect((await api("GET", `${at}/mastodon`)).status).toBe(404)
    // A call to the platform that gets no response in time is repeated later.
    const left = () => [...server.tokens.values()].filter((token) => token.account === account).length
    await eventually(
      async () => [left(), account.bot],
      ([tokens, bot]) => tokens === 0 && bot === false,
    )
    // Requests in flight during the pause are rejected.
    expect(seen.errors.filter((error) => !error.includes("409 (Conflict)"))).toEqual([])
    await context.close()
  })

  it("show the platform's reason as text after a declined authorization", async () => {
    const { handle, page, context, at } = await open()
    await beginAt(page, handle)
    await page.getByRole("link", { name: "Deny" }).click()
    await page.getByText("The resource owner <b>denied</b> the request.").waitFor()
    expect(await heading(page).innerText()).toBe("The account was not connected")
    await page.getByRole("link", { name: "Back to connectors" }).click()
    await page.getByRole("link", { name: "Connect Mastodon" }).waitFor()
    expect((await api("GET", at)).body.connectors).toEqual([])
    await context.close()
  })

  it("explain why a connector stopped, and reconnect it", async () => {
    const { handle, page, context } = await open()
    await connect(page, handle)
    await page.getByLabel("New post").fill("Hello")
    // Disabled only after the click, because the service also polls the account and would remove the button.
    await page.route("**/posts", (route) => {
      account.disabled = true
      return route.continue()
    })
    await page.getByRole("button", { name: "Post", exact: true }).click()
    await page.getByText("The platform rejected the credential").waitFor()
    await page.getByText("Your login is currently disabled").first().waitFor()
    account.disabled = false
    await page.getByRole("link", { name: "Reconnect" }).click()
    expect(await page.getByLabel("Server or account").inputValue()).toContain(account.acct)
    await page.getByLabel("Server or account").fill(server.base)
    await page.getByRole("button", { name: "Connect", exact: true }).click()
    await page.getByRole("button", { name: /^Continue to/ }).click()
    await page.getByRole("link", { name: "Authorize" }).click()
    await page.getByLabel("New post").waitFor()
    await context.close()
  })

  it("ask before they complete an authorization that another browser started", async () => {
    const { page, context, at } = await open()
    const start = await api("POST", `${at}/mastodon/authorize`, { account: server.base })
    const back = server.allow(start.body.authorization_url, account)
    await page.goto(back)
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Connect this account?")
    // The same holds for a direct link to the console.
    await page.goto(`${site.service.base}/console/connectors/callback${new URL(back).search}`)
    await page.getByRole("heading", { name: "Connect this account?" }).waitFor()
    expect((await api("GET", at)).body.connectors).toEqual([])
    await page.getByRole("button", { name: "Connect" }).click()
    await page.getByText("Account connected").waitFor()
    await context.close()
  })

  it("show the error of a Bluesky app password beside its field", async () => {
    const { handle, page, context } = await open()
    await page.goto(`${site.service.base}/console/identities/${handle}/connectors/bluesky/connect`)
    await page.getByRole("button", { name: "Use an app password" }).click()
    await page.getByRole("textbox", { name: "Account" }).fill("no account")
    await page.getByLabel("App password").fill("abcd-efgh-ijkl-mnop")
    await page.getByRole("button", { name: "Connect", exact: true }).click()
    await page.getByRole("alert").first().waitFor()
    expect(await page.getByLabel("App password").getAttribute("type")).toBe("password")
    await context.close()
  })

  it("redirect callbacks from 127.0.0.1 to localhost", async () => {
    const beside = site.service.base.replace("localhost", "127.0.0.1")
    const go = async (host: string, cookie?: string) =>
      (
        await fetch(`${host}/connectors/callback?state=abc&code=1`, {
          redirect: "manual",
          ...(cookie === undefined ? {} : { headers: { cookie } }),
        })
      ).headers.get("location")
    expect(await go(beside)).toBe(`${site.service.base}/connectors/callback?state=abc&code=1`)
    expect(await go(site.service.base)).toBe("/auth/connectors/callback?state=abc&code=1")
    expect(await go(site.service.base, "svc_connecting=abc")).toBe("/console/connectors/callback?state=abc&code=1")
    expect(await go(site.service.base, "svc_connecting=other")).toBe("/auth/connectors/callback?state=abc&code=1")
    expect(await go(beside, "svc_signed_in=1")).toBe("/auth/connectors/callback?state=abc&code=1")
  })
})
