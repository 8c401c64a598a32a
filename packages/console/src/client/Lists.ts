/**
 * Lists that are read page by page. When a list becomes stale, its first page and the pages on the screen are read again, and
 * merged by the ids of their rows; other pages are read again when they are shown. So a new row costs one request, however
 * many pages are loaded.
 */
import { useQuery } from "@tanstack/preact-query"
import { useCallback, useRef, useState } from "preact/hooks"
import { type Answer, call, type Input, type Manner, type Reading } from "./Client.ts"
import { client, keyOf, retries } from "./Queries.ts"

interface Page {
  readonly next_cursor: string | null
}
type Listing = { [R in Reading]: Answer<R> extends Page ? R : never }[Reading]

type Row = Readonly<Record<string, unknown>>

/** A loaded page. `name` stays the same while its rows change. */
interface Entry<A> {
  readonly name: number
  readonly page: A
  readonly isStale: boolean
}
type Known<A> = ReadonlyArray<Entry<A>>

/** The member of a page that has its rows. */
const memberOf = (page: object) => Object.entries(page).find(([, value]) => Array.isArray(value))![0]
const rowsOf = (page: object) => (page as Readonly<Record<string, ReadonlyArray<Row>>>)[memberOf(page)]!
const withRows = <A extends object>(page: A, rows: ReadonlyArray<Row>): A => ({ ...page, [memberOf(page)]: rows })

const idOf = ({ id, address, name, version }: Row) => String(id ?? address ?? name ?? version)
/** Whether a row is still at its place: those that change it have a member that says when. */
const isAtItsPlace = (row: Row, before: Row) =>
  idOf(row) === idOf(before) &&
  row["last_message_at"] === before["last_message_at"] &&
  row["updated_at"] === before["updated_at"]

let names = 0

/**
 * Replaces the page `at` a position by its current content. The rows that it has pushed out begin the next page, and those that
 * it has pulled in leave theirs. `goesOn` if the next page must be read again, because it is unknown where its rows continue.
 */
export const merged = <A extends Page>(known: Known<A>, at: number, page: A) => {
  const rows = rowsOf(page)
  const ids = new Set(rows.map(idOf))
  const without = (entries: Known<A>): Known<A> =>
    entries.map((entry) => ({
      ...entry,
      page: withRows(
        entry.page,
        rowsOf(entry.page).filter((row) => !ids.has(idOf(row))),
      ),
    }))
  const isFilled = (entry: Entry<A>) => rowsOf(entry.page).length > 0
  const before = without(known.slice(0, at)).filter((entry, index) => index === 0 || isFilled(entry))
  const own: Entry<A> = { name: known[at]?.name ?? ++names, page, isStale: false }
  const rest = known.slice(at)
  const last = rows.at(-1)
  if (page.next_cursor === null || last === undefined || rest.length === 0)
    return { known: [...before, own], goesOn: false }
  const found = rest.findIndex((entry) => rowsOf(entry.page).some((row) => isAtItsPlace(last, row)))
  if (found === -1) {
    // Pages that have become empty are dropped. If none remains, no further page was loaded, so none is read again.
    const later = without(rest)
      .filter(isFilled)
      .map((entry, index) => (index === 0 ? { ...entry, name: ++names } : entry))
    return { known: [...before, own, ...later], goesOn: later.length > 0 }
  }
  const end = rest[found]!
  const endRows = rowsOf(end.page)
  const tail = endRows
    .slice(endRows.findIndex((row) => isAtItsPlace(last, row)) + 1)
    .filter((row) => !ids.has(idOf(row)))
  const [next, ...others] = without(rest.slice(found + 1))
  const following: Known<A> =
    next === undefined
      ? [{ ...end, name: ++names, page: withRows(end.page, tail), isStale: true }]
      : [
          {
            ...next,
            page: withRows(next.page, [...tail, ...rowsOf(next.page)]),
            isStale: next.isStale || tail.length > 0,
          },
          ...others,
        ]
  return { known: [...before, own, ...following.filter(isFilled)], goesOn: false }
}

/** The names of the pages on the screen, for lists that report them; all pages of other lists are on the screen. */
const shown = new Map<string, ReadonlySet<number>>()
/** Pages that are being read again. */
const renewing = new Set<number>()

const read = call as (route: string, input?: object, manner?: Manner) => Promise<unknown>

/** Attempts to append a page to a list that changes at the same time. */
const attemptsAtMost = 5

export const useList = <R extends Listing>(
  route: R,
  input: Input<R>,
  reader: {
    readonly enabled?: boolean
    /** Returns the refetch interval in milliseconds for the loaded pages, or false. */
    readonly every?: (known: ReadonlyArray<Answer<R>>) => number | false
  } = {},
) => {
  type A = Answer<R> & Page
  const key = keyOf(route, input)
  const hash = JSON.stringify(key)
  const get = () => client.getQueryData<Known<A>>(key)
  const put = (known: Known<A>) => void client.setQueryData(key, known)
  const load = async (cursor: string | null | undefined, signal?: AbortSignal) => {
    const { query } = input as { query?: object }
    const asked = { ...input, query: { ...query, ...(cursor == null ? {} : { cursor }) } }
    return (await read(route, asked, signal === undefined ? {} : { signal })) as A
  }
  const list = useQuery<Known<A>, Error, Known<A>>({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const onScreen = shown.get(hash)
      let goesOn = false
      for (let at = 0; at < Math.max(1, get()?.length ?? 0); at++) {
        const known = get() ?? []
        if (at > 0 && !goesOn && onScreen?.has(known[at]!.name) === false) continue
        const page = await load(at === 0 ? undefined : known[at - 1]!.page.next_cursor, signal)
        const before = get() ?? []
        const next = merged(at === 0 ? before.map((entry) => ({ ...entry, isStale: true })) : before, at, page)
        if (get() === undefined) return next.known
        put(next.known)
        goesOn = next.goesOn
      }
      return get()!
    },
    structuralSharing: false,
    enabled: reader.enabled ?? true,
    refetchInterval: ({ state }) => reader.every?.(state.data?.map(({ page }) => page) ?? []) ?? false,
  })

  const [isAppending, setAppending] = useState(false)
  const [failure, setFailure] = useState<Error>()
  const isBusy = useRef(false)
  const fetchNextPage = async () => {
    if (isBusy.current) return
    isBusy.current = true
    setAppending(true)
    setFailure(undefined)
    try {
      for (let attempt = 0; attempt < attemptsAtMost; attempt++) {
        const cursor = get()?.at(-1)?.page.next_cursor
        if (cursor == null) return
        const page = await client.fetchQuery({
          queryKey: ["next page", hash, cursor],
          queryFn: ({ signal }) => load(cursor, signal),
          staleTime: 0,
          gcTime: 0,
          retry: retries,
        })
        const known = get() ?? []
        if (known.at(-1)?.page.next_cursor !== cursor) continue
        put(merged(known, known.length, page).known)
        return
      }
    } catch (cause) {
      setFailure(cause instanceof Error ? cause : new Error(String(cause)))
    } finally {
      isBusy.current = false
      setAppending(false)
    }
  }

  const renew = async (name: number) => {
    const place = () => get()?.findIndex((entry) => entry.name === name) ?? -1
    const at = place()
    if (at < 1 || renewing.has(name)) return
    renewing.add(name)
    try {
      const cursor = get()![at - 1]!.page.next_cursor
      const page = await load(cursor)
      const now = place()
      if (now > 0 && get()![now - 1]!.page.next_cursor === cursor) put(merged(get()!, now, page).known)
    } catch {
      // The page is read again when the list changes next.
    } finally {
      renewing.delete(name)
    }
  }

  const { data } = list
  return {
    ...list,
    data: data === undefined ? undefined : { pages: data.map(({ page }) => page as Answer<R>) },
    error: list.error ?? failure ?? null,
    refetch: () => {
      setFailure(undefined)
      return list.refetch()
    },
    hasNextPage: data?.at(-1)?.page.next_cursor != null,
    isFetchingNextPage: isAppending,
    fetchNextPage,
    /** Reports which pages are on the screen, by their positions; undefined when the list is no longer shown. */
    show: useCallback(
      (positions: ReadonlySet<number> | undefined) => {
        if (positions === undefined) return void shown.delete(hash)
        const entries = (get() ?? []).filter((_, index) => positions.has(index))
        shown.set(hash, new Set(entries.map(({ name }) => name)))
        if (client.isFetching({ queryKey: key, exact: true }) > 0) return
        for (const { name, isStale } of entries) if (isStale) void renew(name)
      },
      [hash],
    ),
  }
}
