/** The command of every endpoint that is a tool sends its request: each argument is a word, each option a flag, whatever its type. */
import { requestOf, type ToolRequest } from "@svc/api/mcp/Requests"
import { byName, type BoundTool, endpoints } from "@svc/api/mcp/Tools"
import { describe, expect, it } from "vitest"
import { asAdmin, commands, type Json } from "../harness/Commands.ts"

const { run } = commands()
const kebab = (name: string) => name.replaceAll("_", "-")
const wanted = (shape: Json): Json => shape.anyOf?.find(({ type }: Json) => type !== "null") ?? shape

/** Returns a word for a value of the shape, and the value that it means. */
const sampleOf = (shape: Json): readonly [word: string, value: unknown] => {
  const { type, enum: choices, items } = wanted(shape)
  switch (type) {
    case "integer":
      return ["7", 7]
    case "boolean":
      return ["true", true]
    case "array":
      return items?.type === "string" ? ["a, b,", ["a", "b"]] : ['[{"a":1}]', [{ a: 1 }]]
    case "object":
      return ['{"a":{"b":1}}', { a: { b: 1 } }]
    default:
      return choices === undefined ? ["text of it", "text of it"] : [choices.at(-1), choices.at(-1)]
  }
}

const sentBy = async (words: ReadonlyArray<string>) => {
  const { errors, requests } = await run(
    words,
    { "GET /": {}, "POST /": {}, "PUT /": {}, "PATCH /": {}, "DELETE /": {} },
    asAdmin,
  )
  expect(errors).toBe("")
  return requests
}
const expected = (tool: BoundTool, input: Json) => {
  const { method, target, body } = requestOf(tool, input, "Bearer key") as ToolRequest
  return [[`${method} ${target}`, body].filter(Boolean).join(" ")]
}

/** Endpoints with a generated command, without those below other commands and those with secret arguments, which are read from standard input. */
const all = endpoints.filter(
  ({ listed: { name }, secret }) =>
    secret.size === 0 && name.split("_").length > 2 && !/^svc_(?:token|sign_in|tunnel)_/.test(name),
)

describe("The command of a tool", () => {
  it("exists for most tools", () => expect(all.length).toBeGreaterThan(40))

  it.each(all.map((tool) => [tool.listed.name, tool] as const))("sends the request of %s", async (name, tool) => {
    const { properties = {}, required = [] } = tool.listed.inputSchema as Json
    const own = Object.entries<Json>(properties).filter(
      ([member]) => member === "idempotency_key" || !Object.hasOwn(tool.extra, member),
    )
    const noun = kebab(name.replace(/^svc_/, "").replace(/_[^_]+$/, ""))
    const command = [noun, tool.choice?.value ?? kebab(name.split("_").at(-1)!)]
    const input: Record<string, unknown> = {}
    const words: Array<string> = []
    for (const [member, shape] of own.filter(([member]) => required.includes(member))) {
      const isList = wanted(shape).type === "array" && wanted(shape).items?.type === "string"
      const [word, value] = isList ? sampleOf(shape) : [`${member}-1`, `${member}-1`]
      words.push(word)
      input[member] = value
    }
    expect(await sentBy([...command, ...words])).toEqual(expected(tool, input))
    // Every option alone, and an empty text where it clears the member.
    for (const [member, shape] of own.filter(([member]) => !required.includes(member))) {
      const [word, value] = member === "idempotency_key" ? ["key-1", "key-1"] : sampleOf(shape)
      const flag = `--${kebab(member)}`
      const sent = await sentBy([...command, ...words, ...(value === true ? [flag] : [flag, word])])
      expect([member, sent]).toEqual([member, expected(tool, { ...input, [member]: value })])
      const { type, enum: choices } = wanted(shape)
      if (type !== "string" || choices !== undefined || member === "idempotency_key") continue
      const clears = shape.anyOf?.some((one: Json) => one.type === "null") === true
      const cleared = await sentBy([...command, ...words, flag, ""])
      expect([member, cleared]).toEqual([member, expected(tool, { ...input, [member]: clears ? null : "" })])
    }
  })

  it("of a reply needs no recipients, which the message determines", async () => {
    const input = { handle: "ada", to: [], text: "Yes.", reply_to_message: "msg_1" }
    expect(await sentBy("email send ada --text Yes. --reply-to-message msg_1".split(" "))).toEqual(
      expected(byName.get("svc_email_send")!, input),
    )
  })
})
