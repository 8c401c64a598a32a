/** The compact list of tools, which a model reads before its first call. */
import { listFor, selfExplanatory } from "@svc/api/mcp/ToolList"
import { scopesOf } from "@svc/domain/account/Scope"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- whatever a tool answers
type Json = any

let service: TestService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>

beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
})

const send = async (method: string, query: string, token: string, params: object = {}): Promise<Json> =>
  (await call(service.base, "POST", `/api/mcp${query}`, { token, body: { jsonrpc: "2.0", id: 1, method, params } }))
    .body

/** Calls a tool; fails if it returns an error. */
const done = async (name: string, input: object, query = ""): Promise<Json> => {
  const { result } = await send("tools/call", query, session, { name, arguments: input })
  expect(result.isError, JSON.stringify(result.structuredContent)).not.toBe(true)
  return result.structuredContent
}

describe("Compact list", () => {
  const listed = (query: string, token = session): Promise<Json> => send("tools/list", query, token)

  /** What the list leaves out, because the instructions describe it or another argument replaces it. */
  const leftOut = (name: string): ReadonlyArray<string> => [
    "idempotency_key",
    "allow_duplicate",
    ...(["svc_email_list", "svc_thread_list", "svc_event_list"].includes(name) ? [] : ["limit"]),
    ...(name === "svc_email_list" ? ["offset", "wait", "after", "tag", "from", "label", "seen", "flagged"] : []),
    ...(name === "svc_email_wait" ? ["tag", "from"] : []),
    ...(name === "svc_email_get" ? ["html", "headers", "text_limit"] : []),
    ...(["svc_email_send", "svc_email_draft", "svc_draft_update"].includes(name)
      ? ["in_reply_to", "references", "headers"]
      : []),
  ]

  it("has every tool and argument that no other one replaces, in 20 kB for a credential of the whole account", async () => {
    const [compact, full] = [(await listed("")).result.tools, (await listed("?schemas=full")).result.tools]
    const names = (tools: Json) =>
      tools.map(({ name, inputSchema: { properties = {}, required = [] } }: Json) => [
        name,
        Object.keys(properties).filter((argument) => !leftOut(name).includes(argument)),
        required,
      ])
    expect(names(compact)).toEqual(names(full).filter(([name]: [string]) => name !== "svc_identity_events"))
    expect(Buffer.byteLength(JSON.stringify({ tools: compact }))).toBeLessThan(20 * 1024)
    const ofKey = (await listed("", ada.secrets.identity_key)).result.tools.map(({ name }: Json) => name)
    expect(ofKey).toContain("svc_identity_events")
  })

  it("is that of the credential's own scopes and Identities, although lists are cached", () => {
    /** Returns the listed tools with their required arguments. */
    const toolsOf = (scopes: string, identities: ReadonlyArray<string>) => {
      const caller = { kind: "grant", scopes: scopesOf(scopes), identities } as unknown as Parameters<typeof listFor>[0]
      return new Map(listFor(caller).map(({ name, inputSchema }: Json) => [name, inputSchema.required]))
    }
    const needs = (identities: ReadonlyArray<string>) => toolsOf("*", identities).get("svc_card_get")
    expect([["ada", "eve"], ["ada"], ["ada", "eve"]].map(needs)).toEqual([["handle"], undefined, ["handle"]])
    const few = toolsOf("mail:read", ["ada"])
    expect([few.has("svc_email_list"), few.has("svc_card_get")]).toEqual([true, false])
  })

  it("accepts the arguments and tools that it leaves out", async () => {
    const { handle } = ada
    expect(await done("svc_identity_events", { handle, limit: 1 })).toMatchObject({ events: [{ handle }] })
    expect(await done("svc_email_list", { handle, limit: 1, offset: 0, seen: false })).toHaveProperty("messages")
  })

  it("gives every array the type of its items, which some model providers require", async () => {
    const arrays = (schema: Json): ReadonlyArray<Json> =>
      schema === null || typeof schema !== "object"
        ? []
        : [...(schema["type"] === "array" ? [schema] : []), ...Object.values(schema).flatMap(arrays)]
    const found = arrays((await listed("")).result.tools)
    expect(found.length).toBeGreaterThan(15)
    for (const array of found) expect(array["items"]?.type, JSON.stringify(array)).toBeDefined()
  })

  /** Returns what a schema says about each of its values, by their place: type, few allowed values, required members. */
  const partsOf = (schema: Json, at = ""): ReadonlyArray<string> => {
    const { anyOf: [one] = [schema], anyOf } = schema
    const { type, enum: values, required, properties = {}, items, additionalProperties } = one
    // A query has "true" and "false" for booleans.
    if (`${values}` === "true,false") return [`${at} boolean `]
    const inner = { ...properties, "[]": items, "{}": additionalProperties?.type && additionalProperties }
    return [
      `${at} ${[type, ...(anyOf === undefined ? [] : ["null"])].flat().join(" or ")} ${required ?? ""}`,
      ...(values?.length <= 12 ? [`${at} one of ${values}`] : []),
      ...Object.entries<Json>(inner).flatMap(([name, part]) => (part ? partsOf(part, `${at}.${name}`) : [])),
    ]
  }

  it("has the parts of an argument, and one sentence about it, at the first tool that has it", async () => {
    const [compact, full] = [(await listed("")).result.tools, (await listed("?schemas=full")).result.tools]
    const described = new Set<string>()
    for (const { name, inputSchema } of compact) {
      const whole = full.find((tool: Json) => tool["name"] === name)
      for (const [argument, schema] of Object.entries<Json>(inputSchema.properties ?? {})) {
        const complete = whole.inputSchema.properties[argument]
        const mark = `${argument} ${JSON.stringify(complete)}`
        expect(schema.type, `${name} ${argument}`).toBeDefined()
        // Modes of a skill default to those of the card.
        const wanted = partsOf(complete).filter((part) => !/^\..*_modes\b/.test(part))
        if (!described.has(mark)) expect(partsOf(schema), `${name} ${argument}`).toEqual(wanted)
        const isNew = !described.has(mark) && !selfExplanatory.has(argument)
        if (isNew) {
          expect(schema.description, `${name} ${argument}`).toMatch(/^[^ ].*\.$/)
          expect(complete.description, `${name} ${argument}`).toContain(schema.description)
        } else expect(schema.description, `${name} ${argument}`).toBeUndefined()
        described.add(mark)
      }
    }
  })

  it("is limited to the toolsets that the client asks for, as are its calls", async () => {
    const { tools } = (await listed("?tools=vault,tunnel")).result
    expect(tools.map(({ name }: Json) => name)).toEqual([
      "svc_whoami",
      "svc_tunnel_get",
      "svc_vault_list",
      "svc_vault_get",
      "svc_vault_set",
      "svc_vault_delete",
    ])
    const unknown = await send("tools/call", "?tools=vault", session, { name: "svc_identity_list", arguments: {} })
    expect(unknown.error.message).toContain("Unknown tool")
    expect(await done("svc_vault_list", { identity: ada.handle }, "?tools=vault")).toHaveProperty("secrets")
    expect(await listed("?tools=vault,everything")).toMatchObject({
      code: "invalid_request",
      detail:
        "There is no toolset everything. The toolsets are identity, card, proof, mail, webhook, event, tunnel, connector, vault, account.",
    })
    expect(await listed("?schemas=some")).toMatchObject({ code: "invalid_request", errors: [{ path: "schemas" }] })
  })
})
