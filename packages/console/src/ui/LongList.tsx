/**
 * A list of which only the rows near the screen are in the document. Rows may have any height: they are shown and hidden in
 * blocks, and an empty row has the height of the hidden ones. Screen readers learn the number of all rows, and the next page
 * is loaded when its end comes near.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { place } from "../router/Router.ts"

const rowsPerBlock = 25
/** Distance in pixels from the screen within which rows are in the document, and the next page is loaded. */
const margin = 800
/** The height of a row in pixels before one was measured. */
const usualHeight = 40

/** Attributes of a row for screen readers. */
export interface RowPlace {
  readonly "aria-posinset": number
  readonly "aria-setsize": number
}

interface Pages<A> {
  readonly data: { readonly pages: ReadonlyArray<A> } | undefined
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly error: Error | null
  readonly fetchNextPage: () => unknown
  readonly show: (positions: ReadonlySet<number> | undefined) => void
}

interface LongListProps<A, R> {
  readonly of: Pages<A>
  readonly rows: (page: A) => ReadonlyArray<R>
  readonly class: string
  /** Rows are links that `j` and `k` move between. */
  readonly links?: boolean
  /** The row that is shown when the list is in a column of its own. */
  readonly isOpen?: (row: R) => boolean
  /** Returns the `<li>` of a row. */
  readonly children: (row: R, at: RowPlace) => ComponentChildren
}

interface Block<R> {
  readonly rows: ReadonlyArray<R>
  /** Position of its first row in the list. */
  readonly start: number
  readonly page: number
}

const blocksOf = <A, R>(pages: ReadonlyArray<A>, rows: (page: A) => ReadonlyArray<R>) => {
  const blocks: Array<Block<R>> = []
  let start = 0
  for (const [index, page] of pages.entries()) {
    const all = rows(page)
    for (let at = 0; at < all.length; at += rowsPerBlock)
      blocks.push({ rows: all.slice(at, at + rowsPerBlock), start: start + at, page: index })
    start += all.length
  }
  return { blocks, count: start }
}

/** Heights of rows in lists that were left, so that Back finds the scroll position. */
const heightsOfLeft = new Map<string, number>()
const leftAtMost = 50

interface Span {
  readonly first: number
  readonly last: number
}

export const LongList = <A, R>({ of, rows, class: name, links, isOpen, children }: LongListProps<A, R>) => {
  const { blocks, count } = blocksOf(of.data?.pages ?? [], rows)
  const [near, setNear] = useState<Span>({ first: 0, last: 1 })
  const [focused, setFocused] = useState<number>()
  const list = useRef<HTMLUListElement>(null)
  /** Heights of rows, as the mean of their block. */
  const heights = useRef(new Map<number, number>())
  const usual = useRef(heightsOfLeft.get(place.peek().path) ?? usualHeight)
  const latest = useRef({ of, blocks })
  latest.current = { of, blocks }
  const heightOf = (index: number, { rows }: Block<R>) => (heights.current.get(index) ?? usual.current) * rows.length

  const isShown = (index: number) =>
    (index >= near.first && index <= near.last) || (focused !== undefined && Math.abs(index - focused) <= 1)

  /** Measures the blocks that are in the document. */
  const measure = () => {
    const elements = list.current?.children
    let at = 0
    let sum = 0
    let measured = 0
    for (const [index, { rows }] of blocks.entries()) {
      if (!isShown(index)) {
        if (index === 0 || isShown(index - 1)) at++
        continue
      }
      const first = elements?.[at]
      const last = elements?.[at + rows.length - 1]
      at += rows.length
      if (first === undefined || last === undefined) continue
      const height = last.getBoundingClientRect().bottom - first.getBoundingClientRect().top
      // The list is hidden.
      if (height === 0) continue
      heights.current.set(index, height / rows.length)
      sum += height
      measured += rows.length
    }
    if (measured > 0) usual.current = sum / measured
  }

  const update = useRef(() => {})
  update.current = () => {
    const { of, blocks } = latest.current
    if (list.current === null || blocks.length === 0) return
    let top = list.current.getBoundingClientRect().top
    let [first, last] = [blocks.length - 1, 0]
    const pages = new Set<number>()
    for (const [index, block] of blocks.entries()) {
      const bottom = top + heightOf(index, block)
      if (bottom >= -margin && top <= innerHeight + margin) {
        first = Math.min(first, index)
        last = Math.max(last, index)
      }
      if (bottom >= 0 && top <= innerHeight) pages.add(block.page)
      top = bottom
    }
    if (first <= last && (first !== near.first || last !== near.last)) setNear({ first, last })
    of.show(pages)
  }
  /** Whether the row of the open message is still to be scrolled into its column. */
  const isRevealing = useRef(isOpen !== undefined)
  const reveal = () => {
    const column = list.current?.parentElement
    const index = blocks.findIndex(({ rows }) => rows.some((row) => isOpen!(row)))
    isRevealing.current = false
    if (column == null || index === -1) return
    const { start, rows } = blocks[index]!
    const at = rows.findIndex((row) => isOpen!(row))
    const shown = list.current!.querySelector(`[aria-posinset="${start + at + 1}"]`)
    const above = blocks.slice(0, index).reduce((sum, block, before) => sum + heightOf(before, block), 0)
    const top = shown?.getBoundingClientRect().top ?? list.current!.getBoundingClientRect().top + above
    const from = top - column.getBoundingClientRect().top
    if (from > column.clientHeight / 2) column.scrollTop += from - column.clientHeight / 3
    isRevealing.current = shown === null
  }
  useLayoutEffect(() => {
    measure()
    if (isRevealing.current) reveal()
    update.current()
  })

  const loadNext = useRef(() => {
    const { of } = latest.current
    const bottom = list.current?.getBoundingClientRect().bottom ?? 0
    if (of.hasNextPage && !of.isFetchingNextPage && of.error === null && bottom > 0 && bottom < innerHeight + margin)
      void of.fetchNextPage()
  })
  // The reader may have reached the end while a page was loading, and then does not scroll again.
  useEffect(() => (of.isFetchingNextPage ? () => loadNext.current() : undefined), [of.isFetchingNextPage])
  useEffect(() => {
    const onScroll = () => {
      update.current()
      loadNext.current()
    }
    // Scroll events of a column do not bubble, so the document only sees them while they are captured.
    document.addEventListener("scroll", onScroll, { capture: true, passive: true })
    addEventListener("resize", onScroll)
    const { path } = place.peek()
    return () => {
      document.removeEventListener("scroll", onScroll, { capture: true })
      removeEventListener("resize", onScroll)
      heightsOfLeft.delete(path)
      heightsOfLeft.set(path, usual.current)
      for (const oldest of heightsOfLeft.keys()) if (heightsOfLeft.size > leftAtMost) heightsOfLeft.delete(oldest)
    }
  }, [])
  useEffect(() => () => of.show(undefined), [of.show])

  const total = of.hasNextPage ? -1 : count
  const shown: Array<ComponentChildren> = []
  let hidden = 0
  const flush = (key: number) => {
    if (hidden > 0)
      shown.push(<li key={`hidden-${key}`} class="hidden-rows" aria-hidden="true" style={{ height: `${hidden}px` }} />)
    hidden = 0
  }
  for (const [index, block] of blocks.entries()) {
    if (!isShown(index)) {
      hidden += heightOf(index, block)
      continue
    }
    flush(index)
    for (const [at, row] of block.rows.entries())
      shown.push(children(row, { "aria-posinset": block.start + at + 1, "aria-setsize": total }))
  }
  flush(blocks.length)

  return (
    <ul
      ref={list}
      class={name}
      {...(links === true ? { "data-list": "" } : {})}
      onFocusIn={({ target }) => {
        const row = target instanceof Element ? target.closest("[aria-posinset]") : null
        if (row === null) return
        const at = Number(row.getAttribute("aria-posinset")) - 1
        setFocused(blocks.findIndex(({ start, rows }) => at >= start && at < start + rows.length))
      }}
      onFocusOut={() => setFocused(undefined)}
    >
      {shown}
    </ul>
  )
}
