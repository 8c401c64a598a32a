import { everyBytes, make, outsideOf, withinMillis, youngBytes } from "@svc/tunnel-edge/protocol/YoungGenerationGc"
import { expect, it } from "vitest"

it("runs a young collection only for bulk transfers, and not while many young objects are alive", () => {
  let at = 0
  let collected = 0
  let young = 0
  const passed = make({ young: () => young, collect: () => collected++ }, () => at)
  const flow = (times: number, everyMillis: number) => {
    const before = collected
    for (let n = 0; n < times; n++) {
      at += everyMillis
      passed(everyBytes)
    }
    return collected - before
  }
  expect(flow(10, withinMillis - 1)).toBe(10)
  expect(flow(10, withinMillis)).toBe(0)
  young = youngBytes
  expect(flow(10, 1)).toBe(10)
  young++
  expect(flow(10, 1)).toBe(0)
})

it("counts the buffer that a read allocated rather than the bytes read", () => {
  const slab = Buffer.allocUnsafeSlow(64 * 1024)
  expect(outsideOf(slab.subarray(0, 100))).toBe(64 * 1024)
  expect(outsideOf(slab.subarray(100, 200))).toBe(0)
})
