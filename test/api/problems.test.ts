import { document } from "@svc/api/openapi/Document"
import { table } from "@svc/domain/problems/Table"
import { beforeAll, describe, expect, it } from "vitest"
import { type ApiResponse, call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { type Operation, operations, pathOf } from "./Operations.ts"

let service: TestService
let session: string
let [handle, identityKey] = ["", ""]
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  identityKey = made.secrets.identity_key
})

describe("Every refusal is a problem", () => {
  const refusals: ReadonlyArray<readonly [string, () => Promise<ApiResponse>, number, string]> = [
    ["a path that does not exist", () => call(service.base, "GET", "/api/nothing"), 404, "not_found"],
    [
      "a method the path does not have",
      () => call(service.base, "PATCH", "/api/keys", { token: session }),
      405,
      "method_not_allowed",
    ],
    [
      "a first sign-in without the Terms",
      () => call(service.base, "POST", "/api/auth/magic-link", { body: { email: "new@example.org" } }),
      422,
      "tos_not_accepted",
    ],
    ["no credential", () => call(service.base, "GET", "/api/keys"), 401, "unauthenticated"],
    [
      "garbage for a credential",
      () => call(service.base, "GET", "/api/keys", { token: "svc_admin_x" }),
      401,
      "unauthenticated",
    ],
    [
      "malformed JSON",
      () => call(service.base, "POST", "/api/keys", { token: session, body: "{" }),
      400,
      "invalid_request",
    ],
    [
      "a missing member",
      () => call(service.base, "POST", "/api/keys", { token: session, body: {} }),
      400,
      "invalid_request",
    ],
    [
      "an unknown member",
      () => call(service.base, "POST", "/api/keys", { token: session, body: { name: "a", x: 1 } }),
      400,
      "invalid_request",
    ],
    [
      "a wrong type",
      () => call(service.base, "POST", "/api/keys", { token: session, body: { name: 1 } }),
      400,
      "invalid_request",
    ],
    [
      "an unknown query parameter",
      () => call(service.base, "GET", "/api/events?x=1", { token: session }),
      400,
      "invalid_request",
    ],
    [
      "a limit out of range",
      () => call(service.base, "GET", "/api/events?limit=201", { token: session }),
      400,
      "invalid_request",
    ],
    [
      "a time that no store has",
      () => call(service.base, "GET", "/api/audit?since=-271821-04-20", { token: session }),
      400,
      "invalid_request",
    ],
    ["a malformed id", () => call(service.base, "GET", "/api/keys/12", { token: session }), 400, "invalid_request"],
    [
      "a cursor of our own making",
      () => call(service.base, "GET", "/api/events?cursor=abc", { token: session }),
      400,
      "invalid_cursor",
    ],
    [
      "another media type",
      () =>
        call(service.base, "POST", "/api/keys", {
          token: session,
          body: "name=a",
          headers: { "content-type": "text/csv" },
        }),
      415,
      "unsupported_media_type",
    ],
    [
      "a body over 1 MiB",
      () => call(service.base, "POST", "/api/keys", { token: session, body: { name: "a".repeat(1024 * 1024 + 1) } }),
      413,
      "payload_too_large",
    ],
    [
      "NUL in a path",
      () => call(service.base, "GET", "/api/identities/a%00b", { token: session }),
      400,
      "invalid_request",
    ],
  ]
  for (const [what, make, status, code] of refusals) {
    it(what, async () => {
      const answer = await make()
      expect([answer.status, answer.body.code]).toEqual([status, code])
      expect(answer.headers.get("content-type")).toMatch("application/problem+json")
      expect(answer.body).toMatchObject({
        type: `/problems/${code}`,
        status,
        title: table[code as keyof typeof table].title,
        agent_hint: table[code as keyof typeof table].agent_hint,
        instance: answer.headers.get("request-id"),
        doc_url: `${service.base}/problems/${code}`,
      })
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
      if (status === 405) expect(answer.headers.get("allow")).toBe("GET, HEAD, POST, OPTIONS")
    })
  }

  it("lists at most 20 errors, and rejects bodies of more than 5000 values", async () => {
    const unknown = (members: number) =>
      Object.fromEntries(Array.from({ length: members }, (_, index) => [`x${index}`, 1]))
    const wrong = (members: number) =>
      call(service.base, "POST", "/api/keys", { token: session, body: unknown(members) })
    const few = await wrong(3)
    expect(few.body.errors.map(({ path }: { path: string }) => path)).toEqual(
      expect.arrayContaining(["/x0", "/x1", "/x2"]),
    )
    const several = await wrong(1000)
    expect([several.status, several.body.code, several.body.errors.length]).toEqual([400, "invalid_request", 20])
    const many = await wrong(50_000)
    expect([many.status, many.body.code, many.body.detail]).toEqual([
      400,
      "invalid_request",
      "The request body contains more than 5000 values.",
    ])
  })

  it("limits anonymous bodies to 64 KiB and counts the call before reading the body", async () => {
    const contact = (message: string) =>
      call(service.base, "POST", "/api/contact", { body: { email: "a@example.com", message } })
    const refused = await contact("a".repeat(64 * 1024))
    expect([refused.status, refused.body.code]).toEqual([413, "payload_too_large"])
    const wrong = await contact("")
    expect([wrong.status, wrong.headers.get("ratelimit")]).toEqual([400, expect.stringContaining('"contact"')])
  })

  it("names the invalid member by a JSON Pointer", async () => {
    const { body } = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "a", "x/y": 1 } })
    expect(body.errors[0].path).toBe("/x~1y")
  })

  it("lists every accepted value", async () => {
    const refused = await call(service.base, "PATCH", "/api/account", { token: session, body: { language: "it" } })
    expect(refused.body.errors).toEqual([{ path: "/language", message: 'expected "en" or "de" or "fr"' }])
    const { body } = await call(service.base, "GET", "/api/keys?limit=many", { token: session })
    expect(body.errors).toEqual([{ path: "/limit", message: "expected a number" }])
  })

  it("never echoes a value or a credential", async () => {
    const long = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "x".repeat(500) } })
    expect(long.body.errors[0].message).toMatch(/^expected a length of at most \d+$/)
    const answer = await call(service.base, "GET", "/api/keys", { token: `${session}x` })
    expect(JSON.stringify(answer.body)).not.toContain("svc_sess_")
  })
})

describe("A device login", () => {
  const start = async () => (await call(service.base, "POST", "/api/auth/device", { body: { name: "laptop" } })).body
  const poll = (device_code: string) => call(service.base, "POST", "/api/auth/device/token", { body: { device_code } })
  const decide = (user_code: string, decision: string, body?: object) =>
    call(service.base, "POST", `/api/auth/device/${user_code}/${decision}`, {
      token: session,
      ...(body === undefined ? {} : { body }),
    })
  const codeOf = async (answer: Promise<ApiResponse>) => {
    const { status, body } = await answer
    expect(status).toBe(table[body.code as keyof typeof table].status)
    return body.code
  }

  it("tells the terminal to wait, to slow down and what was decided", async () => {
    const pending = await start()
    // The second of two calls at once is always too early; on a busy machine, a later call might not be.
    const both = [poll(pending.device_code), poll(pending.device_code)]
    expect((await Promise.all(both.map(codeOf))).toSorted()).toEqual(["authorization_pending", "slow_down"])
    expect(await codeOf(poll("svc_device_nothing"))).toBe("device_code_invalid")

    expect((await decide(pending.user_code, "deny")).status).toBe(204)
    expect(await codeOf(poll(pending.device_code))).toBe("device_code_denied")
    for (const decision of ["approve", "deny"])
      expect(await codeOf(decide(pending.user_code, decision))).toBe("device_authorization_settled")

    const approved = await start()
    expect(await codeOf(decide(approved.user_code, "approve", { scopes: ["mail:everything"] }))).toBe("scope_unknown")
    expect((await decide(approved.user_code, "approve")).status).toBe(204)
    expect((await poll(approved.device_code)).body.key).toMatch(/^svc_admin_/)
    expect(await codeOf(poll(approved.device_code))).toBe("device_code_used")

    const expired = await start()
    await service.query((sql) => sql`update device_authorization set expires_at = now() where status = 'pending'`)
    expect(await codeOf(poll(expired.device_code))).toBe("device_code_expired")
    expect(await codeOf(decide(expired.user_code, "approve"))).toBe("device_authorization_settled")
    expect(await codeOf(decide("BBBB-BBBB", "deny"))).toBe("not_found")
  })
})

describe("Problem pages", () => {
  it("exist for each code of the table", async () => {
    for (const [code, row] of Object.entries(table)) {
      const page: ApiResponse = await call(service.base, "GET", `/problems/${code}`)
      expect(page.status).toBe(200)
      expect(page.body).toContain(`<code>${code}</code>`)
      expect(String(page.body)).toContain(String(row.status))
    }
    expect((await call(service.base, "GET", "/problems/__proto__")).status).toBe(404)
  })
})

describe("Health", () => {
  it("lists each component of the process", async () => {
    // On a busy machine, a component may be late for a moment.
    const { status, body, headers } = await eventually<ApiResponse>(
      () => call(service.base, "GET", "/api/healthz"),
      (answer) => answer.body.status === "pass",
    )
    expect([status, body.version, headers.get("cache-control")]).toEqual([200, "0.1.0", "no-store"])
    expect(body.components.map(({ name }: { name: string }) => name).sort()).toEqual([
      "audit",
      "cluster",
      "database",
      "edge",
      "imap",
      "smtp",
      "submission",
      "tunnel_ports",
    ])
  })
})

describe("Timestamp parameter", () => {
  const wrong = ["foo 2030", "2030-02-31", "2030-02-31T00:00:00Z", "1 Jan 2030", "2030-01-01T00:00:00", "1893456000"]
  const schemas: Record<string, any> = document["components"].schemas
  const plain = (schema: any) => (schema?.$ref === undefined ? schema : schemas[schema.$ref.split("/").at(-1)])
  const isTime = ({ format, anyOf = [] }: any) => format === "date-time" || anyOf.some(isTime)
  const places = operations.flatMap((operation) => {
    const described = document["paths"][operation.path.replace(/:(\w+)/g, "{$1}")][operation.method.toLowerCase()]
    const body = plain(described.requestBody?.content["application/json"]?.schema)?.properties ?? {}
    return [
      ...described.parameters
        .filter(({ schema }: any) => isTime(schema))
        .map(({ name }: any) => [operation, name, true]),
      ...Object.keys(body).flatMap((name) => (isTime(plain(body[name])) ? [[operation, name, false]] : [])),
    ] as ReadonlyArray<readonly [Operation, string, boolean]>
  })

  it("is rejected by name in every query and body unless it is RFC 3339 with a zone and a real day", async () => {
    expect(places.map(([{ id }, name]) => `${id} ${name}`).toSorted()).toEqual([
      "api_keys.create expires_at",
      "api_keys.createForIdentity expires_at",
      "audit.export since",
      "audit.export until",
      "audit.list since",
      "audit.list until",
      "audit.usage since",
      "grants.update expires_at",
      "usage.read from",
      "usage.read to",
      "webhooks.recover since",
    ])
    for (const [operation, name, inQuery] of places) {
      for (const text of wrong) {
        const path = pathOf(operation, handle)
        const { status, body } = await call(
          service.base,
          operation.method,
          inQuery ? `${path}?${name}=${encodeURIComponent(text)}` : path,
          { token: session, ...(inQuery ? {} : { body: { ...operation.body, [name]: text } }) },
        )
        expect([status, body.code, body.errors[0].path], `${operation.id} ${text}`).toEqual([
          400,
          "invalid_request",
          `/${name}`,
        ])
        expect(body.detail).toContain("2026-11-20T12:00:00Z")
      }
    }
  })
})

describe("Refusal of parameters", () => {
  it("names unknown members of a query, also at endpoints without a query", async () => {
    const errorsOf = async (method: string, path: string, body?: object) => {
      const answer = await call(service.base, method, path, { token: session, ...(body === undefined ? {} : { body }) })
      return [answer.status, answer.body.detail, answer.body.errors]
    }
    const none = "unknown member; the query takes none"
    expect(await errorsOf("POST", "/api/keys?x=1", { name: "a" })).toEqual([
      400,
      `The query is not valid at /x: ${none}`,
      [{ path: "/x", message: none }],
    ])
    expect(await errorsOf("DELETE", `/api/identities/${handle}?force=1&dry~run=1`)).toEqual([
      400,
      `The query is not valid at /force: ${none}`,
      [
        { path: "/force", message: none },
        { path: "/dry~0run", message: none },
      ],
    ])
    const anonymous = await call(service.base, "POST", "/api/auth/device?name=x", { body: {} })
    expect([anonymous.status, anonymous.body.errors]).toEqual([400, [{ path: "/name", message: none }]])
    expect((await errorsOf("GET", "/api/keys?page=2"))[2]).toEqual([
      { path: "/page", message: "unknown member; the query takes `limit` and `cursor`" },
    ])
    // The list is that of the top level, so it says nothing about other levels.
    const nested = { name: "a", default_input_modes: ["text/plain"], capabilities: { flying: true } }
    expect((await errorsOf("PATCH", `/api/identities/${handle}/card`, nested))[2]).toEqual([
      { path: "/capabilities/flying", message: "unknown member" },
    ])
    // The rejected requests created and removed nothing, and public endpoints accept additional parameters.
    expect((await errorsOf("GET", `/api/identities/${handle}`))[0]).toBe(200)
    expect((await call(service.base, "GET", "/api/healthz?probe=1")).status).toBe(200)
    expect((await call(service.base, "POST", "/api/hits?x=1", { body: {} })).body.errors[0].path).toBe("/x")
  })

  it("explains what a Handle is if an email address is given", async () => {
    for (const token of [session, identityKey]) {
      const address = `/api/identities/${encodeURIComponent(`${handle}@mail.localhost`)}/card`
      const { status, body } = await call(service.base, "PATCH", address, { token, body: {} })
      expect([status, body.code, body.errors]).toEqual([
        400,
        "invalid_request",
        [{ path: "/handle", message: "expected a Handle such as `ada`, not an email address" }],
      ])
    }
  })
})
