/** Sending that waits, so that it can be undone. If the page is left or closed before, the message is not sent. */
import { useLayoutEffect, useState } from "preact/hooks"
import { guardWhile } from "../router/Router.ts"
import { say } from "./texts.ts"

/** Time in seconds in which sending can be undone. */
const delaySeconds = 10

export const useDelayed = (run: () => void) => {
  const [due, setDue] = useState<number>()
  const [now, setNow] = useState(0)
  const finish = () => {
    setDue(undefined)
    run()
  }
  // A layout effect does not wait for a frame, which a hidden tab never renders. The question begins and ends with the countdown.
  useLayoutEffect(() => {
    if (due === undefined) return undefined
    const tick = setInterval(() => setNow(performance.now()), 250)
    const timer = setTimeout(finish, due - performance.now())
    const free = guardWhile(
      () => true,
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
      if (due === undefined) setDue(performance.now() + delaySeconds * 1000)
    },
    cancel: () => setDue(undefined),
    finish,
  }
}
