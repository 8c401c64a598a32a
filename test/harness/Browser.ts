/** One Chromium per worker, with clean contexts. Tests that need a browser are skipped on a machine without one. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core"
import { browser as installedBrowser } from "./Programs.ts"

let open: Promise<Browser> | undefined

/** One for all files of a worker, which ends with it. */
export const openBrowser = () =>
  (open ??= chromium.launch({
    executablePath: installedBrowser!,
    args: ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=1"],
  }))

interface Kept {
  readonly browser: Browser
  readonly options: string
  readonly context: BrowserContext
}

/** Clean ones that nobody uses. */
const free = new Set<Kept>()

/**
 * A context that was cleaned after its last use, or a new one. Each has a window of its own, a process of its own and
 * nothing compiled: that is most of what a short test would wait for. So one tab stays in it and holds them.
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
  return {
    context,
    /** Pages, cookies and what pages of this origin stored are gone; what was cached stays. */
    giveBack: async (origin: string) => {
      for (const page of context.pages()) if (page !== tab) await page.close()
      await context.clearCookies()
      const cdp = await context.newCDPSession(tab!)
      await cdp.send("Storage.clearDataForOrigin", { origin, storageTypes: "local_storage,indexeddb,service_workers" })
      await cdp.detach()
      free.add(kept)
    },
  }
}

/** Closes what a file opened in it and did not close; one clean context stays for the next file. */
export const closeContexts = async () => {
  const [stays] = free
  for (const one of free) if (one !== stays) free.delete(one)
  for (const context of (await open)?.contexts() ?? []) if (context !== stays?.context) await context.close()
}
