import { canonical, check } from "@svc/domain/handles/Handle"
import { productHostnames, reserved } from "@svc/domain/handles/Reserved"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

const judge = (name: string) => check(name, { brand: "agentidentity" })._tag

describe("Handle rules", () => {
  it.each([
    ["ada", "Ok"],
    ["Grace-Hopper", "Ok"],
    ["a1b2", "Ok"],
    ["a".repeat(63), "Ok"],
    ["ab", "Invalid"],
    ["a-b", "Invalid"],
    ["a".repeat(64), "Invalid"],
    ["-abc", "Invalid"],
    ["abc-", "Invalid"],
    ["ab_c", "Invalid"],
    ["äbc", "Invalid"],
    ["a.bc", "Invalid"],
    ["xn--abc", "Invalid"],
    ["ab--cd", "Invalid"],
    ["", "Invalid"],
    ["postmaster", "Reserved"],
    ["Post-Master", "Reserved"],
    ["claude", "Reserved"],
    ["open-ai", "Reserved"],
    ["my-agent", "Reserved"],
    ["theagent-identitybot", "Reserved"],
    ["claudette", "Ok"],
    // The Kelvin sign lower-cases to k.
    ["\u212aelvin", "Invalid"],
  ])("%s is %s", (name, verdict) => expect(judge(name)).toBe(verdict))

  it("reserve the brand in any spelling, and no name without a brand", () => {
    expect(check("my-ac-me-bot", { brand: "Ac.Me!" })._tag).toBe("Reserved")
    expect(check("ada", { brand: "-" })._tag).toBe("Ok")
    expect(check("ada", { brand: "" })._tag).toBe("Ok")
  })

  it("reserve every hostname of the product", () => {
    for (const name of productHostnames) expect(reserved.has(canonical(name)), name).toBe(true)
  })

  it("treat spellings that differ in case and hyphens as the same name", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]{3,20}$/), fc.nat(), (name, at) => {
        const cut = 1 + (at % (name.length - 1))
        const spelled = `${name.slice(0, cut)}-${name.slice(cut)}`.toUpperCase()
        expect(canonical(spelled)).toBe(name)
      }),
    )
  })

  it("reject everything except DNS labels", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 70 }), (name) => {
        const verdict = check(name, { brand: "" })
        if (verdict._tag === "Ok") expect(verdict.handle).toMatch(/^[a-z0-9]([a-z0-9-]{1,61})[a-z0-9]$/)
      }),
    )
  })

  it("allow a leading @ to name an Identity, but not to create one", () => {
    expect(canonical("@A-da")).toBe("ada")
    expect(check("@Ada-1", { brand: "acme" })).toMatchObject({
      _tag: "Invalid",
      detail: expect.stringContaining("the @"),
    })
    expect(check("@@ada", { brand: "acme" })._tag).toBe("Invalid")
    expect(check("a.da", { brand: "acme" })).toMatchObject({ detail: expect.not.stringContaining("@") })
  })
})
