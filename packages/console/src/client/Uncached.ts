/** Reads of responses with secrets: a component keeps the response in its state, and it never enters the query cache. */
import { useEffect, useState } from "preact/hooks"

/** Reads when the component is mounted, and again on `refetch`. The former data stays until the next read has succeeded. */
export const useUncached = <A>(read: (signal: AbortSignal) => Promise<A>) => {
  const [data, setData] = useState<A>()
  const [error, setError] = useState<Error | null>(null)
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const stopped = new AbortController()
    read(stopped.signal).then(
      (found) => {
        setData(found)
        setError(null)
      },
      (cause: Error) => {
        if (!stopped.signal.aborted) setError(cause)
      },
    )
    return () => stopped.abort()
  }, [turn])
  return { data, setData, error, isPending: !data && !error, refetch: () => setTurn(turn + 1) }
}
