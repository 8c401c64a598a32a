/** One Chromium per worker, with clean contexts. Tests that need a browser are skipped on a machine without one. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core"
import { patience } from "./Eventually.ts"
import { browser as installedBrowser } from "./Programs.ts"

let open: Promise<Browser> | undefined

/** One browser for all files of a worker; it is closed with the worker. */
export const openBrowser = () => (open ??= launch())

const launch = async () => {
  const browser = await chromium.launch({
    executablePath: installedBrowser!,
    args: ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=1"],
  })
  // `newPage` makes its context in the same way.
  const { newContext } = browser
  browser.newContext = async (...options) => {
    const context = await newContext.apply(browser, options)
    context.setDefaultTimeout(patience)
    return context
  }
  return browser
}

interface IdleContext {
  readonly browser: Browser
  readonly options: string
  readonly context: BrowserContext
}

/** Clean contexts that are not in use. */
const free = new Set<IdleContext>()

/**
 * Returns a cleaned context of an earlier test, or a new one. A new context needs a window, a process and compilation,
 * which would be most of a short test's duration; an open tab keeps them alive.
 */
export const takeContext = async (browser: Browser, options: BrowserContextOptions) => {
  const wanted = JSON.stringify(options)
  let kept = [...free].find((one) => one.browser === browser && one.options === wanted)
  if (kept === undefined) {
    kept = { browser, options: wanted, context: await browser.newContext(options) }
    await kept.context.newPage()
  } else free.delete(kept)
  const { context } = kept
  const [tab] = context.pages()
  // A fake clock is a script of the context that cannot be removed, and that the frames of later tests would report.
  let hasFakeClock = false
  const { clock } = context
  const install = clock.install.bind(clock)
  clock.install = (options) => {
    hasFakeClock = true
    return install(options)
  }
  return {
    context,
    /** Removes pages, cookies and stored data of this origin; caches stay. A context with a fake clock is closed. */
    release: async (origin: string) => {
      if (hasFakeClock) return context.close()
      for (const page of context.pages()) if (page !== tab) await page.close()
      await context.clearCookies()
      const cdp = await context.newCDPSession(tab!)
      await cdp.send("Storage.clearDataForOrigin", { origin, storageTypes: "local_storage,indexeddb,service_workers" })
      await cdp.detach()
      free.add(kept)
    },
  }
}

/** Closes the contexts that a file left open; one clean context stays for the next file. */
export const closeContexts = async () => {
  const [stays] = free
  for (const one of free) if (one !== stays) free.delete(one)
  for (const context of (await open)?.contexts() ?? []) if (context !== stays?.context) await context.close()
}
