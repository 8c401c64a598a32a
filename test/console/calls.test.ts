/** How calls are sent, when reads are repeated, and what runs later, without a browser. */
import { focusManager, onlineManager } from "@tanstack/preact-query"
import { afterEach, describe, expect, it, vi } from "vitest"
import { eventually, heldCalls, leavePage, mounted, source } from "./Modules.ts"

const { call, callTagged, Unreachable } = await source("client/Client.ts")
const { changing, client, outdated, useCall } = await source("client/Queries.ts")
const { useList } = await source("client/Lists.ts")
const { applyEvent } = await source("client/Invalidation.ts")
const { beginning } = await source("client/TextPreview.ts")
const { later } = await source("client/Idle.ts")
const { useUncached } = await source("client/Uncached.ts")

afterEach(async () => {
  vi.useRealTimers()
  focusManager.setFocused(undefined)
  onlineManager.setOnline(true)
  await leavePage()
  vi.restoreAllMocks()
})

describe("A call", () => {
  it("is only sent beyond the end of its page if that is asked for, because browsers limit the size of such calls", async () => {
    const fetched = vi.fn(async (_url: string, _init: RequestInit) => new Response(null, { status: 204 }))
    vi.stubGlobal("fetch", fetched)
    await call("DELETE /api/x")
    await call("POST /api/x", { body: {} }, { key: "k", keepalive: true })
    expect(fetched.mock.calls.map(([, { keepalive }]) => keepalive)).toEqual([false, true])
  })

  class Upload {
    static last: Upload
    readonly opened: Array<unknown> = []
    readonly headers: Record<string, string> = {}
    readonly upload: { onprogress?: (event: object) => void } = {}
    status = 0
    responseText = ""
    sent = ""
    onload = () => {}
    onerror = () => {}
    onabort = () => {}
    received: Record<string, string> = {}
    constructor() {
      Upload.last = this
    }
    open(...how: ReadonlyArray<unknown>) {
      this.opened.push(...how)
    }
    setRequestHeader(name: string, value: string) {
      this.headers[name] = value
    }
    getResponseHeader(name: string) {
      return this.received[name] ?? null
    }
    send(body: string) {
      this.sent = body
    }
    abort() {
      this.onabort()
    }
    answer(status: number, body = "", received: Record<string, string> = {}) {
      Object.assign(this, { status, responseText: body, received })
      this.onload()
    }
  }
  const uploading = (more: object = {}) => {
    vi.stubGlobal("XMLHttpRequest", Upload)
    const shares: Array<number> = []
    const manner = { key: "k", ifMatch: '"1"', onSent: (share: number) => shares.push(share), ...more }
    const done = callTagged("POST /api/x", { body: { a: 1 } }, manner)
    return { done, shares, request: Upload.last }
  }

  it("with a large body tells how much of it was sent, and has the same headers and the same result as others", async () => {
    const { done, shares, request } = uploading()
    request.upload.onprogress!({ loaded: 1, total: 4 })
    request.answer(201, '{"id":"x"}', { "content-type": "application/json", etag: '"2"' })
    expect([await done, shares]).toEqual([{ answer: { id: "x" }, tag: '"2"' }, [0.25]])
    expect([request.opened, request.sent]).toEqual([["POST", "/api/x"], '{"a":1}'])
    const headers = {
      "svc-console": "1",
      "content-type": "application/json",
      "idempotency-key": "k",
      "if-match": '"1"',
    }
    expect(request.headers).toEqual(headers)
    const empty = uploading()
    empty.request.answer(204)
    expect((await empty.done).answer).toBeUndefined()
  })

  it("with a large body can be lost and aborted", async () => {
    const lost = uploading()
    lost.request.onerror()
    await expect(lost.done).rejects.toBeInstanceOf(Unreachable)
    const given = new AbortController()
    const { done } = uploading({ signal: given.signal })
    given.abort()
    await expect(done).rejects.not.toBeInstanceOf(Unreachable)
  })

  it("without a body has nothing to report about it", async () => {
    const calls = heldCalls()
    const done = call("DELETE /api/x", undefined, { onSent: () => {} })
    ;(await calls.next()).answer(204)
    expect(await done).toBeUndefined()
  })
})

describe("A read", () => {
  const route = "GET /api/keys"
  const reads = (reader: object = {}) =>
    mounted(({ input }: { readonly input: object }): any => useCall(route, input, reader), { input: {} })

  it("is repeated after the time that its page chooses by what was read", async () => {
    const known = { api_keys: [] }
    client.setQueryData([route, {}], known)
    await reads({ every: (read: object) => (read === known ? 500 : false) })
    const query = client.getQueryCache().find({ queryKey: [route, {}] })
    // Queries repeat themselves only in a browser.
    expect(query.observers[0].options.refetchInterval(query)).toBe(500)
  })

  it("that fails is repeated after half a second and after a second", async () => {
    vi.useFakeTimers()
    const at: Array<number> = []
    const start = Date.now()
    const queryFn = () => {
      at.push(Date.now() - start)
      throw new Unreachable("gone")
    }
    const done = client.fetchQuery({ queryKey: ["GET /api/x", {}], queryFn }).catch(() => "failed")
    await vi.advanceTimersByTimeAsync(60_000)
    expect([await done, at]).toEqual(["failed", [0, 500, 1_500]])
  })

  it("is repeated after 15 seconds when it is shown again or the window gets the focus, and ends with its page", async () => {
    vi.useFakeTimers({ toFake: ["Date"] })
    const calls = heldCalls()
    client.setQueryData([route, {}], { api_keys: [] })
    const shown = await reads()
    const focus = () =>
      shown.act(() => {
        focusManager.setFocused(false)
        focusManager.setFocused(true)
      })
    await focus()
    vi.advanceTimersByTime(14_999)
    await focus()
    expect(calls.waiting()).toBe(0)
    vi.advanceTimersByTime(1)
    await focus()
    const [first] = [await calls.next()]
    await shown.act(() => first.answer(200, { api_keys: [] }))
    await eventually(() => expect(client.isFetching()).toBe(0))
    vi.advanceTimersByTime(15_000)
    await shown.leave()
    const again = await reads()
    await calls.next()
    expect(client.isFetching()).toBe(1)
    await again.leave()
    // The call was aborted.
    await eventually(() => expect(client.isFetching()).toBe(0))
  })

  it("shows what it was told to show until its data arrives", async () => {
    const calls = heldCalls()
    const steady = await reads({ steady: true })
    await steady.act(() => calls.all[0]!.answer(200, { api_keys: ["a"] }))
    await eventually(() => expect(steady.now.data).toEqual({ api_keys: ["a"] }))
    await steady.draw({ input: { query: { limit: 2 } } })
    expect([steady.now.data, steady.now.isPlaceholderData]).toEqual([{ api_keys: ["a"] }, true])
    await steady.leave()
    const meanwhile = await mounted(
      (): any => useCall(route, { query: { limit: 3 } }, { meanwhile: () => ({ api_keys: ["b"] }) }),
      {},
    )
    expect(meanwhile.now.data).toEqual({ api_keys: ["b"] })
    await meanwhile.leave()
  })

  it("is replaced by a change also while the browser believes that it has no network", async () => {
    onlineManager.setOnline(false)
    const make = vi.fn(async () => {})
    await changing(route, { params: { handle: "ada" } }, (before: object) => before, make)
    expect(make).toHaveBeenCalledTimes(1)
  })

  it("of a list reads all its pages again, unless it says which of them are on the screen", async () => {
    const calls = heldCalls()
    // A list of its own: which pages are on the screen is known for each list, also from other files.
    const input = { query: { limit: 7 } }
    const list = await mounted((): any => useList("GET /api/vault", input), {})
    const page = (name: string, next: string | null) => ({ secrets: [{ name }], next_cursor: next })
    const answer = async (body: object) => {
      const { url, answer } = await calls.next()
      await list.act(() => answer(200, body))
      return url
    }
    await answer(page("a", "1"))
    await eventually(() => expect(list.now.hasNextPage).toBe(true))
    await list.act(() => void list.now.fetchNextPage())
    await answer(page("b", null))
    await eventually(() => expect(list.now.data.pages.length).toBe(2))
    await list.act(() => void outdated(["/api/vault"]))
    expect([await answer(page("a", "1")), await answer(page("b2", null))]).toEqual([
      "/api/vault?limit=7",
      "/api/vault?limit=7&cursor=1",
    ])
    await eventually(() => expect(list.now.data.pages.at(-1).secrets).toEqual([{ name: "b2" }]))
    // A response that arrives after sign-out is not stored.
    await list.act(() => void outdated(["/api/vault"]))
    const late = await calls.next()
    client.clear()
    await list.act(() => late.answer(200, page("a", null)))
    expect(client.getQueryData(["GET /api/vault", input])).toBeUndefined()
    await list.leave()
  })
})

describe("The beginning of a text", () => {
  const stream = (chunks: ReadonlyArray<Uint8Array>, status = 200) => {
    const cancelled = vi.fn()
    let at = 0
    const body = new ReadableStream(
      {
        pull: (to) => (at < chunks.length ? to.enqueue(chunks[at++]) : to.close()),
        cancel: cancelled,
      },
      { highWaterMark: 0 },
    )
    const fetched = vi.fn(async (_url: string, _init: RequestInit) => new Response(body, { status }))
    vi.stubGlobal("fetch", fetched)
    const { signal } = new AbortController()
    return { read: beginning("/source", signal) as Promise<string>, cancelled, signal, fetched, pulled: () => at }
  }

  it("is decoded across the parts in which it arrives, and its read can be aborted", async () => {
    const bytes = new TextEncoder().encode("für")
    const { read, fetched, signal } = stream([bytes.slice(0, 2), bytes.slice(2)])
    expect(await read).toBe("für")
    expect(fetched.mock.calls[0]).toEqual(["/source", { signal }])
    await expect(stream([], 404).read).rejects.toBeInstanceOf(Unreachable)
  })

  it("is all that is read of a long text", async () => {
    const part = new TextEncoder().encode("x".repeat(150_000))
    const { read, cancelled, pulled } = stream([part, part, part, part])
    expect((await read).length).toBe(200_000)
    expect([cancelled.mock.calls.length, pulled()]).toEqual([1, 2])
  })
})

it("Work for later runs when the browser is idle or after its time at the latest, unless it is cancelled", () => {
  vi.useFakeTimers()
  const run = vi.fn()
  later(run)
  later(run)()
  vi.advanceTimersByTime(300)
  expect(run).toHaveBeenCalledTimes(1)
  const [request, cancel] = [vi.fn((_run: () => void, _how: object) => 7), vi.fn()]
  vi.stubGlobal("requestIdleCallback", request)
  vi.stubGlobal("cancelIdleCallback", cancel)
  later(run)()
  expect([request.mock.calls[0], cancel.mock.calls]).toEqual([[run, { timeout: 1500 }], [[7]]])
})

it("An Event of a type that is newer than the console makes the Identities stale", async () => {
  vi.useFakeTimers()
  client.setQueryData(["GET /api/identities", {}], {})
  applyEvent({ id: "1", type: "planet.moved", handle: null, created_at: "" })
  await vi.advanceTimersByTimeAsync(150)
  expect(client.getQueryState(["GET /api/identities", {}]).isInvalidated).toBe(true)
})

it("A read of secrets ends with its component", async () => {
  let given: AbortSignal
  const read = (signal: AbortSignal) => {
    given = signal
    return new Promise(() => {})
  }
  const shown = await mounted((): any => useUncached(read), {})
  expect([given!.aborted, shown.now.isPending]).toEqual([false, true])
  await shown.leave()
  expect(given!.aborted).toBe(true)
})
