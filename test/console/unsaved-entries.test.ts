/** When input that is not saved yet leaves the browser's storage. */
import * as path from "node:path"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { root } from "../house/Imports.ts"

// The console has its own type configuration, so its modules are imported without types.
const { storeUnsavedFor, unsavedInput, unsavedWith } = await import(
  path.join(root, "packages/console/src/client/Unsaved.ts")
)

/** Storage whose keys are its own properties, as in a browser. */
class Entries {
  [key: string]: unknown
}
for (const [name, value] of Object.entries({
  getItem(this: Entries, key: string) {
    return this[key] ?? null
  },
  setItem(this: Entries, key: string, value: string) {
    this[key] = value
  },
  removeItem(this: Entries, key: string) {
    delete this[key]
  },
})) {
  Object.defineProperty(Entries.prototype, name, { value })
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal("localStorage", new Entries())
})
afterEach(() => {
  storeUnsavedFor(undefined)
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const stored = () => unsavedWith("").map(([name]: readonly [string]) => name)
const signInAgain = () => {
  storeUnsavedFor(undefined)
  storeUnsavedFor("ada")
}

it("Input that is not saved is kept for 30 days", () => {
  storeUnsavedFor("ada")
  expect(unsavedInput("older").write("Dear Bob")).toBe(true)
  vi.advanceTimersByTime(86_400_000)
  expect(unsavedInput("newer").write("Dear Eve")).toBe(true)
  vi.advanceTimersByTime(29 * 86_400_000)
  signInAgain()
  expect(stored()).toEqual(["older", "newer"])
  vi.advanceTimersByTime(1)
  signInAgain()
  expect(stored()).toEqual(["newer"])
})

it("Input that is not saved is that of one account, and none is stored without one", () => {
  storeUnsavedFor("ada")
  unsavedInput("reply").write("Dear Bob")
  storeUnsavedFor("bob")
  expect(stored()).toEqual([])
  expect(unsavedInput("reply").restored).toBeUndefined()
  storeUnsavedFor(undefined)
  expect(unsavedInput("reply").write("Dear Eve")).toBe(false)
  storeUnsavedFor("ada")
  expect(unsavedInput("reply").restored).toBe("Dear Bob")
})
