/** The budget of an Org's calls, when the actor that had it is gone. */
import * as CallBudget from "@svc/cluster/account/CallBudget"
import { expect, it } from "vitest"

const quotas = { calls: 600, identity_create: 10, handle_check: 60 }
const minute = 60_000

it("a fresh actor gives out only the share of the window that is still to come, then whole windows", () => {
  const budget = CallBudget.make(quotas, 10 * minute + 45_000)
  const at = 10 * minute + 46_000
  expect(budget.lease("calls", 1_000, at)).toEqual({ granted: 150, left: 0, ends_in: 14_000 })
  expect(budget.lease("calls", 1, at).granted).toBe(0)
  // One at least, or a small quota would be none.
  expect(CallBudget.make(quotas, 11 * minute - 1).lease("identity_create", 5, 11 * minute - 1).granted).toBe(1)
  expect(budget.lease("calls", 600, 11 * minute)).toEqual({ granted: 600, left: 0, ends_in: minute })
})
