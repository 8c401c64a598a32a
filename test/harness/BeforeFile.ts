/**
 * Runs before each test file, and stops the shared services that the file does not use: it may replace timers, or measure
 * its process.
 */
import { expect } from "vitest"
import { sharedBy, stopOthers } from "./Shared.ts"

await stopOthers(sharedBy(expect.getState().testPath!))
