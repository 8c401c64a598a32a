/** Single-letter shortcuts of the page that is shown. The most recently mounted component that binds a letter receives it. */
import { useLayoutEffect, useRef } from "preact/hooks"

type Bindings = Readonly<Record<string, () => void>>

const bound: Array<{ current: Bindings }> = []

/** Binds letters while the component is mounted. */
export const useKeys = (bindings: Bindings) => {
  const latest = useRef(bindings)
  latest.current = bindings
  useLayoutEffect(() => {
    bound.push(latest)
    return () => void bound.splice(bound.indexOf(latest), 1)
  }, [])
}

/** Returns what the page binds to a letter. */
export const boundTo = (letter: string): (() => void) | undefined =>
  bound.findLast(({ current }) => letter in current)?.current[letter]
