/**
 * The cache of API reads, keyed by call: `["GET /api/identities/:handle", { params }]`. Pages render from the cache first,
 * and every change names the queries that it invalidates.
 */
import { keepPreviousData, QueryClient, useQuery, type UseQueryResult } from "@tanstack/preact-query"
import { type Answer, call, type Input, type Manner, type Reading, Refused, type Route, Unreachable } from "./Client.ts"

/** Whether a failed read is retried. Rejections are final, except for unavailability. */
export const retries = (count: number, failure: Error) =>
  count < 2 && (failure instanceof Unreachable || (failure instanceof Refused && failure.problem.status === 503))

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      gcTime: 15 * 60_000,
      refetchOnWindowFocus: true,
      retry: retries,
      retryDelay: (count) => 500 * 2 ** count,
    },
  },
})

export interface Reader<R extends Reading> {
  readonly enabled?: boolean
  /** Returns the refetch interval in milliseconds for the current data, or false. */
  readonly every?: (known: Answer<R> | undefined) => number | false
  /** Keeps showing the data of the previous input until new data arrives. */
  readonly steady?: boolean
  /** Returns data from another query to show until this one has loaded. */
  readonly meanwhile?: () => Answer<R> | undefined
}

type Needed<R extends Route> =
  {} extends Input<R>
    ? [input?: Input<R>, reader?: Reader<R & Reading>]
    : [input: Input<R>, reader?: Reader<R & Reading>]

/** `call` without its types: a generic tuple of arguments cannot be spread here. The hooks below restore the types. */
const read = call as (route: string, input?: object, manner?: Manner) => Promise<unknown>

export const keyOf = (route: string, input: object | undefined) => [route, input ?? {}] as const

export const useCall = <R extends Reading>(route: R, ...[input, reader = {}]: Needed<R>): UseQueryResult<Answer<R>> => {
  const { every, meanwhile } = reader
  return useQuery<Answer<R>, Error, Answer<R>>({
    queryKey: keyOf(route, input),
    queryFn: async ({ queryKey, signal }) => withPending(queryKey, (await read(route, input, { signal })) as Answer<R>),
    enabled: reader.enabled ?? true,
    ...(every === undefined ? {} : { refetchInterval: ({ state }) => every(state.data) }),
    ...(reader.steady === true ? { placeholderData: keepPreviousData } : {}),
    ...(meanwhile === undefined ? {} : { placeholderData: meanwhile as () => never }),
  })
}

/** Whether a query is about a Handle. Queries without a Handle are about all of them. */
const concerns = (input: unknown, handle: string | null | undefined) => {
  const { params, query } = (input ?? {}) as { params?: { handle?: string }; query?: { handle?: string } }
  const own = params?.handle ?? query?.handle
  return handle == null || own === undefined || own === handle
}

/** Paths whose queries are stale; with a Handle, only the queries about it. */
export interface Stale {
  readonly paths: ReadonlyArray<string>
  readonly handle?: string | null | undefined
}

/** Invalidates the queries that any of `causes` makes stale. Each query is read again once, however many causes it has. */
export const outdatedBy = (causes: ReadonlyArray<Stale>) =>
  client.invalidateQueries({
    predicate: ({ queryKey: [route, input] }) =>
      typeof route === "string" &&
      causes.some(
        ({ paths, handle }) =>
          concerns(input, handle) && paths.some((path) => route === `GET ${path}` || route.startsWith(`GET ${path}/`)),
      ),
  })

/** Invalidates the queries below these paths, restricted to a Handle if one is given. */
export const outdated = (paths: ReadonlyArray<string>, handle?: string | null) => outdatedBy([{ paths, handle }])

/** Invalidates everything that was read from the API; what a composer began with is not read again. */
export const allOutdated = () =>
  client.invalidateQueries({
    predicate: ({ queryKey: [route] }) => typeof route === "string" && route.startsWith("GET "),
  })

/** Returns the cached data of a query. */
export const known = <R extends Reading>(route: R, input: Input<R>) =>
  client.getQueryData<Answer<R>>(keyOf(route, input as object))

interface Pending extends Record<string, unknown> {
  readonly change: (before: never) => unknown
}

/** Adds the changes that are still being made to data that was read. */
const withPending = <A>(key: readonly unknown[], data: A): A =>
  client
    .getMutationCache()
    .findAll({ mutationKey: key, exact: true, status: "pending" })
    .reduce<unknown>((changed, { meta }) => (meta as Pending).change(changed as never), data) as A

/**
 * Makes a change that the page shows immediately, even if a response to an earlier read arrives meanwhile. Afterwards, the
 * queries below `paths` are read again. If the change fails, the page shows the former data.
 */
export const changing = async <R extends Reading>(
  route: R,
  input: Input<R> & { readonly params: { readonly handle: string } },
  change: (before: Answer<R>) => Answer<R>,
  make: () => Promise<unknown>,
  paths: ReadonlyArray<string> = [route.slice("GET ".length)],
) => {
  const key = keyOf(route, input)
  /** Replaces the cached data. Does nothing after signing out, which empties the cache. */
  const show = (next: (shown: Answer<R>) => Answer<R>) =>
    client.setQueryData<Answer<R>>(key, (shown) => (shown === undefined ? undefined : next(shown)))
  const former = known(route, input)
  const meta: Pending = { change }
  const mutation = client
    .getMutationCache()
    .build(client, { mutationKey: key, mutationFn: make, meta, networkMode: "always", gcTime: 0 })
  show(change)
  try {
    await mutation.execute(undefined)
  } catch (cause) {
    show((shown) => former ?? shown)
    throw cause
  } finally {
    await outdated(paths, input.params.handle)
  }
}
