/**
 * Records what every page of the console shows for every kind of response, and what each of its controls does. The responses
 * are made from the OpenAPI document, so that a page gets each status, each missing member and each error. The files in
 * `states/` hold the result; `vitest run test/console/states --update=all` writes them anew after an intended change.
 */
import { metrics } from "@svc/domain/usage/UsageApi"
import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as path from "node:path"
import type { Page } from "playwright-core"
import { rolldown } from "rolldown"
import { afterAll, beforeAll, describe, it } from "vitest"
import { closeContexts, openBrowser } from "../harness/Browser.ts"
import { buildConsole, built } from "../harness/Console.ts"
import { has } from "../harness/Programs.ts"
import { root } from "../house/Imports.ts"
import { routeOf } from "./states/Samples.ts"

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript",
  ".css": "text/css",
  ".html": "text/html",
  ".woff2": "font/woff2",
}

/** Every member of a body, as JSON pointers. */
const pointersOf = (value: unknown, at = ""): ReadonlyArray<string> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, member]) => [`${at}/${name}`, ...pointersOf(member, `${at}/${name}`)])
    : []

const problem = (code: string, status: number, detail: string, errors?: ReadonlyArray<object>) => ({
  type: `/problems/${code}`,
  title: `Title of ${code}`,
  status,
  detail,
  code,
  agent_hint: "fix_call",
  instance: "req_01kjr8xr3v7k2t9m4q6w8y0zab",
  doc_url: `https://api.example/problems/${code}`,
  ...(errors === undefined ? {} : { errors }),
})

interface Gated {
  readonly tos: object
}
/** Every metric was counted in two hours. */
const ofTwoHours = (usage: object) => {
  const at = (hour: number) => new Date(Date.parse("2026-11-20T08:00:00.000Z") + hour * 3_600_000).toISOString()
  const points = [5, 3].map((value, hour) => ({ at: at(hour), value }))
  const series = Object.keys(metrics).map((metric) => ({ metric, points }))
  return { ...usage, starts_at: at(0), ends_at: at(2), step: "hour", series }
}

const textOf = async (request: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** The built console as one script: its parts need no requests, and none arrives while a page seems to be idle. */
let script: { readonly path: string; readonly code: string }
const readScript = async () => {
  const [, at] = /src="(\/console\/assets\/[^"]+\.js)"/.exec(readFileSync(path.join(built, "index.html"), "utf8"))!
  const made = await rolldown({ input: path.join(built, at!.slice("/console/".length)), treeshake: false })
  const { output } = await made.generate({ codeSplitting: false })
  await made.close()
  // The script has all parts, so that none is preloaded.
  return { path: at!, code: output[0].code.replaceAll(/__vite__mapDeps\(\[[\d,\s]*\]\)/g, "[]") }
}

/** Responds to the API with samples, and serves the built console. */
const respond = async (request: IncomingMessage, response: ServerResponse) => {
  const { pathname, searchParams } = new URL(request.url!, "http://console")
  const json = (status: number, body: unknown) => {
    response.writeHead(status, {
      "content-type": status < 400 ? "application/json" : "application/problem+json",
      etag: '"7"',
    })
    const text = JSON.stringify(body)
    const read = request.headers["x-read"] === undefined ? text : text?.replaceAll('"seen":false', '"seen":true')
    response.end(status === 204 ? undefined : read)
  }
  if (pathname.startsWith("/api/")) {
    const sent = await textOf(request)
    const method = request.method!
    const variant = String(request.headers["x-variant"] ?? "0")
    const route = routeOf(method, pathname)
    if (route === undefined) return json(404, problem("not_found", 404, `No route for ${pathname}`))
    const isOwn = /^\/api\/(?:auth\/session|identities|identities\/[^/]+)$/.test(pathname)
    if (method === "GET" && !isOwn && variant === "missing")
      return json(404, problem("not_found", 404, "There is none."))
    if (method !== "GET" && request.headers["x-fails"] !== undefined) {
      const errors = pointersOf(sent === "" ? {} : JSON.parse(sent)).map((at) => ({
        path: at,
        message: `wrong at ${at}`,
      }))
      return json(422, problem("invalid_request", 422, "The request is wrong.", errors))
    }
    const { status, body } = route.answer(isOwn ? 0 : Number(variant) || 0)
    // The second page of a list is its last one, and a change is made as a whole.
    const ends = { ...(searchParams.has("cursor") && { next_cursor: null }), ...(method !== "GET" && { more: false }) }
    const sampled = Object.keys(ends).some((name) => name in ((body ?? {}) as object))
      ? { ...(body as object), ...ends }
      : body
    if (method === "GET" && pathname === "/api/auth/session" && variant === "gated")
      return json(status, { ...(sampled as object), tos: { ...(sampled as Gated).tos, gated: true } })
    if (pathname === "/api/usage") return json(status, ofTwoHours(sampled as object))
    return json(status, sampled)
  }
  const file = pathname.startsWith("/console/assets/") ? pathname.slice("/console/".length) : "index.html"
  response.writeHead(200, {
    "content-type": types[path.extname(file)] ?? "application/octet-stream",
    "cache-control": file === "index.html" ? "no-store" : "max-age=9999",
  })
  response.end(pathname === script.path ? script.code : readFileSync(path.join(built, file)))
}

/** Left out: a page that redirects, and those that show messages in frames, which test/console/mail.test.ts covers. */
const covered = new Set([
  "/connectors/callback",
  "/identities/:handle/mail/threads/:id",
  "/identities/:handle/mail/:id",
])
const paths = [...readFileSync(path.join(root, "packages/console/src/Routes.ts"), "utf8").matchAll(/page\("([^"]+)"/g)]
  .map(([, pattern]) => pattern!)
  .filter((one) => !covered.has(one))
const fill = (pattern: string) =>
  pattern.replace(":handle", "ada").replace(":platform", "mastodon").replace(/:id/, "01kjr8xr3v7k2t9m4q6w8y0000")

describe.skipIf(!has("chromium"))("Every page", () => {
  let base: string
  const server = createServer((request, response) => void respond(request, response))
  /** Unused pages. A test waits for half of its time, so two run at once. Each further page would compile the console again. */
  const free: Array<Page> = []
  const taking: Array<(page: Page) => void> = []
  beforeAll(async () => {
    buildConsole()
    script = await readScript()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const browser = await openBrowser()
    // Only one tab of a context has the live stream.
    const open = async () => {
      const context = await browser.newContext({
        locale: "en",
        timezoneId: "UTC",
        viewport: { width: 1280, height: 800 },
      })
      await context.addInitScript({ path: path.join(import.meta.dirname, "states", "explorer.mjs") })
      const page = await context.newPage()
      await page.goto(`${base}/icon.svg`)
      return page
    }
    for (let count = 0; count < 2; count++) free.push(await open())
  })
  afterAll(async () => {
    for (const page of free) await page.context().close()
    await closeContexts()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const load = async (page: Page, to: string, variant: string) => {
    await page.evaluate(
      `sessionStorage.setItem("variant", "${variant}"); localStorage.clear(); document.cookie = "svc_signed_in=1; Path=/"`,
    )
    await page.goto(`${base}/console${to}`, { waitUntil: "domcontentloaded" })
  }

  /** Controls that many pages have are operated on some of them. */
  const isCommon = /^button (?:24 hours|7 days|30 days|Show as table|Copy|Show more|Show:)/
  const withCommon = new Set(["/settings", "/settings/limits", "/identities/ada/webhooks/01kjr8xr3v7k2t9m4q6w8y0000"])
  /** Pages whose controls another page has as well, and the composer, which saves its draft by the clock. */
  const hasNoOwn = /^\/keys\/01|^\/identities\/ada\/mail\/compose/

  const controlsOf = async (page: Page, to: string) => {
    if (hasNoOwn.test(to)) return []
    const lines: Array<string> = []
    for (const key of await page.evaluate<ReadonlyArray<string>>("explorer.controls()")) {
      if (isCommon.test(key) && !withCommon.has(to)) continue
      const done = await page
        .evaluate<{ readonly lines: ReadonlyArray<string>; readonly isLost: boolean }>(
          `explorer.operate(${JSON.stringify(key)})`,
        )
        .catch((error: unknown) => {
          if (!/context was destroyed/.test(String(error))) throw new Error(`${to}, ${key}`, { cause: error })
          return { lines: [`# ${key}`, "leaves the page"], isLost: true }
        })
      lines.push("", ...done.lines)
      if (done.isLost) {
        await load(page, to, "0")
        await page.evaluate("explorer.controls()")
      }
    }
    return lines
  }

  const withPage = async <A>(run: (page: Page) => Promise<A>): Promise<A> => {
    const page = free.pop() ?? (await new Promise<Page>((resolve) => taking.push(resolve)))
    try {
      return await run(page)
    } finally {
      const next = taking.shift()
      if (next === undefined) free.push(page)
      else next(page)
    }
  }

  it.concurrent.for(paths)("%s", async (pattern, { expect }) => {
    const to = fill(pattern)
    const lines = await withPage(async (page) => {
      await load(page, to, "missing")
      const states = await page.evaluate<ReadonlyArray<string>>(`explorer.states(["1", "2", "3", "4", "5"])`)
      return [...states, ...(await controlsOf(page, to))]
    })
    const name = pattern.slice(1).replaceAll("/", "-").replaceAll(":", "") || "home"
    await expect([...lines, ""].join("\n")).toMatchFileSnapshot(`states/${name}.txt`)
  })

  it("of new Terms of Service can be left by signing out", async () => {
    await withPage(async (page) => {
      await load(page, "/", "gated")
      await page.locator("button", { hasText: "Sign out" }).dispatchEvent("click")
      await page.locator("h1", { hasText: "Sign in or sign up" }).waitFor({ state: "attached" })
    })
  })
})
