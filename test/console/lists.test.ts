/** How lists that are read page by page change while they are shown, without a browser. */
import { afterEach, describe, expect, it, vi } from "vitest"
import { drawn, eventually, heldCalls, leavePage, listedKey, mounted, source } from "./Modules.ts"

const { changing, client, outdated } = await source("client/Queries.ts")
const { merged, useList } = await source("client/Lists.ts")
const { default: KeysPage } = await source("keys/KeysPage.tsx")

afterEach(leavePage)

describe("A list that is read page by page", () => {
  const size = 3
  interface Row {
    readonly id: string
    /** The newest row is the first. */
    readonly updated_at: number
  }
  /** The service: a cursor continues after the row that was the last of its page. */
  const pageOf = (rows: ReadonlyArray<Row>, cursor: string | null) => {
    const later = rows.filter(({ updated_at }) => cursor === null || updated_at < Number(cursor))
    const some = later.slice(0, size)
    return { rows: some, next_cursor: later.length > size ? String(some.at(-1)!.updated_at) : null }
  }
  type Known = ReadonlyArray<{
    readonly name: number
    readonly page: { rows: ReadonlyArray<Row>; next_cursor: string | null }
  }>
  const idsOf = (known: Known) => known.map(({ page }) => page.rows.map(({ id }) => id).join(""))
  /** Rows in the order of the alphabet; those before a smaller letter are new or have changed. */
  const rowsOf = (ids: string): Array<Row> =>
    Array.from(ids, (id, at) => ({
      id,
      updated_at: Array.from(ids).some((other, n) => n > at && other < id) ? 1000 - at : 200 - id.codePointAt(0)!,
    }))
  const loaded = (ids: string): Known => {
    const rows = rowsOf(ids)
    let known: Known = []
    for (let cursor: string | null = null; ; cursor = known.at(-1)!.page.next_cursor) {
      known = merged(known, known.length, pageOf(rows, cursor)).known
      if (known.at(-1)!.page.next_cursor === null) return known
    }
  }
  const refreshed = (known: Known, ids: string) => {
    const { known: next, goesOn } = merged(known, 0, pageOf(rowsOf(ids), null))
    return [idsOf(next), goesOn, next.at(-1)!.page.next_cursor !== null] as const
  }

  it.each([
    ["unchanged", "abcdefgh", ["abc", "def", "gh"], false, false],
    ["a new row", "xabcdefgh", ["xab", "cdef", "gh"], false, false],
    ["a row that is gone", "bcdefgh", ["bcd", "efgh"], false, false],
    ["a row that came up", "gabcdefh", ["gab", "cdef", "h"], false, false],
    ["the only row of the last page that came up", "gabcdef", ["gab", "cdef"], false, true],
    ["a page of new rows", "xyzabcdefgh", ["xyz", "abc", "def", "gh"], true, false],
    ["only its first page left", "abc", ["abc"], false, false],
    ["no rows left", "", [""], false, false],
    ["one row fewer, so that a page is empty", "def", ["def"], false, false],
  ])("is merged with its first page: %s", (what, ids, pages, goesOn, hasMore) => {
    const known = loaded(what.startsWith("the only row") ? "abcdefg" : "abcdefgh")
    expect(refreshed(known, ids)).toEqual([pages, goesOn, hasMore])
  })

  it.each(["updated_at", "last_message_at"])("puts a row with a new %s at its new place", (member) => {
    const row = (id: string, at: number) => ({ id, [member]: at })
    const page = (next_cursor: string | null, ...rows: ReadonlyArray<object>) => ({ rows, next_cursor })
    const one = merged([], 0, page("7", row("a", 9), row("b", 8), row("c", 7))).known
    const all = merged(one, 1, page(null, row("d", 6), row("e", 5))).known
    // `e` came up, and `d` is now the last row of the first page.
    const { known, goesOn } = merged(all, 0, page("6", row("e", 10), row("a", 9), row("b", 8)))
    expect([idsOf(known), goesOn]).toEqual([["eab", "cd"], false])
    const moved = merged(all, 0, page("11", row("x", 13), row("y", 12), row("c", 11)))
    expect([idsOf(moved.known), moved.goesOn]).toEqual([["xyc", "ab", "de"], true])
  })

  it("reads one page when it was empty before", () => {
    expect(refreshed(loaded(""), "abcdefgh")).toEqual([["abc"], false, true])
  })

  it("has a further page if rows were added at its end, as in a conversation", () => {
    const page = { rows: rowsOf("abc"), next_cursor: null }
    const { known } = merged([], 0, page)
    const next_cursor = String(page.rows.at(-1)!.updated_at)
    expect(merged(known, 0, { ...page, next_cursor }).known).toEqual([{ ...known[0], page: { ...page, next_cursor } }])
  })

  it("has no empty pages, no row twice and the order of the service after all its pages were read again", () => {
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((seed / 2_147_483_648) * below)
    }
    for (let round = 0; round < 300; round++) {
      let rows: Array<Row> = rowsOf("abcdefghijklmno".slice(0, 1 + random(15)))
      let known = loaded(rows.map(({ id }) => id).join("")).slice(0, 1 + random(5))
      for (let change = 0; change < 4; change++) {
        const at = random(rows.length)
        const kind = random(3)
        const row = rows[at]
        const updated_at = 2000 + round * 4 + change
        if (kind === 0) rows = [{ id: `new ${updated_at}`, updated_at }, ...rows]
        else if (row !== undefined) rows = rows.toSpliced(at, 1)
        if (kind === 2 && row !== undefined) rows = [{ ...row, updated_at }, ...rows]
        let goesOn = true
        for (let page = 0; page < known.length && (page === 0 || goesOn || round % 2 === 0); page++) {
          const cursor = page === 0 ? null : known[page - 1]!.page.next_cursor
          if (page > 0 && cursor === null) break
          const next = merged(known, page, pageOf(rows, cursor))
          known = next.known
          goesOn = next.goesOn
          const ids = known.flatMap(({ page }) => page.rows.map(({ id }) => id))
          expect(new Set(ids).size).toBe(ids.length)
          // The last page may turn out to be empty when it is read.
          expect(known.slice(1, -1).filter(({ page }) => page.rows.length === 0)).toEqual([])
          expect(new Set(known.map(({ name }) => name)).size).toBe(known.length)
        }
      }
      if (round % 2 === 1) continue
      const shown = known.flatMap(({ page }) => page.rows.map(({ id }) => id))
      expect(shown).toEqual(rows.slice(0, shown.length).map(({ id }) => id))
      expect(known.at(-1)!.page.next_cursor === null).toBe(shown.length === rows.length)
    }
  })

  const route = "GET /api/vault"
  const list = async () => {
    const calls = heldCalls()
    const hook = await mounted((): any => useList(route, {}), {})
    const rows = (ids: string, hasNext: boolean) => {
      const secrets = rowsOf(ids)
      return { secrets, next_cursor: hasNext ? String(secrets.at(-1)!.updated_at) : null }
    }
    const after = (id: string) => `/api/vault?cursor=${rowsOf(id)[0]!.updated_at}`
    const shown = () => hook.now.data?.pages.map((page: any) => page.secrets.map(({ id }: Row) => id).join(""))
    const answer = async (status: number, body: object) => {
      const call = await calls.next()
      await hook.act(() => call.answer(status, body))
      return call.url
    }
    const shows = (pages: ReadonlyArray<string>) => eventually(() => expect(shown()).toEqual(pages))
    return { calls, hook, rows, answer, shows, after }
  }

  it("appends the next page once, and reads it again if the list changed meanwhile", async () => {
    const { calls, hook, rows, answer, shows, after } = await list()
    await answer(200, rows("abc", true))
    await shows(["abc"])
    expect(hook.now.hasNextPage).toBe(true)
    await hook.act(() => {
      void hook.now.fetchNextPage()
      void hook.now.fetchNextPage()
    })
    const next = await calls.next()
    expect([next.url, calls.waiting(), hook.now.isFetchingNextPage]).toEqual([after("c"), 0, true])
    // A row is deleted before the response.
    await hook.act(() => void outdated(["/api/vault"]))
    await answer(200, rows("abd", true))
    expect(await answer(200, rows("efg", true))).toBe(after("d"))
    expect(await answer(200, rows("h", false))).toBe(after("g"))
    await shows(["abd", "efg", "h"])
    await hook.act(() => next.answer(200, rows("def", true)))
    await shows(["abd", "efg", "h"])
    await eventually(() => expect([hook.now.hasNextPage, hook.now.isFetchingNextPage]).toEqual([false, false]))
    await hook.leave()
  })

  it("shows why the next page could not be read, and can be read again", async () => {
    const { hook, rows, answer, shows } = await list()
    await answer(200, rows("abc", true))
    await shows(["abc"])
    await hook.act(() => void hook.now.fetchNextPage())
    await answer(422, { status: 422, detail: "no" })
    await eventually(() => expect(hook.now.error?.message).toBe("no"))
    expect(hook.now.isFetchingNextPage).toBe(false)
    await hook.act(() => void hook.now.fetchNextPage())
    expect(hook.now.error).toBeNull()
    await answer(200, rows("def", false))
    await shows(["abc", "def"])
    await hook.leave()
  })

  it("reads a page on the screen again unless the page before it changed meanwhile", async () => {
    const { calls, hook, rows, answer, shows, after } = await list()
    await answer(200, rows("abc", true))
    await shows(["abc"])
    await hook.act(() => void hook.now.fetchNextPage())
    await answer(200, rows("def", false))
    await shows(["abc", "def"])
    await hook.act(() => hook.now.show(new Set([0])))
    await hook.act(() => void outdated(["/api/vault"]))
    await answer(200, rows("abc", true))
    await eventually(() => expect(client.isFetching()).toBe(0))
    expect(calls.waiting()).toBe(0)
    await hook.act(() => hook.now.show(new Set([0, 1])))
    const renewal = await calls.next()
    expect(renewal.url).toBe(after("c"))
    await hook.act(() => hook.now.show(new Set([0, 1])))
    expect(calls.waiting()).toBe(0)
    await hook.act(() => hook.now.show(new Set([0])))
    await hook.act(() => void outdated(["/api/vault"]))
    await answer(200, rows("xab", true))
    await shows(["xab", "cdef"])
    // The response about the former page is dropped, and the page is read again.
    await hook.act(() => renewal.answer(200, rows("dzf", false)))
    await eventually(() => {
      hook.now.show(new Set([0, 1]))
      expect(calls.waiting()).toBe(1)
    })
    await shows(["xab", "cdef"])
    expect(await answer(200, rows("cdef", false))).toBe(after("b"))
    await hook.leave()
  })

  it("restores what a failed change supposed", async () => {
    const input = { params: { handle: "ada" } }
    const fails = () => Promise.reject(new Error("no"))
    client.setQueryData([route, input], { secrets: [] })
    const made = changing(route, input, () => ({ secrets: [{ id: "a" }] }), fails)
    expect(client.getQueryData([route, input])).toEqual({ secrets: [{ id: "a" }] })
    await expect(made).rejects.toThrow("no")
    expect(client.getQueryData([route, input])).toEqual({ secrets: [] })
    await expect(changing("GET /api/keys", input, () => ({ api_keys: [] }), fails)).rejects.toThrow("no")
    expect(client.getQueryData(["GET /api/keys", input])).toBeUndefined()
  })
})

it("The list of keys offers a rotation only for keys that are valid and not replaced", async () => {
  const calls = heldCalls()
  vi.stubGlobal("location", { pathname: "/console/keys", search: "" })
  const keys = [
    listedKey("valid"),
    listedKey("used", {
      last_used_at: "2026-11-02T00:00:00Z",
      last_used_address: "192.0.2.1",
      networks: ["192.0.2.0/24"],
    }),
    listedKey("replaced", { replaced_by: "valid", expires_at: "2099-01-01T00:00:00Z" }),
    listedKey("ended", { expires_at: "2020-01-01T00:00:00Z" }),
    listedKey("narrow", { scopes: ["mail:read", "card:read"], expires_at: "2099-01-01T00:00:00Z" }),
  ]
  const bodies: Readonly<Record<string, object>> = {
    "/api/keys": { api_keys: keys, next_cursor: null },
    "/api/identities": { identities: [], next_cursor: null },
    "/api/grants": { grants: [], next_cursor: null },
  }
  const { top, leave } = await drawn(KeysPage, {})
  for (const _ of Object.keys(bodies)) {
    const { url, answer } = await calls.next()
    answer(200, bodies[url.split("?")[0]!])
  }
  await eventually(() => expect(top.all("tr").length).toBe(keys.length + 1))
  const shown = top.all("tr").flatMap((row) => {
    const name = keys.find((one) => row.all("td")[0]?.textContent === one.name)?.name
    if (name === undefined) return []
    const [, , rights, , end, use] = row.all("td").map(({ textContent }) => textContent)
    const state = /Never|Expired|Rotated/.exec(end!)?.[0]
    const address = /from (.*)/.exec(use!)?.[1]
    return [[name, rights, state, address, row.all("button").map(({ textContent }) => textContent)]]
  })
  expect(shown).toEqual([
    ["valid", "Full access", "Never", undefined, ["Rotate", "Revoke"]],
    ["used", "Full access192.0.2.0/24", "Never", "192.0.2.1", ["Rotate", "Revoke"]],
    ["replaced", "Full access", "Rotated", undefined, ["Revoke"]],
    ["ended", "Full access", "Expired", undefined, ["Revoke"]],
    ["narrow", "mail:read card:read", undefined, undefined, ["Rotate", "Revoke"]],
  ])
  await leave()
})
