/** Calls of the console, the session of a browser, and what a change makes stale, without a browser. */
import { document as openapi } from "@svc/api/openapi/Document"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Entries, heldCalls, leaveAll, mounted, source } from "./Modules.ts"

const { addressOf, call, callTagged, Refused, signedOut, Unreachable, unreachable } = await source("client/Client.ts")
const { client, outdated, retries } = await source("client/Queries.ts")
const { accountChanged, applyChanges, applyEvent, eventTypes, latest } = await source("client/Invalidation.ts")
const session = await source("client/Session.ts")
const { useIdentities } = await source("shell/Identities.ts")
const { language } = await source("texts/Texts.ts")
const { place } = await source("router/Router.ts")
const { unsavedInput } = await source("client/Unsaved.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
})
afterEach(async () => {
  await leaveAll()
  client.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

describe("A call", () => {
  it("puts members into the path and the query, and leaves out undefined ones", () => {
    const address = addressOf("GET /api/identities/:handle/messages/:id", {
      params: { handle: "a/b", id: 7 },
      query: { limit: 50, archived: false, tag: undefined, q: "a&b ü" },
    })
    expect(address).toEqual({
      method: "GET",
      path: "/api/identities/a%2Fb/messages/7?limit=50&archived=false&q=a%26b+%C3%BC",
    })
    expect(addressOf("GET /api/vault", undefined)).toEqual({ method: "GET", path: "/api/vault" })
  })

  it.each([
    ["GET /api/vault", {}, {}, { "svc-console": "1" }],
    ["POST /api/x", {}, { key: "k" }, { "svc-console": "1", "idempotency-key": "k" }],
    ["POST /api/x", { body: {} }, {}, { "content-type": "application/json", "idempotency-key": expect.any(String) }],
    ["PUT /api/x", { body: [] }, { ifMatch: '"7"' }, { "if-match": '"7"', "content-type": "application/json" }],
    ["PUT /api/x", { body: 1 }, { ifNoneMatch: "*" }, { "if-none-match": "*" }],
    ["DELETE /api/x", {}, { key: "k" }, { "svc-console": "1" }],
  ])("%s with %j and %j sends its headers", async (route, input, manner, headers) => {
    const done = call(route, input, manner)
    const request = await calls.next()
    request.answer(204)
    expect(await done).toBeUndefined()
    expect(request.headers).toEqual(expect.objectContaining(headers))
    for (const name of ["idempotency-key", "if-match", "if-none-match", "content-type"])
      expect(name in request.headers, name).toBe(name in { ...headers, ...("body" in input && { "content-type": 1 }) })
  })

  it("returns the entity tag on request", async () => {
    const done = callTagged("GET /api/x")
    ;(await calls.next()).answer(200, { a: 1 }, { etag: '"7"' })
    expect(await done).toEqual({ answer: { a: 1 }, tag: '"7"' })
  })

  it.each([
    ["a problem", 409, { status: 409, detail: "taken" }, Refused, false, false],
    ["an ended session", 401, { status: 401, detail: "no" }, Refused, true, false],
    ["an error of something else", 502, undefined, Unreachable, false, false],
    ["an ended session that something else reports", 401, undefined, Unreachable, true, false],
    ["no response", 0, undefined, Unreachable, false, true],
  ])("fails with %s", async (_, status, body, kind, isSignedOut, isUnreachable) => {
    const told = [vi.spyOn(signedOut, "tell"), vi.spyOn(unreachable, "tell")].map((one) =>
      one.mockReturnValue(undefined),
    )
    const done = call("GET /api/x").catch((cause: unknown) => cause)
    const request = await calls.next()
    if (status === 0) request.lose()
    else request.answer(status, body)
    const failure = await done
    expect(failure).toBeInstanceOf(kind)
    if (kind === Refused) expect(failure.problem).toEqual(body)
    expect(told.map(({ mock }) => mock.calls.length > 0)).toEqual([isSignedOut, isUnreachable])
  })

  it("that is aborted does not say that the service is unreachable", async () => {
    const told = vi.spyOn(unreachable, "tell").mockReturnValue(undefined)
    const given = new AbortController()
    const done = call("GET /api/x", undefined, { signal: given.signal }).catch((cause: Error) => cause.name)
    await calls.next()
    given.abort()
    expect([await done, told.mock.calls.length]).toEqual(["AbortError", 0])
  })

  it("is repeated twice, and only if that can help", () => {
    const refusal = (status: number) => new Refused({ status, detail: "" })
    const failures = [new Unreachable("gone"), refusal(503), refusal(500), refusal(429), refusal(404), new Error("x")]
    expect(failures.map((failure) => [0, 1, 2].map((count) => retries(count, failure)))).toEqual([
      ...[0, 1].map(() => [true, true, false]),
      ...[0, 1, 2, 3].map(() => [false, false, false]),
    ])
  })
})

describe("What is stale after a change", () => {
  type Paths = Record<string, Record<string, object>>
  const routes = Object.entries((openapi as unknown as { paths: Paths }).paths)
    .filter(([, methods]) => "get" in methods)
    .map(([path]) => `GET ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`)
  const inputOf = (route: string, handle: string) => (route.includes(":handle") ? { params: { handle } } : {})

  /** Returns the reads that are stale after the change, of the Identity `ada` or of another one. */
  const staleAfter = async (change: () => void) => {
    client.clear()
    for (const route of routes)
      for (const handle of ["ada", "bob"]) client.setQueryData([route, inputOf(route, handle)], {})
    client.setQueryData(["source", "x"], {})
    vi.useFakeTimers()
    change()
    await vi.advanceTimersByTimeAsync(150)
    vi.useRealTimers()
    return client
      .getQueryCache()
      .getAll()
      .filter((query: any) => query.state.isInvalidated)
      .map(({ queryKey: [route, input] }: any) => (input.params?.handle === "bob" ? `${route} of others` : route))
      .map((route: string) => route.replace("GET /api/", ""))
      .filter((route: string, _: number, all: ReadonlyArray<string>) => !all.some((one) => route.startsWith(`${one}/`)))
  }

  it("is the same as recorded, for each Event and each kind of resource", async () => {
    const lines: Array<string> = []
    const id = { id: "e", handle: "ada", created_at: "" }
    for (const type of eventTypes) {
      const all = await staleAfter(() => applyEvent({ ...id, type }))
      lines.push(`${type}: ${all.filter((route: string) => !/^(?:events|overview)\b/.test(route)).join(", ")}`)
      expect(all).toEqual(expect.arrayContaining(["events", "overview"]))
      expect(all.filter((route: string) => route.endsWith("of others"))).toEqual([])
    }
    const told = vi.spyOn(accountChanged, "tell").mockReturnValue(undefined)
    const tags = new Set<string>()
    for (const methods of Object.values((openapi as unknown as { paths: Paths }).paths))
      for (const operation of Object.values(methods) as any) for (const tag of operation.tags ?? []) tags.add(tag)
    for (const resource of [...tags, "deliveries", "unknown"].toSorted()) {
      told.mockClear()
      const all = await staleAfter(() => applyChanges([{ resource, handle: "ada" }]))
      lines.push(`changed ${resource}: ${all.join(", ")}${told.mock.calls.length > 0 ? " (account)" : ""}`)
    }
    // After an intended change, `vitest run test/console/client --update=all` writes the file anew.
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("tables/stale.txt")
  })

  it("is everything that was read from the API if changes may have been missed", async () => {
    expect(await staleAfter(() => applyChanges(null))).toEqual(
      expect.arrayContaining(["account", "identities", "vault/secrets", "limits", "audit"]),
    )
    expect(client.getQueryState(["source", "x"]).isInvalidated).toBe(false)
  })

  it("is that of every Identity if the change names none, and reads that name no Identity are of all", async () => {
    client.setQueryData(["GET /api/events", { query: { handle: "bob" } }], {})
    client.setQueryData(["GET /api/events", { query: { handle: "ada" } }], {})
    client.setQueryData(["GET /api/events", {}], {})
    const stale = () =>
      client
        .getQueryCache()
        .getAll()
        .filter((query: any) => query.state.isInvalidated).length
    await outdated(["/api/events"], "ada")
    expect(stale()).toBe(2)
    await outdated(["/api/event"])
    expect(stale()).toBe(2)
    await outdated(["/api/events"], null)
    expect(stale()).toBe(3)
  })

  it("is read once for a burst over several Identities, and the last Event is announced immediately", async () => {
    const list = { identities: [{ handle: "h0", status: "ready" }], next_cursor: null }
    const shown = await mounted<object, any>(useIdentities, {})
    ;(await calls.next()).answer(200, list)
    await vi.waitFor(() => expect(shown.now.data).toEqual(list))
    vi.useFakeTimers()
    for (let n = 0; n < 5; n++) applyEvent({ id: String(n), type: "identity.ready", handle: `h${n}`, created_at: "" })
    expect([latest.value.id, calls.all.length]).toEqual(["4", 1])
    await vi.advanceTimersByTimeAsync(150)
    expect(calls.all.length).toBe(2)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(calls.all.length).toBe(2)
  })
})

describe("The session", () => {
  const ada = { org: { id: "org_a", language: "de" } }
  const bob = { org: { id: "org_b", language: "en" } }
  const page = { cookie: "", documentElement: { lang: "" } }
  beforeEach(() => {
    vi.stubGlobal("localStorage", new Entries())
    vi.stubGlobal("document", page)
    // The stream is opened later, which these tests leave out.
    vi.stubGlobal("requestIdleCallback", () => 0)
    vi.stubGlobal("cancelIdleCallback", () => {})
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] })
    page.cookie = "x=1; svc_signed_in=1"
    session.state.value = { is: "unknown" }
  })
  afterEach(() => {
    session.state.value = { is: "out" }
    language.value = "en"
  })
  const look = async (answer: (request: Awaited<ReturnType<typeof calls.next>>) => void) => {
    const done = session.look()
    answer(await calls.next())
    await done
    return session.state.value.is
  }
  const found = (body: unknown) => look((request) => request.answer(200, body))
  const refused = (status: number) => look((request) => request.answer(status, { status, detail: "no" }))

  it("is not looked up without the cookie that marks it", async () => {
    page.cookie = "svc_signed_in=0; not_svc_signed_in=1"
    await session.look()
    expect([session.state.value.is, calls.all.length]).toEqual(["out", 0])
  })

  it("brings the language of the account and the storage of what is not saved", async () => {
    expect(await found(ada)).toBe("in")
    expect([session.account(), language.value, page.documentElement.lang]).toEqual([ada, "de", "de"])
    expect(unsavedInput("x").write("y")).toBe(true)
  })

  it("of another account shows nothing of the former one", async () => {
    await found(ada)
    client.setQueryData(["GET /api/vault", {}], {})
    await found(ada)
    expect(client.getQueryData(["GET /api/vault", {}])).toEqual({})
    await found(bob)
    expect(client.getQueryData(["GET /api/vault", {}])).toBeUndefined()
    // Also if a person left the page of the former account after its session had ended.
    client.setQueryData(["GET /api/vault", {}], {})
    signedOut.tell()
    session.state.value = { is: "out" }
    await found(bob)
    expect(client.getQueryData(["GET /api/vault", {}])).toEqual({})
    session.state.value = { is: "out" }
    await found(ada)
    expect(client.getQueryData(["GET /api/vault", {}])).toBeUndefined()
  })

  it("that has ended is `out` before it was known, and `lost` on an open page until it is found again", async () => {
    expect(await refused(401)).toBe("out")
    expect(page.cookie).toContain("Max-Age=0")
    page.cookie = "svc_signed_in=1"
    await found(ada)
    signedOut.tell()
    expect([session.state.value.is, session.account()]).toEqual(["lost", ada])
    expect(await refused(401)).toBe("lost")
    page.cookie = "svc_signed_in=1"
    expect(await found(ada)).toBe("in")
  })

  it("is unreachable only if it was never known", async () => {
    expect(await refused(503)).toBe("unreachable")
    expect(() => session.account()).toThrow()
    await found(ada)
    expect(await refused(503)).toBe("in")
    expect(await look((request) => request.lose())).toBe("in")
  })

  it("is looked up again until there is an answer, so that no page of a former account stays", async () => {
    await found(ada)
    expect(await refused(503)).toBe("in")
    for (const pause of [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      vi.advanceTimersByTime(pause - 1)
      expect(calls.waiting(), `before ${pause} ms`).toBe(0)
      vi.advanceTimersByTime(1)
      ;(await calls.next()).lose()
      await vi.advanceTimersByTimeAsync(0)
    }
    vi.advanceTimersByTime(30_000)
    ;(await calls.next()).answer(200, bob)
    await vi.advanceTimersByTimeAsync(0)
    expect(session.account()).toEqual(bob)
    await refused(503)
    await found(ada)
    vi.advanceTimersByTime(60_000)
    expect(calls.waiting()).toBe(0)
  })

  it("is that of the last look-up, even if an earlier one is answered later or fails", async () => {
    const late = async (meanwhile: () => Promise<unknown>, status: number, body: object) => {
      const done = session.look()
      const request = await calls.next()
      await meanwhile()
      request.answer(status, body)
      await done
      return session.state.value
    }
    expect(await late(() => found(bob), 200, ada)).toEqual({ is: "in", session: bob })
    await late(() => found(ada), 401, { status: 401, detail: "no" })
    expect(page.cookie).not.toContain("Max-Age=0")
    const signOut = () => Promise.all([session.signOut(), calls.answered(204)])
    expect(await late(signOut, 200, ada)).toEqual({ is: "out" })
  })

  it("ends in every tab when a person signs out in one of them", async () => {
    await found(ada)
    client.setQueryData(["GET /api/vault", {}], {})
    const elsewhere = new BroadcastChannel("svc-session")
    elsewhere.postMessage("signed-out")
    await vi.waitFor(() => expect(session.state.value.is).toBe("out"))
    elsewhere.close()
    expect(client.getQueryData(["GET /api/vault", {}])).toBeUndefined()
    expect(unsavedInput("x").write("y")).toBe(false)
  })

  it("leads back to the page that asked to sign in, once and within 15 minutes", async () => {
    const back = (after: number, path = "/keys") => {
      session.keepReturn(path)
      vi.setSystemTime(Date.now() + after)
      return [session.takeReturn(), session.takeReturn()]
    }
    expect(back(15 * 60_000 - 1)).toEqual(["/keys", undefined])
    expect(back(15 * 60_000)).toEqual([undefined, undefined])
    expect(back(0, "/")).toEqual([undefined, undefined])
    expect(back(0, "https://elsewhere.example/")).toEqual([undefined, undefined])
    localStorage.setItem("svc-return", "{")
    expect(session.takeReturn()).toBeUndefined()
    vi.stubGlobal("location", { pathname: "/console/", search: "" })
    vi.stubGlobal("history", {
      state: null,
      replaceState: (_: unknown, __: string, to?: string) => {
        location.pathname = to ?? location.pathname
      },
    })
    session.keepReturn("/vault")
    await found(ada)
    expect(place.value.path).toBe("/vault")
  })

  it("is ended with everything that the browser stores, also if the service does not respond", async () => {
    await found(ada)
    unsavedInput("x").write("y")
    client.setQueryData(["GET /api/vault", {}], {})
    const done = session.signOut()
    const request = await calls.next()
    expect([request.method, request.url]).toEqual(["DELETE", "/api/auth/session"])
    request.lose()
    await done
    expect([session.state.value.is, client.getQueryData(["GET /api/vault", {}])]).toEqual(["out", undefined])
    expect([Object.keys(localStorage), page.cookie.includes("Max-Age=0")]).toEqual([["svc-language"], true])
  })
})
