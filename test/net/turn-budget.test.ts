import * as TurnBudget from "@svc/cluster/net/TurnBudget"
import { expect, it } from "vitest"

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

it("the time budget of a turn is used up after 5 ms, and is new in the next turn", async () => {
  await nextTurn()
  expect(TurnBudget.isSpent()).toBe(false)
  const started = performance.now()
  while (performance.now() - started < 6);
  expect(TurnBudget.isSpent()).toBe(true)
  await nextTurn()
  expect(TurnBudget.isSpent()).toBe(false)
})
