/** When input that is not saved yet leaves the browser's storage. */
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { Entries, source } from "./Modules.ts"

const { storeUnsavedFor, unsavedInput, unsavedWith } = await source("client/Unsaved.ts")

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
