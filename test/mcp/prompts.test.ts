/** Prompts of the MCP server without a server: how they are filled in, and which arguments they refuse. */
import * as Prompts from "@svc/api/mcp/Prompts"
import { describe, expect, it } from "vitest"

// oxlint-disable-next-line typescript/no-explicit-any -- a text or a refusal
type Json = any

describe("A prompt", () => {
  const [first] = Prompts.listed
  it("is filled in with its arguments, each as one line of at most 500 characters", () => {
    for (const { name, arguments: wanted } of Prompts.listed) {
      const given = Object.fromEntries(wanted.map((one) => [one.name, `v-${one.name}`]))
      const found: Json = Prompts.textOf(name, given)
      for (const value of Object.values(given)) expect([name, found.text.includes(value)]).toEqual([name, true])
      const required = wanted.filter((one) => one.required)
      const least: Json = Prompts.textOf(name, Object.fromEntries(required.map((one) => [one.name, "x"])))
      expect(least.text, name).not.toMatch(/undefined|\{/)
      for (const one of required) {
        const { [one.name]: _, ...others } = given
        expect(Prompts.textOf(name, others)).toEqual({ wrong: `Missing argument: ${one.name}` })
        expect(Prompts.textOf(name, { ...others, [one.name]: " \n" })).toEqual({
          wrong: `Missing argument: ${one.name}`,
        })
      }
    }
    const answer: Json = Prompts.textOf("answer-mail", { handle: "@ada" })
    expect(answer.text).toContain("Answer the unread mail of the Identity @ada.")
    const [argument] = first!.arguments
    const long: Json = Prompts.textOf(first!.name, {
      ...Object.fromEntries(first!.arguments.map((one) => [one.name, "x"])),
      [argument!.name]: `a\n\n  b${"c".repeat(600)}`,
    })
    expect(long.text).toContain(`a b${"c".repeat(497)}`)
    expect(long.text).not.toContain("c".repeat(498))
  })

  it("refuses arguments that it does not have", () => {
    expect(Prompts.textOf(first!.name, { nothing: "x" })).toEqual({ wrong: "Invalid argument: nothing" })
    expect(Prompts.textOf(first!.name, { [first!.arguments[0]!.name]: 7 })).toMatchObject({
      wrong: `Invalid argument: ${first!.arguments[0]!.name}`,
    })
  })
})
