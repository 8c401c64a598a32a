import type { AddressBook } from "@svc/domain/Addresses"
import { documentOf } from "@svc/domain/card/Card"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let handle: string
let key: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  key = made.secrets.identity_key
})

const socket = { url: "https://agent.example", protocol_binding: "x", protocol_version: "1.0" }
const read = () => call(service.base, "GET", `/api/identities/${handle}/card`, { token: key })
const patch = (body: unknown, headers: Record<string, string> = {}) =>
  call(service.base, "PATCH", `/api/identities/${handle}/card`, { token: key, body, headers })

describe("Card", () => {
  it("starts with the Handle, no skills, and the Tunnel as its interface", async () => {
    const { body, headers } = await read()
    expect(body).toMatchObject({
      name: handle,
      description: "",
      version: "1.0.0",
      provider: null,
      capabilities: { streaming: false, push_notifications: false, extended_agent_card: false },
      default_input_modes: ["text/plain"],
      skills: [],
      interfaces: [
        {
          url: `http://${handle}.tunnel.localhost:${service.edgePort}`,
          protocol_binding: "JSONRPC",
          protocol_version: "1.0",
        },
      ],
    })
    expect(body.card).toMatchObject({
      name: handle,
      supportedInterfaces: [{ protocolBinding: "JSONRPC" }],
      capabilities: { pushNotifications: false },
      skills: [],
    })
    expect(headers.get("etag")).toMatch(/^"v1(?:;\w+)?"$/)
  })

  it("is changed by merge patch: omitted members stay, null clears, arrays replace, capabilities merge", async () => {
    const skill = { id: "s1", name: "Sum", description: "Adds numbers" }
    const first = await patch({
      name: "Ada",
      icon_url: "https://example.org/i.png",
      provider: { organization: "Analytical", url: "https://example.org" },
      capabilities: { streaming: true },
      skills: [skill],
    })
    expect(first.status).toBe(200)
    expect(first.body).toMatchObject({ name: "Ada", capabilities: { streaming: true, push_notifications: false } })
    expect(first.body.card.skills).toEqual([{ ...skill, tags: [] }])
    const second = await call(service.base, "PATCH", `/api/identities/${handle}/card`, {
      token: session,
      body: { icon_url: null, provider: null, skills: [] },
      headers: { "content-type": "application/merge-patch+json" },
    })
    expect(second.body).toMatchObject({ name: "Ada", icon_url: null, provider: null, skills: [] })
    expect(second.body.card).not.toHaveProperty("iconUrl")
    const { body } = await call(service.base, "GET", "/api/events?type=card.updated", { token: session })
    expect(body.events.map(({ data }: any) => data.changed)).toEqual([
      ["icon_url", "provider", "skills"],
      ["name", "icon_url", "provider", "capabilities", "skills"],
    ])
  })

  it.each([
    ["/name", { name: null }],
    ["/name", { name: "" }],
    ["/icon_url", { icon_url: "http://example.org/i.png" }],
    ["/provider/url", { provider: { organization: "x" } }],
    ["/capabilities/streaming", { capabilities: { streaming: null } }],
    ["/interfaces", { interfaces: [] }],
    [
      "/skills",
      {
        skills: [
          { id: "a", name: "a", description: "" },
          { id: "a", name: "b", description: "" },
        ],
      },
    ],
    ["/default_input_modes/0", { default_input_modes: ["plain"] }],
    ["/default_output_modes", { default_output_modes: Array.from({ length: 51 }, () => "text/plain") }],
    ["/interfaces", { interfaces: Array.from({ length: 21 }, () => socket) }],
    ["/skills", { skills: Array.from({ length: 201 }, (_, at) => ({ id: `${at}`, name: "a", description: "" })) }],
    ["/skills/0/tags", { skills: [{ id: "a", name: "a", description: "", tags: Array(51).fill("x") }] }],
    ["/skills/0/examples", { skills: [{ id: "a", name: "a", description: "", examples: Array(51).fill("x") }] }],
    ["/nickname", { nickname: "x" }],
  ])("rejects %s in %j", async (path, body) => {
    const answer = await patch(body)
    expect(answer.status).toBe(400)
    expect(answer.body.code).toBe("invalid_request")
    expect(answer.body.errors.map((one: any) => one.path).join(" ")).toContain(path)
  })

  it("has a new version when its Tunnel begins or ceases to require a password", async () => {
    const tagAfter = async (body: unknown) => {
      const changed = await call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, { token: session, body })
      expect(changed.status).toBe(200)
      return (await read()).headers.get("etag")
    }
    const open = (await read()).headers.get("etag")
    const locked = await tagAfter({ basic_auth: { username: "ada", password: "correct-horse-battery" } })
    expect(locked).not.toBe(open)
    // The signatures are those of the document with the password.
    const { card } = (await read()).body
    expect(Object.keys(card.securitySchemes)).toHaveLength(1)
    expect(card.signatures).toHaveLength(2)
    // Another password does not change the card.
    expect(await tagAfter({ basic_auth: { username: "ada", password: "correct-horse-staple" } })).toBe(locked)
    const opened = await tagAfter({ basic_auth: null })
    expect([open, locked]).not.toContain(opened)
  })

  it("rejects changes of an outdated version", async () => {
    const { headers } = await read()
    const tag = headers.get("etag")!
    expect((await patch({ version: "2.0.0" }, { "if-match": '"v1"' })).body.code).toBe("precondition_failed")
    const done = await patch({ version: "2.0.0" }, { "if-match": `"v1", ${tag}` })
    expect(done.status).toBe(200)
    expect(done.headers.get("etag")).not.toBe(tag)
    const known = await call(service.base, "GET", `/api/identities/${handle}/card`, {
      token: key,
      headers: { "if-none-match": done.headers.get("etag")! },
    })
    expect(known.status).toBe(304)
  })
})

describe("A2A document", () => {
  const book = { tunnelDomain: "tunnel.example", tunnelScheme: "https", tunnelPort: undefined } as AddressBook
  const whole = {
    name: "Ada",
    description: "Adds",
    version: "2.0.0",
    documentation_url: "https://docs.example/",
    icon_url: "https://icon.example/",
    provider: { organization: "Analytical", url: "https://a.example/" },
    capabilities: { streaming: true, push_notifications: false, extended_agent_card: true },
    default_input_modes: ["text/plain"],
    default_output_modes: ["image/png"],
    interfaces: [{ url: "https://ada.tunnel.example/a2a", protocol_binding: "JSONRPC", protocol_version: "1.0" }],
    skills: [
      {
        id: "sum",
        name: "Sum",
        description: "Adds numbers",
        tags: ["math"],
        examples: ["1 + 1"],
        input_modes: ["text/csv"],
        output_modes: ["text/html"],
      },
    ],
  } satisfies Parameters<typeof documentOf>[2]

  it("has every member of the card under the name of A2A", () => {
    expect(documentOf(book, "ada", whole, true)).toEqual({
      name: "Ada",
      description: "Adds",
      version: "2.0.0",
      documentationUrl: "https://docs.example/",
      iconUrl: "https://icon.example/",
      provider: { organization: "Analytical", url: "https://a.example/" },
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["image/png"],
      supportedInterfaces: [
        { url: "https://ada.tunnel.example/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      ],
      securitySchemes: { tunnel: { httpAuthSecurityScheme: { scheme: "Basic" } } },
      securityRequirements: [{ schemes: { tunnel: { list: [] } } }],
      skills: [
        {
          id: "sum",
          name: "Sum",
          description: "Adds numbers",
          tags: ["math"],
          examples: ["1 + 1"],
          inputModes: ["text/csv"],
          outputModes: ["text/html"],
        },
      ],
    })
  })

  it("asks for no password of a Tunnel that the card does not name", () => {
    const elsewhere = { ...whole, interfaces: [{ ...whole.interfaces[0]!, url: "https://elsewhere.example" }] as const }
    expect(documentOf(book, "ada", elsewhere, true)).not.toHaveProperty("securitySchemes")
  })
})

describe("Public profile", () => {
  it("shows the current card under any spelling", async () => {
    await patch({ description: "Computes things." })
    const spelled = `${handle.slice(0, 3).toUpperCase()}-${handle.slice(3)}`
    const { status, body, headers } = await call(service.base, "GET", `/api/profiles/${spelled}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      handle,
      name: "Ada",
      description: "Computes things.",
      email: `${handle}@mail.localhost`,
    })
    expect(body.card.description).toBe("Computes things.")
    expect(headers.get("ratelimit-policy")).toBe('"profile";q=1000000000;w=60')
  })

  it("returns the same 404 for unknown and deleted names", async () => {
    const deleted = await makeIdentity(service.base, session)
    await call(service.base, "DELETE", `/api/identities/${deleted.handle}`, { token: session })
    const one = await call(service.base, "GET", `/api/profiles/${deleted.handle}`)
    const two = await call(service.base, "GET", "/api/profiles/nobody-at-all")
    expect([one.status, two.status]).toEqual([404, 404])
    expect({ ...one.body, instance: "" }).toEqual({ ...two.body, instance: "" })
  })
})
