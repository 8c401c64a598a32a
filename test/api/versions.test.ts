import { inOlderForm } from "@svc/api/http/Translations"
import { newestVersion } from "@svc/domain/Versions"
import { HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type OwnService } from "../harness/Service.ts"

/** Exists only in this test: the name of a card was `title` before, and the state of sign-up was a boolean. */
const [first, second, third] = ["2026-01-01", "2026-02-02", "2026-03-03"]
const versions = [
  { version: first, changes: [] },
  {
    version: second,
    changes: [
      {
        summary: "`title` of a card is called `label`.",
        operations: ["cards.read", "cards.patch"],
        toOlderResponse: ({ label, ...card }: any) => (label === undefined ? card : { ...card, title: label }),
        toNewerRequest: ({ title, ...card }: any) => (title === undefined ? card : { ...card, label: title }),
      },
      {
        summary: "`open` of the registration is called `state`.",
        operations: ["sign_in.registration"],
        toOlderResponse: ({ state, ...rest }: any) =>
          state === undefined ? rest : { ...rest, open: state === "open" },
      },
    ],
  },
  {
    version: third,
    changes: [
      {
        summary: "`label` of a card is called `name`.",
        operations: ["cards.read", "cards.patch"],
        toOlderResponse: ({ name, ...card }: any) => (name === undefined ? card : { ...card, label: name }),
        toNewerRequest: ({ label, ...card }: any) => (label === undefined ? card : { ...card, name: label }),
      },
    ],
  },
] as const

let service: OwnService
let session: string
let admin: string
let key: string
let card: string
beforeAll(async () => {
  service = await startService({ versions })
  session = (await signUp(service.base)).session
  const made = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "admin" } })
  admin = made.body.key
  const { handle, secrets } = await makeIdentity(service.base, admin)
  key = secrets.identity_key
  card = `/api/identities/${handle}/card`
})
afterAll(() => service.stop())

const inVersion = (version: string, method: string, path: string, body?: unknown) =>
  call(service.base, method, path, { token: key, headers: { "svc-version": version }, ...(body ? { body } : {}) })

describe("A version of the API", () => {
  it("answers a pinned request in the form of its version, through every version between", async () => {
    await inVersion(third, "PATCH", card, { name: "Ada" })
    const answers = await Promise.all([first, second, third].map((version) => inVersion(version, "GET", card)))
    expect(answers.map(({ body }) => [body.title, body.label, body.name])).toEqual([
      ["Ada", undefined, undefined],
      [undefined, "Ada", undefined],
      [undefined, undefined, "Ada"],
    ])
    expect(answers.map(({ headers }) => headers.get("svc-version"))).toEqual([first, second, third])
  })

  it("reads the body of a pinned request in the form of its version, and answers in it", async () => {
    const changed = await inVersion(first, "PATCH", card, { title: "Grace" })
    expect([changed.status, changed.body.title, changed.body.name]).toEqual([200, "Grace", undefined])
    expect((await inVersion(third, "GET", card)).body.name).toBe("Grace")
    const refused = await inVersion(third, "PATCH", card, { title: "Joan" })
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"])
  })

  it("keeps the entity tag of a resource, so that a change in an older version is not lost", async () => {
    const seen = await inVersion(first, "GET", card)
    const change = (etag: string | null) =>
      call(service.base, "PATCH", card, {
        token: key,
        headers: { "svc-version": first, "if-match": etag! },
        body: { title: "Hedy" },
      })
    expect((await change(seen.headers.get("etag"))).status).toBe(200)
    expect((await change(seen.headers.get("etag"))).status).toBe(412)
  })

  it("returns a stored response to a repeated request in the version of the repeat", async () => {
    const change = (version: string) =>
      call(service.base, "PATCH", card, {
        token: key,
        headers: { "svc-version": version, "idempotency-key": "versions" },
        // The members have the same names in every version.
        body: { description: "Mathematician" },
      })
    const [before, after] = [await change(first), await change(third)]
    expect(after.headers.get("idempotent-replayed")).toBe("true")
    expect([before.body.title, after.body.title, after.body.name]).toEqual(["Hedy", undefined, "Hedy"])
  })

  it("applies to requests without a credential", async () => {
    const read = (headers: Record<string, string>) => call(service.base, "GET", "/api/auth/registration", { headers })
    const [old, latest] = [await read({ "svc-version": first }), await read({})]
    expect([old.body, latest.body]).toEqual([{ open: true }, { state: "open" }])
    expect([old.headers.get("svc-version"), latest.headers.get("svc-version")]).toEqual([first, third])
  })

  it.each(["2026-01-02", "tomorrow", ""])("is refused with the known ones if it is unknown: %j", async (version) => {
    const refused = await inVersion(version, "GET", card)
    expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
      400,
      "invalid_request",
      `Unknown version of the API. Known are ${first}, ${second}, ${third}; the newest is ${third}.`,
    ])
    expect(refused.body.errors).toEqual([
      { path: "/svc-version", message: `expected one of ${first}, ${second}, ${third}` },
    ])
  })

  it("is listed with what changed", async () => {
    const { body } = await call(service.base, "GET", "/api/versions")
    expect([body.newest, body.versions.length, body.versions[2]]).toEqual([
      third,
      3,
      { version: third, changes: ["`label` of a card is called `name`."] },
    ])
  })
})

it("A translation changes successful objects only", () => {
  const translated = (response: HttpServerResponse.HttpServerResponse) => {
    const { body, status } = inOlderForm(response, ({ name }: any) => ({ title: name }))
    return [status, body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : body._tag]
  }
  const json = (text: string, status: number) =>
    HttpServerResponse.text(text, { status, contentType: "application/json" })
  expect(translated(json('{"name":"Ada"}', 201))).toEqual([201, '{"title":"Ada"}'])
  for (const [text, status] of [
    ['{"name":"Ada"}', 400],
    ["[]", 200],
    ["null", 200],
    ["{", 200],
  ] as const)
    expect(translated(json(text, status))).toEqual([status, text])
  expect(translated(HttpServerResponse.text('{"name":"Ada"}'))).toEqual([200, '{"name":"Ada"}'])
})

describe("The account's version", () => {
  const account = (method: string, body?: unknown) =>
    call(service.base, method, "/api/account", { token: session, ...(body === undefined ? {} : { body }) })

  it("is the newest of the day on which the account is made, and applies to requests without the header", async () => {
    expect((await account("GET")).body.api_version).toBe(third)
    const read = await call(service.base, "GET", card, { token: key })
    expect([read.headers.get("svc-version"), read.body.name]).toEqual([third, "Hedy"])
  })

  it("can be changed to a known version by the account holder, and only by them", async () => {
    expect((await account("PATCH", { api_version: first })).body.api_version).toBe(first)
    const read = await call(service.base, "GET", card, { token: key })
    expect([read.headers.get("svc-version"), read.body.title]).toEqual([first, "Hedy"])
    // The header wins over the setting.
    expect((await inVersion(third, "GET", card)).body.name).toBe("Hedy")
    const refused = await account("PATCH", { api_version: "2020-01-01" })
    expect([refused.status, refused.body.errors[0].path]).toEqual([400, "/api_version"])
    const byKey = await call(service.base, "PATCH", "/api/account", { token: admin, body: { api_version: third } })
    expect(byKey.body.code).toBe("session_required")
  })

  it("does not apply to tools, whose list describes the newest version", async () => {
    const { body, headers } = await call(service.base, "POST", "/api/mcp", {
      token: key,
      headers: { "svc-version": first },
      body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "svc_card_get", arguments: {} } },
    })
    expect(body.result.structuredContent.name).toBe("Hedy")
    expect(headers.get("svc-version")).toBe(third)
    // Pages have no versions.
    expect((await fetch(`${service.base}/terms`, { headers: { "svc-version": "tomorrow" } })).status).toBe(200)
  })

  it("falls back to the oldest served version when its own is served no more", async () => {
    const { org } = (await call(service.base, "GET", "/api/auth/session", { token: session })).body
    await service.query((sql) => sql`update org set api_version = '2025-01-01' where id = ${org.id}`)
    expect((await call(service.base, "GET", card, { token: key })).headers.get("svc-version")).toBe(first)
  })
})

it("An account of today gets the newest version of the service", async () => {
  const today = await startService()
  try {
    const { org } = await signUp(today.base)
    expect(org.api_version).toBe(newestVersion)
  } finally {
    await today.stop()
  }
})
