/** What `svc` sends: a server records the requests and answers like the service. */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { call } from "@svc/cli/client/Connection"
import { Effect, Result } from "effect"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { runHere } from "../harness/Commands.ts"

interface Seen {
  readonly after: string | string[] | undefined
  readonly route: string
  // oxlint-disable-next-line typescript/no-explicit-any -- JSON
  readonly body: any
}
let seen: Array<Seen> = []
/** Responses to other paths than those of keys and apps. */
let answers: Readonly<Record<string, readonly [status: number, content: object]>> = {}

const key = {
  key: "svc_admin_x",
  api_key: { id: "k", name: "ci", scopes: ["mail:read"], expires_at: null },
}
const grants = { grants: [], next_cursor: null }

const server = createServer(async (request, response) => {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  const body = text === "" ? undefined : JSON.parse(text)
  seen.push({ route: `${request.method} ${request.url}`, body, after: request.headers["last-event-id"] })
  const answer = (status: number, content?: object) =>
    response.writeHead(status, { "content-type": "application/json" }).end(content && JSON.stringify(content))
  const own = answers[request.url!]
  if (own !== undefined) return answer(...own)
  if (request.method === "DELETE") return answer(204)
  return request.method === "POST" ? answer(201, key) : answer(200, grants)
})

let api: string
let home: string
beforeAll(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), "svc-requests-"))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  rmSync(home, { recursive: true })
  await new Promise((resolve) => server.close(resolve))
})
beforeEach(() => {
  seen = []
})

const svc = (...words: ReadonlyArray<string>) =>
  runHere({ home, env: { SVC_KEY: "svc_admin_key", SVC_API_URL: api } }, ...words)

describe("svc keys create", () => {
  it.each([
    [["--expires", "2w", "--network", "10.0.0.0/8, 2001:db8::/32"], "/api/keys", { expires_in_days: 14 }],
    [["--expires", "30", "--scope", "mail:read,card:write"], "/api/keys", { expires_in_days: 30 }],
    [["--identity", "ada"], "/api/identities/ada/keys", {}],
  ])("%j asks for a key with these rights", async (flags, route, rights) => {
    const { code, out, errors } = await svc("keys", "create", "ci", ...flags)
    expect([code, out], errors).toEqual([0, "svc_admin_x\n"])
    const networks = flags.includes("--network") ? { networks: ["10.0.0.0/8", "2001:db8::/32"] } : {}
    const scopes = flags.includes("--scope") ? { scopes: ["mail:read", "card:write"] } : {}
    expect(seen).toEqual([{ route: `POST ${route}`, body: { name: "ci", ...rights, ...networks, ...scopes } }])
  })

  it("asks for nothing if the lifetime is not 1 to 365 days", async () => {
    for (const lifetime of ["0", "366", "53w", "2y"])
      expect((await svc("keys", "create", "ci", "--expires", lifetime)).code, lifetime).toBe(2)
    expect(seen).toEqual([])
  })
})

describe("svc listen", () => {
  it("continues after the newest Event, so that none is missed before the stream is open", async () => {
    const stream = "/api/identities/ada/events/stream"
    answers = {
      "/api/identities/ada": [200, { handle: "ada" }],
      "/api/identities/ada/events?limit=1": [200, { events: [{ id: "evt_7" }] }],
      [stream]: [401, { title: "No", detail: "Revoked.", code: "unauthenticated", agent_hint: "fix_call" }],
    }
    expect((await svc("listen", "--handle", "ada")).code).toBe(2)
    expect(seen.at(-1)).toEqual({ route: `GET ${stream}`, after: "evt_7" })
  })
})

describe("svc grants revoke", () => {
  it("ends the access of the one app that it names", async () => {
    expect((await svc("grants", "revoke", "a/b")).code).toBe(0)
    expect(seen.map(({ route }) => route)).toEqual(["DELETE /api/grants/a%2Fb"])
  })
})

describe("An address of the API", () => {
  it.each(["http://user@127.0.0.1", "http://:secret@127.0.0.1", "http://127.0.0.1/?key=secret", "http://127.0.0.1/#a"])(
    "with a secret is refused without repeating it: %s",
    async (address) => {
      const { code, errors } = await runHere({ home, env: { SVC_KEY: "k" } }, "whoami", "--api", address)
      expect(code).toBe(2)
      expect(errors).toContain("must not contain")
      expect(errors).not.toContain("secret")
    },
  )
})

describe("A response", () => {
  afterEach(() => vi.unstubAllGlobals())
  const api = "http://svc.example"
  const json =
    (body: unknown, status = 200) =>
    async () =>
      Response.json(body, { status })
  const cut = async () =>
    new Response(new ReadableStream({ pull: (controller) => controller.error(new Error("cut")) }), { status: 200 })
  const problem = { title: "Slow down", detail: "Too many calls.", code: "rate_limited", agent_hint: "wait" }
  const foreign = (status: number) => ({
    _tag: "OutOfReach",
    message: `${api} returned ${status}, but the response is not from this service.`,
  })

  it.each([
    ["with an object is its result", json({ a: 1 }), { a: 1 }],
    ["without content has no members", async () => new Response(null, { status: 204 }), {}],
    ["with a list is foreign", json([1]), foreign(200)],
    ["with a page is foreign", async () => new Response("<html>", { status: 200 }), foreign(200)],
    ["with the page of a proxy is foreign", async () => new Response("Bad Gateway", { status: 502 }), foreign(502)],
    ["with another error is foreign", json({ error: "x" }, 404), foreign(404)],
    ["that redirects is foreign", async () => new Response(null, { status: 302 }), foreign(302)],
    [
      "with a problem is a refusal",
      json({ ...problem, retry_after_seconds: 7 }, 429),
      {
        _tag: "Refused",
        message: "Slow down: Too many calls. (rate_limited, wait)",
        code: "rate_limited",
        retryAfterSeconds: 7,
        problem: { ...problem, retry_after_seconds: 7 },
      },
    ],
    ["with a problem need not say when to retry", json(problem, 400), { _tag: "Refused", retryAfterSeconds: null }],
    [
      "that never comes says why",
      () => Promise.reject(new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") })),
      { _tag: "OutOfReach", message: `${api} is unreachable: connect ECONNREFUSED` },
    ],
    [
      "that is cut says that the request may have taken effect",
      cut,
      {
        _tag: "OutOfReach",
        message: expect.stringMatching(/during the response; the request may have taken effect\.$/),
      },
    ],
  ] as const)("%s", async (_, respond, expected) => {
    const asked = vi.fn<(request: Request, options: RequestInit) => Promise<Response>>(respond)
    vi.stubGlobal("fetch", asked)
    const ended = await Effect.runPromise(Effect.result(call(api, "POST", "/api/x", { body: {} })))
    expect(Result.isSuccess(ended) ? ended.success : ended.failure).toMatchObject(expected)
    const [request, options] = asked.mock.calls[0]!
    expect([request.url, request.method, options.redirect]).toEqual([`${api}/api/x`, "POST", "manual"])
    expect(request.headers.get("svc-version")).toMatch(/^20\d\d-\d\d-\d\d$/)
  })
})
