/**
 * The live stream of Events and changed resources. Only one tab of a browser holds the stream, because HTTP/1.1 allows six
 * connections per origin; it forwards what it receives to the other tabs over a channel. The stream has a beat every second:
 * a tab that receives nothing for longer checks whether the service can be reached.
 */
import { effect, signal } from "@preact/signals"
import { call, unreachable } from "./Client.ts"
import {
  applyChanges,
  applyEvent,
  type Changed,
  eventTypes,
  type Happened,
  invalidateFor,
  latest,
} from "./Invalidation.ts"
import { allOutdated } from "./Queries.ts"

/** `offline`: no network, or no response from the service. */
export const connection = signal<"connecting" | "live" | "offline">("connecting")

/** Period in milliseconds before the stream opened whose Events are loaded again. */
const gapMillis = 60_000

/** Looks up Events that happened after the page was loaded and before the stream opened, and invalidates their queries. */
const catchUp = async () => {
  const { events } = await call("GET /api/events", { query: { limit: 20 } })
  for (const event of events) if (Date.now() - Date.parse(event.created_at) < gapMillis) invalidateFor(event)
}

const tickMillis = 500
/** Ticks without a beat before the service is checked. */
const silentAtMost = 3
/** Ticks that a successful check is valid for. */
const checkedFor = 10
const checkMillis = 1_000

/** Returns whether the service responds. */
const isReachable = async () => {
  try {
    await fetch("/console/", { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(checkMillis) })
    return true
  } catch {
    return false
  }
}

type Word =
  | { readonly event: Happened }
  | { readonly changes: ReadonlyArray<Changed> | null }
  | { readonly state: (typeof connection)["value"] }
  | { readonly ask: true }
  | { readonly beat: true }

let begun: (() => void) | undefined

/** Opens the stream, or waits until this tab may hold it. Further calls have no effect. */
export const follow = () => {
  if (begun !== undefined) return
  const channel = new BroadcastChannel("svc-events")
  const stopped = new AbortController()
  let holds = false
  let source: EventSource | undefined
  let wait = 1000
  let again: ReturnType<typeof setTimeout> | undefined
  let wasOpen = false
  let isCaughtUp = false
  /** Ticks since the last beat; negative after a successful check. */
  let silent = 0
  let isChecking = false
  /** Number of messages of the stream. */
  let heard = 0

  const stands = (state: (typeof connection)["value"]) => {
    connection.value = state
    if (state !== "live" || isCaughtUp) return
    isCaughtUp = true
    void catchUp().catch(() => undefined)
  }
  const become = (state: (typeof connection)["value"]) => {
    stands(state)
    if (holds) channel.postMessage({ state } satisfies Word)
  }
  const receive = (word: Word) => {
    silent = 0
    heard++
    if ("event" in word) applyEvent(word.event)
    else if ("changes" in word) applyChanges(word.changes)
    if (connection.peek() === "offline") become("live")
  }

  const check = async () => {
    if (isChecking || stopped.signal.aborted) return
    isChecking = true
    const before = heard
    const reached = navigator.onLine && (await isReachable())
    isChecking = false
    if (stopped.signal.aborted) return
    if (!reached) {
      // A slow service can send a beat while its response to the check is late.
      if (heard === before) become("offline")
      return
    }
    silent = -checkedFor
    if (connection.peek() !== "offline") return
    become("connecting")
    if (!holds) return
    // A stream of the lost connection may never fail.
    close()
    open()
  }

  const open = () => {
    if (source !== undefined || stopped.signal.aborted) return
    const opened = new EventSource("/api/events/stream?changes=true")
    source = opened
    opened.onopen = () => {
      wait = 1000
      silent = 0
      become("live")
      // Events are sent again, but changes of resources in between are lost.
      if (wasOpen) {
        void allOutdated()
        channel.postMessage({ changes: null } satisfies Word)
      }
      wasOpen = true
    }
    opened.onerror = () => {
      if (connection.peek() !== "offline") become("connecting")
      void check()
      if (opened.readyState !== EventSource.CLOSED) return
      // Rejected (signed out, too many streams): retry later, with jitter so that tabs do not retry together.
      close()
      wait = Math.min(30_000, wait * 2)
      again = setTimeout(open, wait * (0.5 + Math.random()))
    }
    const on = (type: string, wordOf: (data: never) => Word) =>
      opened.addEventListener(type, (message) => {
        const word = wordOf(JSON.parse(String((message as MessageEvent).data)) as never)
        channel.postMessage(word)
        receive(word)
      })
    for (const type of eventTypes) on(type, (event: Happened) => ({ event }))
    on("changed", ({ changes }: { readonly changes: ReadonlyArray<Changed> | null }) => ({ changes }))
    on("beat", () => ({ beat: true }))
  }
  const close = () => {
    clearTimeout(again)
    source?.close()
    source = undefined
  }

  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    if ("ask" in data) {
      if (holds) channel.postMessage({ state: connection.value } satisfies Word)
    } else if ("state" in data) stands(data.state)
    else receive(data)
  }
  channel.postMessage({ ask: true } satisfies Word)

  void navigator.locks
    .request("svc-events", { signal: stopped.signal }, async () => {
      holds = true
      open()
      await new Promise<void>((resolve) => stopped.signal.addEventListener("abort", () => resolve()))
    })
    .catch(() => undefined)

  const tick = () => {
    // Browsers slow down hidden pages.
    if (document.hidden) silent = 0
    else if (++silent >= silentAtMost) void check()
  }
  const ticking = setInterval(tick, tickMillis)
  const network = () => {
    if (!navigator.onLine) become("offline")
    else void check()
  }
  addEventListener("online", network)
  addEventListener("offline", network)
  unreachable.tell = () => void check()

  begun = () => {
    stopped.abort()
    clearInterval(ticking)
    close()
    channel.close()
    removeEventListener("online", network)
    removeEventListener("offline", network)
    unreachable.tell = () => {}
    connection.value = "connecting"
  }
}

export const unfollow = () => {
  begun?.()
  begun = undefined
}

/** Calls `run` for every Event from now on; returns a function that stops this. */
export const onEvent = (run: (event: Happened) => void) => {
  let first = true
  return effect(() => {
    const event = latest.value
    if (!first && event !== undefined) run(event)
    first = false
  })
}
