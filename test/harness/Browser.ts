/** Chromium, where the machine has it. Without one the tests that need eyes are skipped; what pages say is tested anyway. */
import { existsSync } from "node:fs"
import { type Browser, chromium } from "playwright-core"

const candidates = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
]

const found = candidates.find((path): path is string => path !== undefined && existsSync(path))
export const hasBrowser = found !== undefined

let open: Promise<Browser> | undefined

/** One for all files of a worker, which ends with it. */
export const openBrowser = () =>
  (open ??= chromium.launch({
    executablePath: found!,
    args: ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=1"],
  }))

/** Closes what a file opened in it and did not close. */
export const closeContexts = async () => {
  for (const context of (await open)?.contexts() ?? []) await context.close()
}
