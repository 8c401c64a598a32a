/** Compression of responses, entity tags of encodings, and what is never compressed. */
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { Confidential, ShowsSecret } from "@svc/domain/account/Policy"
import { codingFor, compressed } from "@svc/api/http/Compression"
import { document } from "@svc/api/openapi/Document"
import { makeRequestContext } from "@svc/api/RequestContext"
import { type Operation, operations } from "../api/Operations.ts"
import { Context, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { plainRequest } from "./PlainRequest.ts"

let service: TestService
let session: string
let handle: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
})

const raw = (method: string, path: string, headers?: Record<string, string>, body?: string) =>
  plainRequest(service.base, method, path, headers, body)

/** Returns the names of all members of the successful responses, including nested ones. */
const membersOf = ({ path, method }: Operation): ReadonlyArray<string> => {
  const names = new Set<string>()
  const known = new Set<unknown>()
  const add = (part: unknown): void => {
    if (typeof part !== "object" || part === null || known.has(part)) return
    known.add(part)
    for (const [name, value] of Object.entries(part)) {
      if (name === "properties") for (const member of Object.keys(value as object)) names.add(member)
      add(name === "$ref" ? document["components"].schemas[String(value).split("/").pop()!] : value)
    }
  }
  const { responses } = document["paths"][path.replace(/:(\w+)/g, "{$1}")][method.toLowerCase()]
  for (const [status, { content }] of Object.entries<any>(responses)) if (status < "300") add(content)
  return [...names]
}

const bearer = () => ({ authorization: `Bearer ${session}` })

describe("The choice of an encoding", () => {
  it.each([
    ["br, gzip", "br"],
    ["GZIP", "gzip"],
    ["*", "br"],
    ["br;q=0, *;q=0.1", "gzip"],
    ["gzip;q=0, br;q=0.0", undefined],
    ["identity", undefined],
    ["", undefined],
  ])("of %j is %s", (header, coding) => {
    expect(codingFor(header)).toBe(coding)
  })

  const chosen = async (
    path: string,
    more: { headers?: Record<string, string>; size?: number; vary?: string } = {},
  ) => {
    const { headers = {}, size = 1024, vary } = more
    const exchange = makeRequestContext()
    const response = HttpServerResponse.text("x".repeat(size), {
      contentType: "text/html",
      headers: { ...headers, ...(vary === undefined ? {} : { vary }) },
    })
    const request = { url: path, headers: { "accept-encoding": "gzip" } } as never
    const made = compressed(exchange, request, response)
    return made === undefined ? undefined : (await Effect.runPromise(made)).headers
  }
  it("depends on the response: its size, its encoding, its path, and what else it varies by", async () => {
    expect(await chosen("/docs/")).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" })
    expect(await chosen("/docs/", { vary: "accept-encoding" })).toMatchObject({ vary: "accept-encoding" })
    expect(await chosen("/docs/", { vary: "origin" })).toMatchObject({ vary: "origin, accept-encoding" })
    expect(await chosen("/docs/", { size: 1023 })).toBeUndefined()
    expect(await chosen("/docs/", { headers: { "content-encoding": "br" } })).toBeUndefined()
    // Pages with tokens and codes next to what their address says.
    for (const path of ["/auth/magic-link?token=x", "/api/vault/secrets/a/value"])
      expect(await chosen(path), path).toBeUndefined()
  })
})

describe("Compression", () => {
  it("uses an accepted encoding if the response is worth it", async () => {
    const plain = await raw("GET", "/api/openapi.json")
    const br = await raw("GET", "/api/openapi.json", { "accept-encoding": "gzip, br" })
    const gzip = await raw("GET", "/api/openapi.json", { "accept-encoding": "gzip;q=0.5, br;q=0" })
    expect([plain, br, gzip].map(({ headers }) => headers["content-encoding"])).toEqual([undefined, "br", "gzip"])
    expect(brotliDecompressSync(br.body).equals(plain.body)).toBe(true)
    expect(gunzipSync(gzip.body).equals(plain.body)).toBe(true)
    expect(br.body.length).toBeLessThan(plain.body.length / 8)
    for (const { headers } of [plain, br, gzip]) expect(headers["vary"]).toContain("accept-encoding")
    const small = await raw("GET", "/api/auth/registration", { "accept-encoding": "gzip" })
    expect(small.headers["content-encoding"]).toBeUndefined()
    const head = await raw("HEAD", "/api/openapi.json", { "accept-encoding": "gzip" })
    expect([head.status, head.body.length]).toEqual([200, 0])
    const known = await raw("GET", "/api/openapi.json", {
      "accept-encoding": "gzip",
      "if-none-match": String(br.headers["etag"]),
    })
    expect([known.status, known.body.length]).toEqual([304, 0])
  })

  it("gives each encoding its own entity tag, and accepts the tag of any encoding in a condition", async () => {
    const path = `/api/identities/${handle}/card`
    await call(service.base, "PATCH", path, { token: session, body: { description: "d".repeat(1500) } })
    const plain = await raw("GET", path, bearer())
    const packed = await raw("GET", path, { ...bearer(), "accept-encoding": "gzip" })
    const tag = String(plain.headers["etag"])
    expect(packed.headers).toMatchObject({ "content-encoding": "gzip", etag: tag.replace(/"$/, ';gzip"') })
    for (const known of [tag, String(packed.headers["etag"])]) {
      const unchanged = await raw("GET", path, { ...bearer(), "accept-encoding": "gzip", "if-none-match": known })
      expect([unchanged.status, unchanged.headers["etag"]]).toEqual([304, known])
    }
    const change = (condition: string) =>
      raw(
        "PATCH",
        path,
        { ...bearer(), "content-type": "application/json", "if-match": condition },
        JSON.stringify({ description: "changed" }),
      )
    expect((await change(String(packed.headers["etag"]))).status).toBe(200)
    expect((await change(String(packed.headers["etag"]))).status).toBe(412)
  })

  it("applies to Events without mail, and not to their stream", async () => {
    for (let at = 0; at < 6; at++)
      await call(service.base, "PATCH", `/api/identities/${handle}/card`, {
        token: session,
        body: { description: `change ${at}` },
      })
    const events = await raw("GET", "/api/events?limit=50&type=card.updated", {
      ...bearer(),
      "accept-encoding": "gzip",
    })
    expect(events.headers["content-encoding"]).toBe("gzip")
    const stream = await fetch(`${service.base}/api/events/stream`, {
      headers: { ...bearer(), "accept-encoding": "gzip" },
    })
    expect([stream.status, stream.headers.get("content-encoding")]).toEqual([200, null])
    await stream.body?.cancel()
  })

  it("is declared confidential for every response with secrets or mail, and for no list of names", () => {
    const isConfidential = ({ endpoint: { annotations } }: Operation) =>
      Context.get(annotations, Confidential) || Context.get(annotations, ShowsSecret)
    const [confidential, others] = [operations.filter(isConfidential), operations.filter((one) => !isConfidential(one))]
    const telling = others.filter((operation) =>
      membersOf(operation).some((name) =>
        ["snippet", "html", "signing_secret", "identity_key", "password", "device_code", "token"].includes(name),
      ),
    )
    // The disclosure is the same in every message, and public.
    expect(telling.map(({ id }) => id)).toEqual(["mail_settings.disclosure", "mail_settings.setDisclosure"])
    expect(confidential.map(({ id }) => id)).toEqual(expect.arrayContaining(["vault.value", "api_keys.create"]))
    for (const id of ["api_keys.list", "identities.list", "vault.list", "webhooks.list", "usage.read"])
      expect(others.map((one) => one.id)).toContain(id)
  })

  it("applies to lists of the API", async () => {
    for (let n = 0; n < 12; n++)
      await call(service.base, "PUT", `/api/vault/secrets/name.${n}`, { token: session, body: { value: "v" } })
    const { headers } = await raw("GET", "/api/vault/secrets", { ...bearer(), "accept-encoding": "gzip" })
    expect(headers["content-encoding"]).toBe("gzip")
  })

  it("never applies to secrets or mail", async () => {
    const value = "s".repeat(4000)
    await call(service.base, "PUT", "/api/vault/secrets/long", { token: session, body: { value } })
    for (let at = 0; at < 3; at++)
      await send(service.smtpPort, {
        from: "grace@example.org",
        to: `${handle}@mail.localhost`,
        subject: `Your code is 12345${at}`,
        text: "x".repeat(500),
      })
    await eventually(
      () => raw("GET", "/api/events?type=email.received", bearer()),
      ({ body }) => JSON.parse(body.toString()).events.length === 3,
    )
    await service.query(
      (sql) => sql`
        insert into event (id, org_id, identity_id, handle, type, data, created_at)
        select uuidv7(), org_id, id, handle, 'connector.mention', jsonb_build_object('text', repeat('x', 2000)), now()
        from identity where handle = ${handle}`,
    )
    const paths = [
      "/api/vault/secrets/long/value",
      `/api/identities/${handle}/identity-key`,
      "/api/events?type=email.received",
      "/api/events?type=connector.mention",
      "/api/events?limit=50",
    ]
    for (const path of paths) {
      const answer = await raw("GET", path, { ...bearer(), "accept-encoding": "gzip, br" })
      expect([answer.status, answer.headers["content-encoding"]], path).toEqual([200, undefined])
    }
    const tool = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "svc_vault_get", arguments: { name: "long" } },
    })
    const json = { ...bearer(), "content-type": "application/json", "accept-encoding": "gzip" }
    const called = await raw("POST", "/api/mcp", json, tool)
    expect([called.headers["content-encoding"], called.body.toString()]).toEqual([
      undefined,
      expect.stringContaining(value),
    ])
    const listed = await raw("POST", "/api/mcp", json, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }))
    expect(listed.headers["content-encoding"]).toBe("gzip")
  })
})
