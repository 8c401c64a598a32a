/** Hostile clients: oversized documents and endless registrations. */
import { gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { authorizationUrl, type Browser, browser, challengeOf, registerClient, verifierOf } from "./Consent.ts"
import { documents } from "./Documents.ts"

let service: TestService
let site: Awaited<ReturnType<typeof documents>>
let ada: Browser
beforeAll(async () => {
  service = await sharedService()
  site = await documents()
  const { session } = await signUp(service.base)
  await makeIdentity(service.base, session, newHandle("ada"))
  ada = browser(service.base, session)
})
afterAll(async () => {
  await site.stop()
})

const here = "http://localhost:4711/callback"
const asking = (client: string, redirect: string) =>
  authorizationUrl(service.base, { client, redirect, challenge: challengeOf(verifierOf()) })

describe("Client document", () => {
  const shownFor = (name: string) => ada.go(asking(site.url(name), "http://localhost:5000/cb"))
  const details = { client_name: "Doc", redirect_uris: ["http://localhost/cb"] }

  it("with a decompression bomb is rejected", async () => {
    site.answer("bomb.json", (_, response) =>
      response
        .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
        .end(gzipSync(JSON.stringify({ client_id: site.url("bomb.json"), ...details, x: "x".repeat(3_000_000) }))),
    )
    expect((await shownFor("bomb.json")).status).toBe(400)
  })

  it("that never ends times out", async () => {
    site.answer(
      "slow.json",
      (_, response) => void response.writeHead(200, { "content-type": "application/json" }).write("{"),
    )
    expect((await shownFor("slow.json")).status).toBe(400)
  })

  it("that changes after the page was shown redirects nowhere else", async () => {
    site.json("swap.json", (client_id) => ({ client_id, ...details }))
    const shown = await shownFor("swap.json")
    site.json("swap.json", (client_id) => ({ client_id, ...details, redirect_uris: ["https://evil.example/cb"] }))
    const id = site.url("swap.json")
    // A further view fetches the document again. On a busy machine that may take too long, and the last copy is used.
    for (let views = 0, redirects = ""; !redirects.includes("evil.example") && views < 5; views++) {
      await service.query((sql) => sql`update oauth_client set fresh_until = '2000-01-01' where id = ${id}`)
      await shownFor("swap.json")
      redirects = JSON.stringify(await service.query((sql) => sql`select redirects from oauth_client where id = ${id}`))
    }
    const answer = await ada.decide(shown, { decision: "allow", agents: "one", rights: "read" })
    expect([answer.text.includes("evil.example"), answer.text.includes("http-equiv")]).toEqual([false, false])
  })

  it.each([
    "http://[::1]/client.json",
    "http://169.254.169.254/latest",
    "http://2130706433/x.json",
    "file:///etc/passwd",
  ])("%s does not reveal what exists", async (id) => {
    const shown = await ada.go(asking(id, "http://localhost:5000/cb"))
    expect([shown.status, shown.text.includes('name="seal"')]).toEqual([400, false])
  })
})

describe("Registrations", () => {
  it("with equal content share one client", async () => {
    const before = await service.query<{ n: number }>((sql) => sql`select count(*)::int as n from oauth_client`)
    const name = newHandle("flood")
    const ids = await Promise.all(
      Array.from({ length: 40 }, (_, n) => registerClient(service.base, [`http://localhost:${4000 + n}/cb`], name)),
    )
    expect(new Set(ids.map(({ body }) => body["client_id"])).size).toBe(1)
    const after = await service.query<{ n: number }>((sql) => sql`select count(*)::int as n from oauth_client`)
    expect(after[0]!.n - before[0]!.n).toBe(1)
  })

  it("store only the name and the redirect addresses", async () => {
    const response = await fetch(`${service.base}/api/oauth/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        client_name: "n".repeat(200_000),
        redirect_uris: [here],
        scope: "*",
        client_secret: "s",
        token_endpoint_auth_method: "client_secret_basic",
        logo_uri: "x".repeat(100_000),
      }),
    })
    const body: any = await response.json()
    expect(body.client_name?.length ?? 0).toBeLessThanOrEqual(60)
    expect(body).not.toHaveProperty("client_secret")
    expect(JSON.stringify(body)).not.toContain("xxxx")
  })
})
