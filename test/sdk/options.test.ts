/** What users of other SDKs expect: classes of errors, options of a call, its attempts, versions, and webhooks of tests. */
import {
  type Attempt,
  ApiError,
  apiVersion,
  AuthenticationError,
  ConflictError,
  createClient,
  InvalidRequestError,
  InvalidSignature,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  ServiceError,
  signWebhook,
  verifyWebhook,
} from "@agent-identity/sdk"
import { beforeAll, describe, expect, it, vi } from "vitest"
import { signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { operations } from "./Operations.ts"

let service: TestService
let key: string
beforeAll(async () => {
  service = await sharedService()
  key = (await signUp(service.base)).session
})

const problem = {
  code: "x",
  title: "",
  detail: "",
  agent_hint: "stop",
  errors: [{ pointer: "/name", detail: "too long" }],
  retry_after_seconds: 7,
  instance: "req_0",
}

/** Returns a `fetch` that answers with a status, and the headers of its requests. */
const answering = (...statuses: ReadonlyArray<number>) => {
  const left = [...statuses]
  const seen: Array<Headers> = []
  const fake: typeof fetch = async (_, init) => {
    seen.push(new Headers(init?.headers))
    const status = left.length > 1 ? left.shift()! : left[0]!
    const headers = { "request-id": `req_${seen.length}`, "retry-after": "0" }
    return Response.json(status === 200 ? {} : problem, { status, headers })
  }
  return { fake, seen }
}

describe("Errors", () => {
  it.each([
    [400, InvalidRequestError],
    [401, AuthenticationError],
    [403, PermissionDeniedError],
    [404, NotFoundError],
    [409, ConflictError],
    [412, ConflictError],
    [415, InvalidRequestError],
    [422, ConflictError],
    [429, RateLimitError],
    [500, ServiceError],
    [503, ServiceError],
  ] as const)("of status %i have a class, and the headers of the response", async (status, kind) => {
    const client = createClient({ key, fetch: answering(status).fake, retries: 0 })
    const error = await client.session.whoami().catch((one: unknown) => one)
    expect(error).toBeInstanceOf(kind)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ name: kind.name, status, problem, headers: expect.any(Headers) })
    expect(error).toMatchObject({ errors: problem.errors, retryAfterSeconds: 7, requestId: "req_0" })
    expect((error as ApiError).headers.get("request-id")).toBe("req_1")
  })
})

describe("Options", () => {
  it("of a call replace the key of the client", async () => {
    const client = createClient({ key: "svc_id_wrong", baseUrl: service.base })
    await expect(client.session.whoami()).rejects.toBeInstanceOf(AuthenticationError)
    expect((await client.session.whoami({}, { key })).caller.kind).toBe("session")
  })

  it("name the version of the API and the program", async () => {
    const { fake, seen } = answering(200)
    await createClient({ key, fetch: fake }).session.whoami()
    await createClient({ key, fetch: fake, apiVersion: "2030-01-01", appInfo: "my-agent/1.2" }).session.whoami()
    expect(seen.map((headers) => [headers.get("svc-version"), headers.get("user-agent")])).toEqual([
      [apiVersion, "agent-identity-sdk"],
      ["2030-01-01", "agent-identity-sdk my-agent/1.2"],
    ])
    const unknown = createClient({ key, baseUrl: service.base, apiVersion: "2030-01-01" })
    await expect(unknown.session.whoami()).rejects.toThrow(`Known are ${apiVersion}`)
  })

  it("tell of every attempt, to the client and to the call", async () => {
    const [all, own]: [Array<Attempt>, Array<Attempt>] = [[], []]
    const client = createClient({ key, fetch: answering(503, 200).fake, onAttempt: (one) => all.push(one) })
    await client.session.whoami({}, { onAttempt: (one) => own.push(one) })
    expect(own).toEqual(all)
    expect(all).toMatchObject([
      { method: "GET", path: "/api/auth/whoami", number: 1, requestId: "req_1", response: { status: 503 } },
      { number: 2, requestId: "req_2", response: { status: 200 }, error: undefined },
    ])
    const lost = createClient({ key, fetch: () => Promise.reject(new TypeError("lost")), retries: 0 })
    await expect(lost.session.whoami({}, { onAttempt: (one) => own.push(one) })).rejects.toThrow(
      "http://localhost:8080 is unreachable",
    )
    expect(own[2]).toMatchObject({ response: undefined, error: expect.objectContaining({ message: "lost" }) })
  })
})

describe("Options of a call", () => {
  it("replace the number of retries of the client", async () => {
    const count = async (ofClient: number, ofCall: number) => {
      const { fake, seen } = answering(503)
      const { session } = createClient({ key, fetch: fake, retries: ofClient })
      await session.whoami({}, { retries: ofCall }).catch(() => undefined)
      return seen.length
    }
    expect([await count(0, 2), await count(2, 0)]).toEqual([3, 1])
  })

  it("limit the time of an attempt also if the caller may abort it", async () => {
    const silent: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason)))
    const { session } = createClient({ key, fetch: silent, retries: 0, timeout: 10 })
    const { signal } = new AbortController()
    await expect(session.whoami({}, { signal })).rejects.toThrow("gave no response within 10 ms")
  })
})

describe("A call that fails", () => {
  it("releases the connection of a response before it is repeated", async () => {
    const cancel = vi.fn()
    const responses = [
      new Response(new ReadableStream({ cancel }), { status: 503, headers: { "retry-after": "0" } }),
      Response.json({}),
    ]
    await createClient({ key, fetch: async () => responses.shift()! }).session.whoami()
    expect(cancel).toHaveBeenCalledOnce()
  })

  type Client = ReturnType<typeof createClient>
  const attempts = async (call: (client: Client) => Promise<unknown>, ...statuses: ReadonlyArray<number>) => {
    const { fake, seen } = answering(...statuses)
    await call(createClient({ key, fetch: fake })).catch(() => undefined)
    return seen.length
  }
  const read = (client: Client) => client.session.whoami()
  const act = (client: Client) => client.deviceLogin.start({ name: "x" })

  it("is repeated three times if a repeat may change its outcome and has no second effect", async () => {
    for (const status of [429, 502, 503, 504]) {
      expect([status, await attempts(read, status, 200)]).toEqual([status, 2])
      // Without an Idempotency-Key, a repeat may have a second effect unless the service refused to begin.
      expect([status, await attempts(act, status, 200)]).toEqual([status, status === 429 ? 2 : 1])
    }
    for (const status of [400, 401, 404, 408, 409, 430, 500, 501, 505])
      expect([status, await attempts(read, status, 200)]).toEqual([status, 1])
    expect(await attempts(read, 503)).toBe(4)
  })

  it("is repeated after a lost response, with the key of the caller", async () => {
    const seen: Array<Headers> = []
    const fake: typeof fetch = async (_, init) => {
      if (seen.push(new Headers(init?.headers)) === 1) throw new TypeError("lost")
      return Response.json({}, { headers: { "retry-after": "0" } })
    }
    const client = createClient({ key, fetch: fake })
    await client.cards.patch({ handle: "ada", name: "A" }, { idempotencyKey: "mine" })
    await client.session.whoami()
    const of = (name: string) => seen.map((headers) => headers.get(name))
    expect(of("idempotency-key")).toEqual(["mine", "mine", null])
    expect(of("content-type")).toEqual(["application/json", "application/json", null])
  })
})

describe("A signed web request", () => {
  it("and the request for its signature can be aborted by the caller", async () => {
    const signals: Array<AbortSignal | null | undefined> = []
    const given = new AbortController()
    const fake: typeof fetch = async (address, init) => {
      signals.push(init?.signal)
      return String(address).startsWith("http://api/") ? Response.json({ headers: {} }) : new Response("ok")
    }
    const ada = createClient({ key, fetch: fake, baseUrl: "http://api/" }).identity("ada")
    await ada.fetch("https://site.example/", { signal: given.signal })
    expect(signals.map((signal) => signal?.aborted)).toEqual([false, false])
    given.abort()
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true])
  })
})

describe("A signed delivery of a test", () => {
  const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
  const body = JSON.stringify({ id: "evt_1", type: "email.received" })

  it("verifies, within the tolerance of the receiver", async () => {
    expect(await verifyWebhook({ headers: await signWebhook(body, secret), body }, secret)).toMatchObject({
      id: "evt_1",
    })
    const old = { headers: await signWebhook(body, secret, { id: "evt_1", at: new Date(Date.now() - 600_000) }), body }
    await expect(verifyWebhook(old, secret)).rejects.toBeInstanceOf(InvalidSignature)
    expect(await verifyWebhook(old, secret, { toleranceSeconds: 700 })).toMatchObject({ type: "email.received" })
    await expect(verifyWebhook({ ...old, body: `${body} ` }, secret, { toleranceSeconds: 700 })).rejects.toThrow(
      "No signature",
    )
  })
})

describe("Every call of the API", () => {
  type Calls = Record<
    string,
    Record<string, ((input: object) => Promise<unknown>) & { all?: (input: object) => AsyncGenerator }>
  >
  const calls = operations.filter(({ isStream }) => !isStream)
  const groupOf = (group: string) => group.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  const callsOf = (of: object, group: string) => (of as Calls)[groupOf(group)]!
  /** Returns a client whose requests are kept, and answered one by one. */
  const recording = (...answers: ReadonlyArray<object>) => {
    const sent: Array<{ method: string; path: string; query: object; body: unknown; hasKey: boolean }> = []
    const left = [...answers]
    const fake: typeof fetch = async (address, init = {}) => {
      const [, path, search] = /^http:\/\/api([^?]*)\??(.*)$/.exec(String(address))!
      sent.push({
        method: init.method!,
        path: path!,
        query: Object.fromEntries(new URLSearchParams(search)),
        body: init.body === undefined ? null : JSON.parse(String(init.body)),
        hasKey: new Headers(init.headers).has("idempotency-key"),
      })
      return Response.json(left.shift() ?? {})
    }
    return { sent, client: createClient({ key, fetch: fake, baseUrl: "http://api/" }) }
  }
  const requestOf = ({ method, path, query, body, hasKey }: (typeof calls)[number]) => ({
    method,
    path,
    query,
    body,
    hasKey,
  })

  it("is a method that sends its members to their places, and waits as long as the service may", async () => {
    const timeouts = vi.spyOn(AbortSignal, "timeout")
    try {
      for (const operation of calls) {
        const { sent, client } = recording()
        const { group, name, input, wait } = operation
        await callsOf(client, group)[name]!(input)
        expect(sent, `${group}.${name}`).toEqual([requestOf(operation)])
        expect(timeouts.mock.lastCall, `${group}.${name}`).toEqual([30_000 + wait * 1000])
      }
    } finally {
      timeouts.mockRestore()
    }
    const { client } = recording()
    const names = Object.entries(client as unknown as Calls)
      .filter(([, calls]) => typeof calls === "object")
      .flatMap(([group, calls]) => Object.keys(calls).map((name) => `${group}.${name}`))
    expect(names.toSorted()).toEqual(operations.map(({ group, name }) => `${groupOf(group)}.${name}`).toSorted())
  })

  it("of an Identity is one of its client, without its Handle", async () => {
    for (const operation of calls) {
      const { group, name, input, identity } = operation
      if (identity === null) continue
      const { sent, client } = recording()
      const { [identity]: handle, ...rest } = input
      await callsOf(client.identity(String(handle)), group)[name]!(rest)
      expect(sent, `${group}.${name}`).toEqual([requestOf(operation)])
    }
  })

  it("that consists of several passes on its options, and ends when it is aborted", async () => {
    const seen: Array<Headers> = []
    const abort = new AbortController()
    const client = createClient({
      key,
      fetch: (input, init) => {
        seen.push(new Headers(init?.headers))
        if (!String(input).includes("messages/wait")) return Promise.resolve(Response.json({ status: "provisioning" }))
        return new Promise((_, reject) => init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason)))
      },
    })
    const { signal } = abort
    const outcomes = Promise.allSettled([
      client.createIdentity("ada", { idempotencyKey: "one", signal }),
      client.identity("ada").waitForMessage({ signal }),
    ])
    await client.identity("ada").reply({ id: "msg_1" }, { to: [], text: "Yes" }, { idempotencyKey: "two" })
    abort.abort(new Error("enough"))
    expect((await outcomes).map((one) => one.status === "rejected" && one.reason)).toEqual([
      signal.reason,
      signal.reason,
    ])
    expect(seen.flatMap((headers) => headers.get("idempotency-key") ?? [])).toEqual(["one", "two"])
  })

  it("that lists has all pages", async () => {
    const paged = operations.filter(({ pages }) => pages !== null)
    expect(paged.length).toBeGreaterThan(20)
    for (const { group, name, pages, input } of calls) {
      const { list, cursor } = pages ?? { list: "", cursor: "" }
      const { sent, client } = recording({ [list]: ["a", "b"], [cursor]: "next" }, { [list]: ["c"], [cursor]: null })
      const { all } = callsOf(client, group)[name]!
      expect(all !== undefined, `${group}.${name}`).toBe(pages !== null)
      if (all === undefined) continue
      const { cursor: _, ...rest } = input
      const entries: Array<unknown> = []
      for await (const entry of all(rest)) entries.push(entry)
      expect(entries).toEqual(["a", "b", "c"])
      expect(sent.map(({ query }) => (query as { cursor?: string }).cursor)).toEqual([undefined, "next"])
    }
  })
})
