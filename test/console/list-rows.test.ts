/** Which rows of a long list are in the document, without a browser: rows have heights, and the screen a position. */
import { h } from "preact"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Drawn } from "./Drawn.ts"
import { browserAt, drawn, leavePage, source } from "./Modules.ts"

const { LongList } = await source("ui/LongList.tsx")

const perPage = 50
/** The pixels of a row; later rows may be higher. */
let heightOf: (row: number) => number = () => 30
/** How far the window is scrolled. */
let scrolled = 0
const pages = (count: number) =>
  Array.from({ length: count }, (_, page) => Array.from({ length: perPage }, (_, at) => page * perPage + at + 1))
const heightOfRows = (count: number) =>
  pages(count)
    .flat()
    .reduce((sum, row) => sum + heightOf(row), 0)

const { rectOf } = Drawn
beforeEach(async () => {
  scrolled = 0
  heightOf = () => 30
  await browserAt("/list")
  const height = (li: Drawn) =>
    "aria-hidden" in li.attributes
      ? Number.parseFloat(li.style["height"]!)
      : heightOf(Number(li.attributes["data-row"]))
  const sum = (all: ReadonlyArray<Drawn>) => all.reduce((pixels, li) => pixels + height(li), 0)
  Drawn.rectOf = (one) => {
    const at = (top: number, height: number) => ({ left: 0, width: 300, top, height, bottom: top + height })
    if (one.localName === "ul") return at(-scrolled - one.parentNode!.scrollTop, sum(one.children))
    if (one.localName !== "li") return at(0, 600)
    const { children, parentNode } = one.parentNode!
    return at(-scrolled - parentNode!.scrollTop + sum(children.slice(0, children.indexOf(one))), height(one))
  }
})
afterEach(async () => {
  await leavePage()
  Drawn.rectOf = rectOf
})

const opened = async (more: object = {}, props: object = {}) => {
  const of = (change: object = {}) => ({
    data: { pages: pages(10) },
    hasNextPage: true,
    isFetchingNextPage: false,
    error: null,
    ...list,
    ...more,
    ...change,
  })
  const list = { fetchNextPage: vi.fn(), show: vi.fn() }
  const row = (row: number, at: object) => h("li", { ...at, key: row, "data-row": row })
  const given = (change?: object) => ({
    of: of(change),
    rows: (page: ReadonlyArray<number>) => page,
    class: "rows",
    children: row,
    ...props,
  })
  const Column = (given: object) => h("div", { class: "column" }, h(LongList, given as never))
  const { top, draw, happen, fire, leave } = await drawn(Column, given())
  vi.stubGlobal("Element", Drawn)
  const [ul] = top.all("ul")
  const shown = () => ul!.children.filter(({ attributes }) => "data-row" in attributes)
  /** The first and last rows of each part of the list that is in the document. */
  const parts = () => {
    const found: Array<[number, number]> = []
    for (const { attributes } of shown()) {
      const row = Number(attributes["data-row"])
      const last = found.at(-1)
      if (last?.[1] === row - 1) last[1] = row
      else found.push([row, row])
    }
    return found
  }
  const scroll = (to: number) => {
    scrolled = to
    return happen("scroll capture")
  }
  return {
    ul: ul!,
    shown,
    parts,
    scroll,
    happen,
    fire,
    leave,
    ...list,
    change: (change: object) => draw(given(change)),
    height: () => ul!.getBoundingClientRect().height,
    onScreen: () => [...(list.show.mock.lastCall![0] as ReadonlySet<number>)],
    column: top.all("div")[0]!,
  }
}

describe("A long list", () => {
  it("has the rows near the screen in the document, and empty space in place of the others", async () => {
    const { ul, shown, parts, scroll, height, onScreen, change, happen } = await opened({}, { links: true })
    expect([ul.attributes["class"], "data-list" in ul.attributes]).toEqual(["rows", true])
    expect(parts()).toEqual([[1, 75]])
    expect([height(), onScreen()]).toEqual([15_000, [0]])
    await scroll(6_010)
    expect([parts(), height(), onScreen()]).toEqual([[[151, 275]], 15_000, [4]])
    await scroll(14_000)
    expect([parts(), height(), onScreen()]).toEqual([[[426, 500]], 15_000, [9]])
    // A lower window.
    vi.stubGlobal("innerHeight", 2_000)
    scrolled = 13_000
    await happen("resize")
    expect(parts()).toEqual([[401, 500]])
    const numbers = () => shown().map(({ attributes }) => [attributes["data-row"], attributes["aria-posinset"]])
    expect(numbers().every(([row, position]) => row === position)).toBe(true)
    const sizes = () => new Set(shown().map(({ attributes }) => attributes["aria-setsize"]))
    expect(sizes()).toEqual(new Set(["-1"]))
    await change({ hasNextPage: false })
    expect(sizes()).toEqual(new Set(["500"]))
  })

  it("keeps the heights of rows that left the document, also while it is hidden", async () => {
    heightOf = (row) => (row % 40 === 0 ? 110 : row > 250 ? 60 : 30)
    const { scroll, height, parts, change } = await opened()
    for (let to = 0; to < 30_000; to += 500) await scroll(to)
    expect(height()).toBeCloseTo(heightOfRows(10), 3)
    for (const to of [20_000, 9_000, 0]) {
      await scroll(to)
      expect(height(), String(to)).toBeCloseTo(heightOfRows(10), 3)
    }
    const before = heightOf
    heightOf = () => 0
    await change({})
    expect(parts()).toEqual([[1, 75]])
    heightOf = before
    await change({})
    expect(height()).toBeCloseTo(heightOfRows(10), 3)
  })

  it("keeps the row with the focus and those around it in the document", async () => {
    const { ul, shown, parts, scroll, fire } = await opened()
    for (const row of [1, 25, 26]) {
      await scroll(0)
      await fire(ul, "focusin", { target: shown()[row - 1] })
      await scroll(9_000)
      expect(parts()[0], String(row)).toEqual([1, row > 25 ? 75 : 50])
    }
    await fire(ul, "focusout")
    expect(parts()).toEqual([[251, 375]])
  })

  it("loads the next page when its end comes near, and again if the end is near once a page was loaded", async () => {
    const { scroll, change, fetchNextPage } = await opened()
    const loadsAt = async (to: number) => {
      fetchNextPage.mockClear()
      await scroll(to)
      return fetchNextPage.mock.calls.length
    }
    expect([await loadsAt(13_100), await loadsAt(13_300), await loadsAt(14_999), await loadsAt(15_001)]).toEqual([
      0, 1, 1, 0,
    ])
    for (const never of [{ hasNextPage: false }, { isFetchingNextPage: true }, { error: new Error("lost") }]) {
      await change(never)
      expect(await loadsAt(14_000), JSON.stringify(never)).toBe(0)
    }
    await change({ isFetchingNextPage: true })
    await change({ data: { pages: pages(11) } })
    expect(fetchNextPage).not.toHaveBeenCalled()
    await change({ isFetchingNextPage: true })
    await scroll(15_500)
    await change({ data: { pages: pages(12) } })
    expect(fetchNextPage).not.toHaveBeenCalled()
    await change({ isFetchingNextPage: true })
    await scroll(17_400)
    fetchNextPage.mockClear()
    await change({ data: { pages: pages(12) } })
    expect(fetchNextPage).toHaveBeenCalledOnce()
  })

  it("has its former height when it is shown again, and reports nothing after it was left", async () => {
    heightOf = () => 37
    const first = await opened()
    await first.leave()
    expect(first.show.mock.lastCall).toEqual([undefined])
    first.show.mockClear()
    await first.happen("scroll capture")
    await first.happen("resize")
    expect(first.show).not.toHaveBeenCalled()
    expect((await opened()).height()).toBe(18_500)
  })

  it("scrolls its column to the row that is open, unless that is in its upper half", async () => {
    const at = async (open: number) => {
      const { column, ul } = await opened({}, { isOpen: (row: number) => row === open })
      const row = ul.querySelector(`[data-row="${open}"]`)
      return [column.scrollTop, row?.getBoundingClientRect().top]
    }
    expect(await at(10)).toEqual([0, 270])
    const [to, top] = await at(330)
    expect(to).toBeGreaterThan(9_000)
    expect(top).toBeGreaterThan(0)
    expect(top).toBeLessThan(570)
    expect(await at(999)).toEqual([0, undefined])
  })
})
