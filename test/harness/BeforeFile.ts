/** Runs before each test file: one that replaces timers or watches its process never runs beside a shared service. */
import { expect } from "vitest"
import { sharedBy, stopOthers } from "./Shared.ts"

await stopOthers(sharedBy(expect.getState().testPath!))
