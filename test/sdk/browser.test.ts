/** The TypeScript SDK in a page of another origin. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import * as path from "node:path"
import { rolldown } from "rolldown"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type * as Sdk from "@agent-identity/sdk"
import { openBrowser, takeContext } from "../harness/Browser.ts"
import { signUp } from "../harness/Client.ts"
import { has } from "../harness/Programs.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

/** Values that the page passes to the programs of this test. */
declare global {
  var sdk: typeof Sdk
}

let service: TestService
let session: string
let site: Server
let origin: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  const made = await rolldown({
    input: path.join(import.meta.dirname, "..", "..", "packages", "sdk", "src", "index.ts"),
    platform: "browser",
  })
  const { output } = await made.generate({ format: "iife", name: "sdk", minify: true })
  await made.close()
  const page = `<!doctype html><title>Another site</title><script>${output[0].code}</script>`
  site = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(page))
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
})
afterAll(async () => {
  site.closeAllConnections()
  site.close()
})

describe("The API", () => {
  const preflight = async (target: string, method: string) => {
    const response = await fetch(service.base + target, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": method, "access-control-request-headers": "authorization" },
    })
    return Object.fromEntries([...response.headers].filter(([name]) => name.startsWith("access-control-")))
  }

  it("may be called by pages of other origins with a key", async () => {
    expect(await preflight("/api/identities", "POST")).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": expect.stringContaining("POST"),
      "access-control-allow-headers": "*, authorization",
    })
    const headers = { origin, authorization: `Bearer ${session}` }
    const { headers: got } = await fetch(`${service.base}/api/account`, { headers })
    expect(got.get("access-control-allow-origin")).toBe("*")
    expect(got.get("access-control-allow-credentials")).toBeNull()
    const own = await fetch(`${service.base}/api/account`, { headers: { authorization: `Bearer ${session}` } })
    expect(own.headers.get("access-control-allow-origin")).toBeNull()
  })

  it.each([
    ["POST", "/api/auth/magic-link"],
    ["POST", "/api/auth/magic-link/consume"],
    ["GET", "/api/auth/session"],
    ["POST", "/api/contact"],
    ["POST", "/api/hits"],
    ["GET", "/console"],
  ])("does not let pages of other origins send %s %s", async (method, target) => {
    expect(await preflight(target, method)).toEqual({})
    const response = await fetch(service.base + target, { method, headers: { origin }, redirect: "manual" })
    expect(response.headers.get("access-control-allow-origin")).toBeNull()
  })
})

describe.skipIf(!has("chromium"))("SDK in a page of another origin", () => {
  it("calls the API, follows Events and has the codes of errors", async () => {
    const { context, release } = await takeContext(await openBrowser(), {})
    try {
      const page = await context.newPage()
      await page.goto(origin)
      const result = await page.evaluate(
        async ([key, baseUrl]) => {
          const { ApiError, createClient } = globalThis.sdk
          const client = createClient({ key: key!, baseUrl: baseUrl! })
          const ada = await client.createIdentity("sdk-browser")
          const names: Array<string> = []
          for (const name of ["one", "two", "three"]) await ada.vault.put({ name, value: "x" })
          for await (const { name } of ada.vault.list.all({ limit: 2 })) names.push(name)
          const { events } = await ada.events.listOfIdentity({ limit: 1 })
          await ada.cards.patch({ name: "In a browser" })
          let seen = ""
          for await (const { type } of ada.stream({ after: events[0]!.id })) {
            seen = type
            break
          }
          const code = await client.identities
            .create({ handle: "x" })
            .catch((error: unknown) => (error instanceof ApiError ? error.code : String(error)))
          const tunnel = await ada.tunnel(() => new Response("")).catch((error: unknown) => String(error))
          return { names: names.toSorted(), seen, code, tunnel }
        },
        [session, service.base],
      )
      expect(result).toEqual({
        names: ["one", "three", "two"],
        seen: "card.updated",
        code: "handle_invalid",
        tunnel: "Error: A tunnel needs a package: npm install @agent-identity/tunnel",
      })
      await page.close()
    } finally {
      await release(origin)
    }
  })
})
