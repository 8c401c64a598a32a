/** Sending that waits, so that it can be undone. Nothing is sent if the page is left or closed meanwhile. */
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { guardWhile } from "../router/Router.ts"
import { say } from "./texts.ts"

/** Time in seconds in which sending can be undone. */
const delaySeconds = 10

export const useDelayed = (run: () => void) => {
  const [due, setDue] = useState<number>()
  const [now, setNow] = useState(0)
  /** Ends at once: the cleanup of an effect waits for the next frame, and the message may be sent before it. */
  const isPending = useRef(false)
  const end = () => {
    isPending.current = false
    setDue(undefined)
  }
  const finish = () => {
    end()
    run()
  }
  // Before the browser paints: the page is not left without a question once the countdown is shown.
  useLayoutEffect(() => {
    if (due === undefined) return undefined
    const tick = setInterval(() => setNow(performance.now()), 250)
    const timer = setTimeout(finish, due - performance.now())
    const free = guardWhile(
      () => isPending.current,
      () => say("leave_sending"),
    )
    return () => {
      clearInterval(tick)
      clearTimeout(timer)
      free()
    }
  }, [due])
  return {
    /** Seconds until the message is sent; undefined if it is not being sent. */
    seconds:
      due === undefined ? undefined : Math.max(0, Math.ceil((due - Math.max(now, due - delaySeconds * 1000)) / 1000)),
    start: () => {
      if (due !== undefined) return
      isPending.current = true
      setDue(performance.now() + delaySeconds * 1000)
    },
    cancel: end,
    finish,
  }
}
