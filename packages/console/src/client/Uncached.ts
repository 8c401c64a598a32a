/** Reads of responses with secrets: a component keeps the response in its state, and it never enters the query cache. */
import { useEffect, useState } from "preact/hooks"

/**
 * Reads when the component is mounted, and again on `refetch`; the former data stays until then. Give the component a `key`
 * that names what is read: changed properties do not read again, so it would show the secrets of another Identity.
 */
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
