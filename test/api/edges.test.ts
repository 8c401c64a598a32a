/**
 * Every limit in the OpenAPI document is enforced exactly: values at and within the limit are accepted, a value beyond it
 * is rejected by name. Requests are generated from the document's schemas, so new members are included automatically.
 */
import { exampleOf } from "@svc/api/openapi/Examples"
import { document } from "@svc/api/openapi/Document"
import { beforeAll, describe, expect, it } from "vitest"
import { type ApiResponse, call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { type Operation, operations, pathOf } from "./Operations.ts"

let service: TestService
let session: string
let handle: string
/** A message that is not the newest one, so that a wait for later messages returns immediately. */
let former: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
  for (const subject of ["one", "two", "three"])
    await send(service.smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject, text: "x" })
  const { body } = await eventually(
    () => call(service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
    ({ body }) => body.messages.length === 3,
  )
  former = body.messages[2].id
})

type Json = Record<string, any>
const named = (ref: string): Json => document["components"].schemas[ref.split("/").at(-1)!]
const plain = (schema: Json): Json => (schema["$ref"] === undefined ? schema : { ...named(schema["$ref"]), ...schema })

interface Limit {
  readonly where: "body" | "query" | "path" | "header"
  /** Path of members within the body, or one name in a query, path or header. */
  readonly at: ReadonlyArray<string>
  readonly schema: Json
  readonly keyword: "minLength" | "maxLength" | "minimum" | "maximum" | "minItems" | "maxItems"
}
const keywords = ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"] as const

const limitsOf = (given: Json, where: Limit["where"], at: ReadonlyArray<string>): ReadonlyArray<Limit> => {
  const schema = plain(given)
  return [
    ...keywords.flatMap((keyword) => (schema[keyword] === undefined ? [] : [{ where, at, schema, keyword }])),
    ...[...(schema["anyOf"] ?? []), ...(schema["allOf"] ?? [])].flatMap((one: Json) => limitsOf(one, where, at)),
    ...Object.entries<Json>(schema["properties"] ?? {}).flatMap(([name, one]) => limitsOf(one, where, [...at, name])),
    ...(schema["items"] ? limitsOf(schema["items"], where, [...at, "0"]) : []),
    ...(typeof schema["additionalProperties"] === "object"
      ? limitsOf(schema["additionalProperties"], where, [...at, "X-Header"])
      : []),
  ]
}

/** Returns limits that no text of that length can reach, because another rule is stricter. */
const unreachable = (limit: Limit) => {
  const name = limit.at.at(-1)!
  const of = limit.at.at(-2)
  if (limit.keyword !== "maxLength") return undefined
  if (name === "address" && limit.where !== "query") return "an address has at most 254 characters"
  if (of === "callers") return "an origin or a Handle is one of few forms"
  return of === "networks" || of === "allowed_networks" ? "no network is written in so many" : undefined
}

/** The Handle of an Identity may have more hyphens than a new one; `handles` and `policy` test it. */
const isSpelling = ({ at, where }: Limit, id: string) =>
  id !== "identities.create" &&
  id !== "handles.check" &&
  ["handle", "identity"].includes(where === "body" && at[0] === "handles" ? "handle" : at.at(-1)!)

const textOf = (length: number, { at, schema }: Limit): string => {
  const name = at.at(-1)!
  const of = at.at(-2)
  const filled = (begin: string, by = "a") =>
    length < begin.length ? begin.slice(0, length) : begin.padEnd(length, by)
  if (/^(?:email|idn-email)$/.test(schema["format"] ?? "")) {
    const domain = `${"d".repeat(60)}.`.repeat(8)
    return `a@${domain.slice(0, Math.max(0, length - 10))}`.replace(/\.?$/, "").padEnd(length - 8, "d") + ".example"
  }
  if (["url", "documentation_url", "icon_url"].includes(name)) return filled("https://example.org/")
  if (of?.endsWith("_modes") === true) return filled("a/b", "b")
  return name === "path" ? filled("/") : "a".repeat(length)
}

const itemsOf = (length: number, { at, schema }: Limit): ReadonlyArray<unknown> => {
  const name = at.at(-1)!
  const made: Readonly<Record<string, (index: number) => unknown>> = {
    scopes: () => "mail:read",
    networks: (index) => `10.0.0.${index}`,
    callers: (index) => `agent${index}`,
    allowed_networks: (index) => `10.0.0.${index}`,
    handles: (index) => `someone${index}`,
    event_types: () => "email.received",
    ids: () => "msg_01kjr8xr3v7k2t9m4q6w8y0zab",
    threads: () => "thr_01kjr8xr3v7k2t9m4q6w8y0zab",
    references: (index) => `<${index}@example.org>`,
    interfaces: (index) => ({
      url: `https://example.org/${index}`,
      protocol_binding: "JSONRPC",
      protocol_version: "1.0",
    }),
    skills: (index) => ({ id: `skill-${index}`, name: "A skill", description: "It does." }),
    attachments: (index) => ({ filename: `${index}.txt`, content_type: "text/plain", content_base64: "eA==" }),
  }
  const one =
    made[name] ??
    (name.endsWith("_modes")
      ? (index: number) => `text/x${index}`
      : /^(?:to|cc|bcc)$/.test(name)
        ? (index: number) => `p${index}@example.org`
        : (index: number) => `item${index}`)
  expect(schema["items"], at.join("/")).toBeDefined()
  return Array.from({ length }, (_, index) => one(index))
}

const valueOf = (size: number, limit: Limit): unknown =>
  limit.keyword.endsWith("Length") ? textOf(size, limit) : limit.keyword.endsWith("Items") ? itemsOf(size, limit) : size

/** Returns the body with a value in one place, and with the members that the schema requires there. */
const placed = (given: Json, present: unknown, at: ReadonlyArray<string>, value: unknown): unknown => {
  const [member, ...rest] = at
  if (member === undefined) return value
  const schema = plain(given)
  const choice =
    (schema["anyOf"] ?? [schema]).map(plain).find((one: Json) => one["properties"] ?? one["items"]) ?? schema
  if (choice["items"]) return [placed(choice["items"], Array.isArray(present) ? present[0] : undefined, rest, value)]
  const complete = present ?? exampleOf(choice, (ref) => named(ref), member)
  const inner = choice["properties"]?.[member] ?? choice["additionalProperties"]
  return { ...(complete as Json), [member]: placed(inner, (complete as Json | undefined)?.[member], rest, value) }
}

const schemaOf = (operation: Operation): Json =>
  document["paths"][operation.path.replace(/:(\w+)/g, "{$1}")][operation.method.toLowerCase()]

/** Sends a request that tests one limit. */
const ask = (operation: Operation, limit: Limit, value: unknown): Promise<ApiResponse> => {
  const [name] = limit.at
  const [path, query = ""] = pathOf(operation, handle).split("?") as [string, string?]
  const params = new URLSearchParams(query)
  let at = path
  if (limit.where === "query") params.set(name!, String(value))
  if (["wait", "seconds"].includes(name!)) params.set("after", former)
  if (limit.where === "path") {
    const index = operation.path.split("/").indexOf(`:${name}`)
    at = path
      .split("/")
      .with(index, encodeURIComponent(String(value)))
      .join("/")
  }
  const example: Json = { ...operation.body, ...(operation.id === "exports.create" ? { identity: handle } : {}) }
  // The limit counts recipients of all three kinds together.
  for (const kind of ["to", "cc", "bcc"]) if (Array.isArray(example[kind]) && kind !== name) example[kind] = []
  const schema = schemaOf(operation)["requestBody"]?.content["application/json"].schema
  const body = limit.where === "body" ? placed(schema, example, limit.at, value) : operation.body && example
  return call(service.base, operation.method, params.size === 0 ? at : `${at}?${params}`, {
    ...(operation.access === undefined ? {} : { token: session }),
    ...(body === undefined || operation.method === "GET" ? {} : { body }),
    headers: limit.where === "header" ? { [name!]: String(value) } : {},
  })
}

/** Returns whether a value was rejected for its length or size, whatever else the operation would report. */
const isRefusedAt = ({ status, body }: ApiResponse, { at, where }: Limit): boolean => {
  if (["handle_invalid", "secret_name_invalid"].includes(body?.code)) return true
  if (status !== 400 || !/^The (?:(?:body|query|path|headers) is not valid|Idempotency-Key)/.test(body.detail))
    return false
  const pointer = `/${at.join("/")}`
  return (
    body.code === "invalid_request" &&
    (where === "header" ||
      body.errors.some(({ path }: { path: string }) => path === pointer || path.startsWith(`${pointer}/`)))
  )
}

describe("Limits of", () => {
  const limited = operations.flatMap((operation) => {
    const schema = schemaOf(operation)
    const limits = [
      ...limitsOf(schema["requestBody"]?.content["application/json"]?.schema ?? {}, "body", []),
      ...schema["parameters"].flatMap((one: Json) => limitsOf(one["schema"], one["in"], [one["name"]])),
    ]
      .filter((limit) => !isSpelling(limit, operation.id))
      // Every POST accepts an `Idempotency-Key`. Operations that remove their target are left out, since they would end the session or the
      // Identity.
      .filter(({ where }) => where !== "header" || operation.method === "POST")
    return limits.length === 0 ? [] : [[operation.id, operation, limits] as const]
  })

  it("all operations are those of the recorded list", async () => {
    const lines = limited.flatMap(([id, , limits]) =>
      limits.map(({ where, at, schema, keyword }) => `${id} ${where} ${at.join("/")} ${keyword} ${schema[keyword]}`),
    )
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("limits.txt")
  })

  it.each(limited)("%s match the document", async (_, operation, limits) => {
    for (const limit of limits) {
      const edge: number = limit.schema[limit.keyword]
      const inward = limit.keyword.startsWith("min") ? 1 : -1
      const what = `${operation.id} ${limit.where} ${limit.at.join("/")} ${limit.keyword}`
      // The header is checked after its resource was found.
      const isJudgedFirst = operation.id === "events.replay" && limit.where === "header"
      if (unreachable(limit) === undefined) {
        for (const size of new Set([edge, edge + inward])) {
          const answer = await ask(operation, limit, valueOf(size, limit))
          expect(isRefusedAt(answer, limit), `${what} of ${size}: ${JSON.stringify(answer.body)}`).toBe(false)
        }
      }
      // The smallest value is the lower end of the range.
      if (edge - inward < 0 && !limit.keyword.endsWith("imum")) continue
      const beyond = await ask(operation, limit, valueOf(edge - inward, limit))
      expect(isRefusedAt(beyond, limit) || isJudgedFirst, `${what} beyond: ${JSON.stringify(beyond.body)}`).toBe(true)
    }
  })
})

describe("A list that waits", () => {
  it("has the page and the cursor of one that does not wait", async () => {
    const page = async (query: string) =>
      (
        await call(service.base, "GET", `/api/identities/${handle}/messages?after=${former}&${query}`, {
          token: session,
        })
      ).body
    for (const limit of [1, 2]) {
      const read = await page(`limit=${limit}`)
      expect([read.messages.length, typeof read.next_cursor]).toEqual([limit, limit === 1 ? "string" : "object"])
      const { next_cursor, ...waited } = await page(`limit=${limit}&wait=1`)
      expect([waited, typeof next_cursor]).toEqual([{ messages: read.messages }, typeof read.next_cursor])
    }
  })
})

describe("Limit that is counted otherwise", () => {
  const secret = (value: string, name = "edge") =>
    call(service.base, "PUT", `/api/vault/secrets/${name}`, { token: session, body: { value } })

  it("is 64 KiB of UTF-8 for a secret's value", async () => {
    expect((await secret("ä".repeat(32 * 1024))).status).toBe(201)
    expect((await secret("a".repeat(64 * 1024))).status).toBe(200)
    const beyond = await secret(`${"ä".repeat(32 * 1024)}a`)
    expect([beyond.status, beyond.body.code]).toEqual([413, "payload_too_large"])
  })

  it("is 128 characters for a secret's name", async () => {
    expect((await secret("v", "a".repeat(128))).status).toBe(201)
    expect((await secret("v", "a".repeat(129))).body.code).toBe("secret_name_invalid")
  })

  it("is 50 recipients of one message of all kinds together", async () => {
    const people = (count: number, of: string) => Array.from({ length: count }, (_, at) => `${of}${at}@example.org`)
    const { session: token } = await signUp(service.base)
    const sender = (await makeIdentity(service.base, token)).handle
    const mail = (cc: number) => ({ to: people(25, "to"), cc: people(cc, "cc"), bcc: people(5, "bcc"), text: "x" })
    const ask = (cc: number) =>
      call(service.base, "POST", `/api/identities/${sender}/messages/send`, { token, body: mail(cc) })
    expect((await ask(20)).body.code).toBe("recipient_not_allowed")
    expect((await ask(21)).body.code).toBe("message_invalid")
  })
})
