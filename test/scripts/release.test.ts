import { expect, it } from "vitest"
import { blockersOf, type Checkout } from "../../scripts/release.ts"

const ready: Checkout = {
  version: "0.2.0",
  tags: ["v0.2.0"],
  changed: "",
  changelog: "# Changelog\n\n## 0.2.0 - 2027-01-01\n",
  stale: [],
}

it("a release is made from its tag only, with its changes committed and described", () => {
  expect(blockersOf(ready)).toEqual([])
  const wrong: ReadonlyArray<readonly [change: Partial<Checkout>, blocker: RegExp]> = [
    [{ tags: ["v0.1.0", ""] }, /no tag v0\.2\.0/],
    [{ changed: " M package.json" }, /not committed:\n M package\.json/],
    [{ changelog: "# Changelog\n\n## 0.2.0-rc.1 - 2027-01-01\n" }, /no section "## 0\.2\.0 /],
    [{ stale: ["packages/sdk/src/generated.ts"] }, /not current .*generated\.ts/],
  ]
  for (const [change, blocker] of wrong) {
    expect(blockersOf({ ...ready, ...change })).toEqual([expect.stringMatching(blocker)])
  }
})
