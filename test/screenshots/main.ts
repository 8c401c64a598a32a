/**
 * Takes the pictures of README.md (`npm run screenshots`) from a new service with an example account. They have one size, are WebP files
 * well below 150 kB, and are stored in docs/images.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import type { Browser } from "playwright-core"
import { startServer } from "../connectors/mastodon/Server.ts"
import { openBrowser } from "../harness/Browser.ts"
import { buildConsole, heading, type Look, openContext } from "../harness/Console.ts"
import { deploy } from "../harness/Deployment.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { fill } from "./Account.ts"
import { has } from "../harness/Programs.ts"

interface Picture {
  readonly name: string
  readonly path: string
  readonly look: Look
  /** Taken without a signed-in session. */
  readonly isPublic?: boolean
}

const pictures: ReadonlyArray<Picture> = [
  { name: "home", path: "/console/", look: { scheme: "light" } },
  { name: "mail", path: "/console/identities/ada/mail", look: { scheme: "dark" } },
  { name: "webhook", path: "/console/identities/ada/webhooks", look: { scheme: "light" } },
  { name: "landing", path: "/", look: { scheme: "dark" }, isPublic: true },
]

const folder = path.join(import.meta.dirname, "..", "..", "docs", "images")
const kilobytesAtMost = 150

const take = async (browser: Browser, base: string, session: string, { name, path: at, look, isPublic }: Picture) => {
  const { context } = await openContext(browser, base, look, isPublic === true ? undefined : session)
  const page = await context.newPage()
  await page.goto(`${base}${at}`)
  await heading(page).first().waitFor()
  await page.locator(".skeleton").first().waitFor({ state: "detached" })
  // Opens the first entry of the list, whose page is the picture.
  const row = page.locator("[data-list] a.whole, .mail-rows a").first()
  if (name === "webhook" || name === "mail") {
    await row.click()
    await page.locator(".skeleton").first().waitFor({ state: "detached" })
  }
  await page.evaluate("document.fonts.ready")
  await page.waitForLoadState("networkidle").catch(() => undefined)
  const wire = await context.newCDPSession(page)
  const { data } = await wire.send("Page.captureScreenshot", { format: "webp", quality: 82 })
  const bytes = Buffer.from(data, "base64")
  if (bytes.length > kilobytesAtMost * 1000) throw new Error(`${name} has ${bytes.length} bytes`)
  writeFileSync(path.join(folder, `${name}.webp`), bytes)
  console.log(`docs/images/${name}.webp  ${Math.round(bytes.length / 1000)} kB`)
  await context.close()
}

if (!has("chromium")) throw new Error("Chromium is needed; set CHROMIUM to its path")
buildConsole()
mkdirSync(folder, { recursive: true })
const [deployment, well, ill, mastodon, browser] = await Promise.all([
  deploy(),
  startReceiver(),
  startReceiver((response) => {
    response.statusCode = 503
    response.end("The shop is closed for stocktaking.")
  }),
  startServer(),
  openBrowser(),
])
try {
  const { base, smtpPort } = await deployment.start()
  const session = await fill({ base, smtpPort, receiver: { well: well.url, ill: ill.url }, mastodon })
  for (const picture of pictures) await take(browser, base, session, picture)
} finally {
  await browser.close()
  await Promise.all([well.stop(), ill.stop(), mastodon.stop(), deployment.stop()])
}
