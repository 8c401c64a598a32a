/**
 * Compares the whole output of every command with `printed.txt`, for a full response and an empty one, which are made from the
 * OpenAPI document. After an intended change, `npm test -- test/cli/printed --update=all` writes the file anew.
 */
import { type BoundTool, endpoints } from "@svc/api/mcp/Tools"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { routeOf, variants } from "../console/states/Samples.ts"
import { asAdmin, commands, type Json } from "../harness/Commands.ts"

const { run } = commands()
const kebab = (name: string) => name.replaceAll("_", "-")

/** Returns the command of a tool with a word for each of its required arguments. */
const wordsOf = ({ listed: { name, inputSchema }, choice, extra }: BoundTool): ReadonlyArray<string> => {
  const { properties = {}, required = [] } = inputSchema as Json
  const noun = kebab(name.replace(/^svc_/, "").replace(/_[^_]+$/, ""))
  const words = required
    .filter((member: string) => !Object.hasOwn(extra, member))
    .map((member: string) => properties[member].enum?.[0] ?? (properties[member].type === "integer" ? "7" : member))
  return [noun, choice?.value ?? kebab(name.split("_").at(-1)!), ...words]
}

const generated = endpoints
  .filter(
    ({ listed: { name }, secret }) =>
      secret.size === 0 && name.split("_").length > 2 && !name.startsWith("svc_sign_in_"),
  )
  .map(wordsOf)

const written = ["whoami", "keys list", "keys revoke key-1", "grants list", "audit"].map((words) => words.split(" "))

describe("The output of a command", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-11-20T12:00:00.000Z") }))
  afterEach(() => void vi.useRealTimers())

  it("has exactly these lines", async () => {
    const all: Array<string> = []
    for (const words of [...written, ...generated]) {
      for (const variant of [variants.full, variants.bare]) {
        const responses = (route: string): Json => {
          const [method = "", target = ""] = route.split(" ")
          const body: Json = routeOf(method, target.split("?")[0]!)?.answer(variant).body ?? 204
          // Commands read all pages.
          if (body.next_cursor !== undefined) body.next_cursor = null
          return body
        }
        const { out, errors, code } = await run(words, responses, asAdmin)
        all.push([`$ svc ${words.join(" ")}`, ...(code === 0 ? [] : [`exit code ${code}`]), out + errors].join("\n"))
      }
    }
    await expect(all.join("\n")).toMatchFileSnapshot("printed.txt")
  })
})
