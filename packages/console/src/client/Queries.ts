/**
 * What pages read, kept in memory under the call that read it: `["GET /api/identities/:handle", { params }]`. So a page is
 * drawn at once from what is known, and whoever changes something says which calls answer otherwise now.
 */
import { keepPreviousData, QueryClient, useInfiniteQuery, useQuery, type UseQueryResult } from "@tanstack/preact-query"
import { type Answer, call, type Input, type Manner, type Reading, Refused, type Route, Unreachable } from "./Client.ts"

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      gcTime: 15 * 60_000,
      refetchOnWindowFocus: true,
      // What the service refuses it refuses again, but for what it asks to be patient about.
      retry: (count, failure) =>
        count < 2 && (failure instanceof Unreachable || (failure instanceof Refused && failure.problem.status === 503)),
      retryDelay: (count) => 500 * 2 ** count,
    },
  },
})

export interface Reader<R extends Reading> {
  readonly enabled?: boolean
  /** Milliseconds until it is read again, by what is known; none while it is false. */
  readonly every?: (known: Answer<R> | undefined) => number | false
  /** What was known of another input stays in sight until the answer is there. */
  readonly steady?: boolean
  /** What is known of it from elsewhere, until it is read itself. */
  readonly meanwhile?: () => Answer<R> | undefined
}

type Needed<R extends Route> =
  {} extends Input<R>
    ? [input?: Input<R>, reader?: Reader<R & Reading>]
    : [input: Input<R>, reader?: Reader<R & Reading>]

/** The call without its types, which the hooks below give back: a generic tuple of arguments says too little in here. */
const read = call as (route: string, input?: object, manner?: Manner) => Promise<unknown>

export const keyOf = (route: string, input: object | undefined) => [route, input ?? {}] as const

export const useCall = <R extends Reading>(route: R, ...[input, reader = {}]: Needed<R>): UseQueryResult<Answer<R>> => {
  const { every, meanwhile } = reader
  return useQuery<Answer<R>, Error, Answer<R>>({
    queryKey: keyOf(route, input),
    queryFn: async ({ signal }) => (await read(route, input, { signal })) as Answer<R>,
    enabled: reader.enabled ?? true,
    ...(every === undefined ? {} : { refetchInterval: ({ state }) => every(state.data) }),
    ...(reader.steady === true ? { placeholderData: keepPreviousData } : {}),
    ...(meanwhile === undefined ? {} : { placeholderData: meanwhile as () => never }),
  })
}

interface Page {
  readonly next_cursor: string | null
}
type Listing = { [R in Reading]: Answer<R> extends Page ? R : never }[Reading]

/** A list, page after page. */
export const useList = <R extends Listing>(
  route: R,
  input: Input<R>,
  reader: {
    readonly enabled?: boolean
    /** Milliseconds until it is read again, by the pages that are known; none while it is false. */
    readonly every?: (known: ReadonlyArray<Answer<R>>) => number | false
  } = {},
) =>
  useInfiniteQuery({
    queryKey: keyOf(route, input),
    queryFn: async ({ pageParam, signal }): Promise<Answer<R>> => {
      const { query } = input as { query?: object }
      const asked = { ...input, query: { ...query, ...(pageParam === undefined ? {} : { cursor: pageParam }) } }
      return (await read(route, asked, { signal })) as Answer<R>
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => (last as Page).next_cursor ?? undefined,
    enabled: reader.enabled ?? true,
    refetchInterval: ({ state }) => reader.every?.(state.data?.pages ?? []) ?? false,
  })

/** Whether what was read concerns a Handle; what names none concerns all. */
const concerns = (input: unknown, handle: string | null | undefined) => {
  const { params, query } = (input ?? {}) as { params?: { handle?: string }; query?: { handle?: string } }
  const own = params?.handle ?? query?.handle
  return handle == null || own === undefined || own === handle
}

/** Reads again what begins with one of these paths (all of them by none), of one Handle where one is given. */
export const outdated = (paths: ReadonlyArray<string>, handle?: string | null) =>
  client.invalidateQueries({
    predicate: ({ queryKey: [route, input] }) =>
      typeof route === "string" &&
      paths.some((path) => route === `GET ${path}` || route.startsWith(`GET ${path}/`)) &&
      concerns(input, handle),
  })

/** What is known of a reading, to change it before the service has answered. */
export const known = <R extends Reading>(route: R, input: Input<R>) =>
  client.getQueryData<Answer<R>>(keyOf(route, input as object))

/** Puts another answer in place; answers how to take it back. */
export const supposed = <R extends Reading>(
  route: R,
  input: Input<R>,
  change: (before: Answer<R>) => Answer<R>,
): (() => void) => {
  const key = keyOf(route, input as object)
  const before = client.getQueryData<Answer<R>>(key)
  if (before === undefined) return () => {}
  client.setQueryData<Answer<R>>(key, change(before))
  return () => void client.setQueryData<Answer<R>>(key, before)
}
