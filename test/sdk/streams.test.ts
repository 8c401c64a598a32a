/** The SDK without a service: its stream of Events, signed requests and waits, over a `fetch` that the test answers. */
import { createClient, type Event } from "@agent-identity/sdk"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type Answer, answering, json, problem, type Seen } from "./Answers.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }))
afterEach(() => void vi.useRealTimers().restoreAllMocks())

const events =
  (...chunks: ReadonlyArray<string>): Answer =>
  () =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
          controller.close()
        },
      }),
    )
const silent: Answer = ({ signal }) =>
  new Response(
    new ReadableStream({
      start: (controller) => signal!.addEventListener("abort", () => controller.error(signal!.reason)),
    }),
  )
const options = (fake: typeof fetch) => ({ fetch: fake, baseUrl: "https://api.example", key: "svc_id_x" })

describe("The stream of Events", () => {
  const read = async (count: number, after: string | undefined, ...answers: ReadonlyArray<Answer>) => {
    const { seen, fetch } = answering(...answers)
    const abort = new AbortController()
    const found: Array<Event> = []
    const reading = (async () => {
      const stream = createClient(options(fetch)).stream({
        signal: abort.signal,
        ...(after === undefined ? {} : { after }),
      })
      for await (const event of stream) if (found.push(event) === count) break
    })()
    const outcome = reading.then(
      () => undefined,
      (error: unknown) => error,
    )
    await vi.advanceTimersByTimeAsync(60_000)
    abort.abort()
    return { found, error: await outcome, opened: seen.map(({ headers, at }) => [headers.get("last-event-id"), at]) }
  }
  const frame = (id: string) => `id: ${id}\nevent: x\ndata: {"id":"${id}"}\n\n`

  it("reads frames that are split anywhere, of several lines, between comments and fields that it ignores", async () => {
    const text = `: connected\r\nid:evt_0\r\n\r\nretry: 5\nevent\n: beat\n\nid: evt_1\rdata: {"id":\rdata:"é"}\r\r${frame("evt_2")}`
    for (let at = 1; at < text.length; at++) {
      const { found } = await read(2, undefined, events(text.slice(0, at), text.slice(at)))
      expect(found, String(at)).toEqual([{ id: "é" }, { id: "evt_2" }])
    }
  })

  it("continues after its last Event, or at its first position if no Event has arrived", async () => {
    const connected = events(": connected\nid: evt_0\n\n")
    const { found, opened } = await read(
      2,
      undefined,
      connected,
      events(frame("evt_1")),
      connected,
      events(frame("evt_2")),
    )
    expect(found).toEqual([{ id: "evt_1" }, { id: "evt_2" }])
    expect(opened.map(([last]) => last)).toEqual([null, "evt_0", "evt_1", "evt_0"])
    const later = await read(1, "evt_5", events(), events(frame("evt_6")))
    expect(later.opened.map(([last]) => last)).toEqual(["evt_5", "evt_5"])
  })

  it("is opened again after 0.25 s, doubling to 10 s, until an Event arrives", async () => {
    const lost: Answer = () => Promise.reject(new TypeError("fetch failed"))
    const busy = problem(503, "unavailable", "wait")
    const { found, opened } = await read(
      2,
      "evt_0",
      lost,
      busy,
      lost,
      busy,
      lost,
      lost,
      lost,
      events(frame("evt_1")),
      events(frame("evt_2")),
    )
    expect(opened.map(([, at]) => at)).toEqual([0, 250, 750, 1_750, 3_750, 7_750, 15_750, 25_750, 26_000])
    expect(found).toHaveLength(2)
  })

  it("ends when it is aborted, and fails if the service refuses it", async () => {
    const aborted = await read(1, undefined, silent)
    expect([aborted.error, aborted.found, aborted.opened.length]).toEqual([undefined, [], 1])
    const pausing = await read(1, undefined, () => Promise.reject(new TypeError("fetch failed")))
    expect([pausing.error, pausing.found]).toEqual([undefined, []])
    const refused = await read(1, undefined, problem(403, "scope_missing", "stop"))
    expect(refused.error).toMatchObject({ code: "scope_missing" })
    expect(refused.opened).toHaveLength(1)
  })
})

describe("A signed request", () => {
  const moved =
    (status: number, location: string): Answer =>
    () =>
      new Response("moved", { status, headers: { location } })
  /** Sends a request whose targets give these answers, and returns what the targets got. */
  const fetched = async (init: RequestInit, ...answers: ReadonlyArray<Answer>) => {
    const targets = answering(...answers)
    const signed: Array<object> = []
    const fake: typeof fetch = async (input, given) => {
      if (!String(input).startsWith("https://api.example")) return targets.fetch(input, given)
      signed.push(JSON.parse(String(given!.body)))
      return Response.json({ headers: { signature: `sig ${signed.length}` } })
    }
    const identity = createClient(options(fake)).identity("ada")
    const outcome = await identity.fetch("https://a.example/start", init).then(
      ({ status }) => status,
      (error: Error) => error.message,
    )
    return { outcome, signed, seen: targets.seen }
  }
  const done = json({})
  const credentials = { authorization: "Bearer secret", cookie: "a=b", "content-type": "text/plain", "x-kept": "1" }

  it("keeps credentials at their origin when it follows redirects, and signs each address anew", async () => {
    const { seen, signed } = await fetched(
      { method: "PUT", body: "x", headers: credentials },
      moved(307, "/same"),
      moved(308, "https://b.example/other"),
      moved(301, "https://a.example/back"),
      done,
    )
    const of = ({ url, method, headers, body }: Seen) => [
      url,
      method,
      body,
      ...["authorization", "cookie", "x-kept", "signature"].map((name) => headers.get(name)),
    ]
    expect(seen.map(of)).toEqual([
      ["https://a.example/start", "PUT", "x", "Bearer secret", "a=b", "1", "sig 1"],
      ["https://a.example/same", "PUT", "x", "Bearer secret", "a=b", "1", "sig 2"],
      ["https://b.example/other", "PUT", "x", null, null, "1", "sig 3"],
      ["https://a.example/back", "PUT", "x", null, null, "1", "sig 4"],
    ])
    expect(signed.map((one) => Object.entries(one).slice(0, 2))).toEqual(
      seen.map(({ url, method }) => [
        ["method", method],
        ["url", url],
      ]),
    )
  })

  it.each([
    ["POST", 301, "GET"],
    ["POST", 302, "GET"],
    ["POST", 303, "GET"],
    ["PUT", 302, "PUT"],
    ["PUT", 303, "GET"],
    ["POST", 307, "POST"],
    ["HEAD", 303, "HEAD"],
  ])("of method %s is repeated after %i as %s", async (method, status, next) => {
    const body = method === "HEAD" ? {} : { body: "x" }
    const { seen, signed } = await fetched({ method, headers: credentials, ...body }, moved(status, "/next"), done)
    const isEmptied = next === "GET"
    expect(seen[1]).toMatchObject({ method: next, body: isEmptied || method === "HEAD" ? undefined : "x" })
    expect(seen[1]!.headers.get("content-type")).toBe(isEmptied ? null : "text/plain")
    expect("content_digest" in signed[1]!).toBe(!isEmptied && method !== "HEAD")
  })

  it("follows at most 20 redirects, and none if the caller does not want it", async () => {
    const loop = await fetched({}, moved(302, "/start"))
    expect([loop.outcome, loop.seen.length]).toEqual(["https://a.example/start redirects too often", 21])
    const refused = await fetched({ redirect: "error" }, moved(302, "/next"), done)
    expect([refused.outcome, refused.seen.length]).toEqual(["https://a.example/start redirects", 1])
    expect((await fetched({ redirect: "manual" }, moved(302, "/next"), done)).outcome).toBe(302)
    expect((await fetched({}, () => new Response("", { status: 302 }), done)).outcome).toBe(302)
    const unchanged: Answer = () => new Response(null, { status: 304, headers: { location: "/next" } })
    expect((await fetched({}, unchanged, done)).outcome).toBe(304)
  })
})

describe("A call", () => {
  it("names the version that the resource must have, and has no credential without a key", async () => {
    const { seen, fetch } = answering(json({}))
    await createClient(options(fetch)).cards.patch({ handle: "ada", name: "A" }, { ifMatch: '"3"' })
    await createClient({ fetch, baseUrl: "https://api.example" }).health.report()
    const of = ({ headers }: Seen) => [headers.get("if-match"), headers.get("authorization")]
    expect(seen.map(of)).toEqual([
      ['"3"', "Bearer svc_id_x"],
      [null, null],
    ])
  })

  it("that a proxy refuses with a body of its own has an error of the same form, with the start of the body", async () => {
    for (const body of [JSON.stringify({ error: "denied" }), JSON.stringify(null), "x".repeat(1_000)]) {
      const { fetch } = answering(() => new Response(body, { status: 403 }))
      const error: unknown = await createClient(options(fetch))
        .session.whoami()
        .catch((one: unknown) => one)
      expect(error).toMatchObject({ code: "unexpected_response", agentHint: "stop" })
      expect((error as Error).message).toBe(`unexpected_response: 403 ${body.slice(0, 200)}`)
    }
  })

  it("has the base address without a final slash, and no listener on the caller's signal after its wait", async () => {
    const busy: Answer = () => Response.json({}, { status: 503, headers: { "retry-after": "1" } })
    const { seen, fetch } = answering(busy, json({}))
    const { signal } = new AbortController()
    const [added, removed] = [vi.spyOn(signal, "addEventListener"), vi.spyOn(signal, "removeEventListener")]
    const called = createClient({ ...options(fetch), baseUrl: "https://api.example//" }).session.whoami({}, { signal })
    await vi.advanceTimersByTimeAsync(1_000)
    await called
    expect(seen.map(({ url }) => url)).toEqual(Array(2).fill("https://api.example/api/auth/whoami"))
    expect(removed.mock.calls.map(([name, listener]) => [name, listener])).toEqual(
      added.mock.calls.map(([name, listener]) => [name, listener]),
    )
  })

  it("ends during the wait before its repeat when it is aborted", async () => {
    const { seen, fetch } = answering(() => Response.json({}, { status: 503, headers: { "retry-after": "30" } }))
    const abort = new AbortController()
    const outcome = createClient(options(fetch))
      .session.whoami({}, { signal: abort.signal })
      .catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(29_999)
    expect(seen).toHaveLength(1)
    abort.abort(new Error("enough"))
    expect(await outcome).toEqual(new Error("enough"))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(seen).toHaveLength(1)
  })

  it("is repeated after 0.25 s, doubling to 8 s, or when the service says", async () => {
    vi.spyOn(Math, "random").mockReturnValueOnce(1).mockReturnValueOnce(0).mockReturnValue(1)
    const busy =
      (headers = {}) =>
      () =>
        Response.json({}, { status: 503, headers })
    const { seen, fetch } = answering(...Array.from({ length: 7 }, () => busy()), busy({ "retry-after": "2" }))
    const { health } = createClient({ ...options(fetch), retries: 9 })
    health.report().catch(() => undefined)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(seen.map(({ at }) => at / 250)).toEqual([0, 1, 2, 6, 14, 30, 62, 94, 102, 110])
  })

  it("that creates an Identity waits until it is ready, and fails if it cannot be provisioned", async () => {
    for (const [last, isReady] of [
      ["ready", true],
      ["failed", false],
    ] as const) {
      const { seen, fetch } = answering(json({}), json({ status: "provisioning" }), json({ status: last }))
      const made = createClient(options(fetch))
        .createIdentity("ada", { signal: new AbortController().signal })
        .then(({ handle }) => handle)
        .catch(({ message }: Error) => message)
      await vi.advanceTimersByTimeAsync(60_000)
      expect(await made).toBe(isReady ? "ada" : "The Identity ada could not be provisioned")
      expect(seen.map(({ at }) => at)).toEqual([0, 0, 250])
    }
  })

  it("that waits for a message repeats the request after the last message until the time is over", async () => {
    const later: Answer = () =>
      new Promise((resolve) => setTimeout(() => resolve(Response.json({ messages: [], after: "msg_1" })), 60_000))
    const none = json({ messages: [], after: null })
    const { seen, fetch } = answering(later, none, json({ messages: [{ id: "msg_2" }] }), json({ id: "msg_2" }))
    const identity = createClient(options(fetch)).identity("ada")
    const found = identity.waitForMessage({ timeoutSeconds: 90, signal: new AbortController().signal })
    await vi.advanceTimersByTimeAsync(120_000)
    expect(await found).toEqual({ id: "msg_2" })
    const query = ({ url }: Seen) => Object.fromEntries(new URL(url).searchParams)
    const second = { seconds: "30", after: "msg_1" }
    expect(seen.slice(0, 3).map(query)).toEqual([{ seconds: "60" }, second, second])
    const over = identity.waitForMessage({ timeoutSeconds: 0 })
    expect([await over, seen.length]).toEqual([undefined, 4])
  })
})
