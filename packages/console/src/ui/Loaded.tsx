/**
 * Renders a query while it loads, fails or succeeds. A skeleton appears after 200 ms, and an error never replaces data that
 * is known.
 */
import type { ComponentChildren } from "preact"
import { Refused } from "../client/Client.ts"
import { Button } from "./Button.tsx"
import { ProblemNote } from "./Problem.tsx"
import { say } from "./texts.ts"

interface Read<A> {
  readonly data: A | undefined
  readonly error: Error | null
  readonly isPending: boolean
  readonly refetch: () => unknown
}

export const Skeleton = ({ lines = 4 }: { readonly lines?: number }) => (
  <div class="skeleton" role="status" aria-label={say("loading")}>
    {Array.from({ length: lines }, (_, index) => (
      <i key={index} />
    ))}
  </div>
)

interface LoadedProps<A> {
  readonly of: Read<A>
  readonly lines?: number
  /** Shown if the resource does not exist, in place of the problem. */
  readonly gone?: ComponentChildren
  readonly children: (data: A) => ComponentChildren
}

export const Loaded = <A,>({ of, lines, gone, children }: LoadedProps<A>) => {
  const isGone = of.error instanceof Refused && of.error.problem.status === 404
  if (isGone && gone !== undefined) return <>{gone}</>
  if (of.error === null && of.data === undefined) return <Skeleton {...(lines !== undefined && { lines })} />
  // Known data stays visible below the error. It stays in the second place, so that its components keep their state, for
  // example what was typed.
  return (
    <>
      {of.error === null ? null : <ProblemNote failure={of.error} onRetry={() => void of.refetch()} />}
      {of.data === undefined || isGone ? null : children(of.data)}
    </>
  )
}

interface Listed {
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly fetchNextPage: () => unknown
}

/** Loads the next page of a list. */
export const More = ({ of }: { readonly of: Listed }) =>
  of.hasNextPage ? (
    <div class="bar">
      <Button busy={of.isFetchingNextPage} onClick={() => void of.fetchNextPage()}>
        {say("more")}
      </Button>
    </div>
  ) : null
