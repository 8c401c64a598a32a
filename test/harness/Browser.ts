/** Chromium, where the machine has it. Without one the tests that need eyes are skipped; what pages say is tested anyway. */
import { existsSync } from "node:fs"
import { chromium } from "playwright-core"

const candidates = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
]

const found = candidates.find((path): path is string => path !== undefined && existsSync(path))
export const hasBrowser = found !== undefined

export const openBrowser = () => chromium.launch({ executablePath: found!, args: ["--no-sandbox"] })
