import { describe, expect, it } from "vitest"
import { planted } from "./Mutant.ts"
import { mutants } from "./Mutants.ts"

describe("a planted bug", () => {
  it.each(Object.entries(mutants))("%s replaces text that occurs exactly once", (_, mutant) => {
    expect(planted(mutant)).toContain(mutant.to)
  })
})
