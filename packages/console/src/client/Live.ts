/**
 * The live Event stream. Only one tab of a browser holds the stream, because HTTP/1.1 allows six connections per origin; it
 * forwards Events to the other tabs over a channel. Events carry no state: they invalidate queries.
 */
import { effect, signal } from "@preact/signals"
import type { EventType } from "@svc/domain/events/Event"
import { call } from "./Client.ts"
import { client, outdated } from "./Queries.ts"

export interface Happened {
  readonly id: string
  readonly type: EventType
  readonly handle: string | null
  readonly created_at: string
}

/** `offline`: no network, or no response from the service. */
export const connection = signal<"connecting" | "live" | "offline">("connecting")
/** The most recent Event received. */
export const latest = signal<Happened | undefined>(undefined)

const identities = "/api/identities"
const of = (part: string) => [`/api/identities/:handle/${part}`]
const mail = [...of("messages"), ...of("threads"), ...of("drafts"), ...of("allowed-recipients")]

/** The queries that each Event invalidates, beside the list of Events. The compiler checks that every type is listed. */
const readings: { readonly [T in EventType]: ReadonlyArray<string> } = {
  "identity.ready": [identities],
  "identity.failed": [identities],
  "identity.deleted": [identities],
  "email.received": mail,
  "email.sent": mail,
  "email.bounced": mail,
  "email.refused": mail,
  "email.recipient_blocked": mail,
  "email.approval_requested": [...mail, ...of("approvals")],
  "email.approved": [...mail, ...of("approvals")],
  "email.approval_refused": [...mail, ...of("approvals")],
  "mail.stopped": of("mail"),
  "mail.started": of("mail"),
  "card.updated": of("card"),
  "signing_key.added": of("signing-keys"),
  "signing_key.removed": of("signing-keys"),
  "signing_key.rotated": of("signing-keys"),
  "tunnel.connected": [identities],
  "tunnel.disconnected": [identities],
  "webhook.failed": of("webhooks"),
  "connector.connected": of("connectors"),
  "connector.stopped": of("connectors"),
  "connector.recovered": of("connectors"),
  "connector.mention": of("connectors"),
  "connector.reply": of("connectors"),
  "connector.dm": of("connectors"),
  "tunnel.transfer_blocked": ["/api/limits", ...of("tunnel")],
  "api_key.created": ["/api/keys"],
  "api_key.revoked": ["/api/keys"],
  "grant.created": ["/api/grants"],
  "grant.changed": ["/api/grants"],
  "grant.revoked": ["/api/grants"],
  "api_key.rotated": ["/api/keys"],
  "api_key.expiring": ["/api/keys"],
  "api_key.expired": ["/api/keys"],
  "limit.near": ["/api/limits"],
  "audit.gap": ["/api/audit"],
  "audit.head": ["/api/audit"],
  "account.deletion_started": ["/api/auth/session"],
}

const waiting = new Map<string, Happened>()
let timer: ReturnType<typeof setTimeout> | undefined

/** Collects Events for 150 ms, so that a burst causes one refetch per query. */
const reread = (event: Happened) => {
  waiting.set(`${event.type} ${event.handle}`, event)
  timer ??= setTimeout(() => {
    timer = undefined
    const events = [...waiting.values()]
    waiting.clear()
    void outdated(["/api/events"])
    for (const { type, handle } of events) {
      void outdated(readings[type] ?? [identities], handle)
    }
  }, 150)
}

const heard = (event: Happened) => {
  latest.value = event
  reread(event)
}

/** Period in milliseconds before the stream opened whose Events are loaded again. */
const gapMillis = 60_000

/** Looks up Events that happened after the page was loaded and before the stream opened, and invalidates their queries. */
const catchUp = async () => {
  const { events } = await call("GET /api/events", { query: { limit: 20 } })
  for (const event of events) if (Date.now() - Date.parse(event.created_at) < gapMillis) reread(event)
}

type Word = { readonly event: Happened } | { readonly state: (typeof connection)["value"] } | { readonly ask: true }

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
  let lastAlive = Date.now()
  let isCaughtUp = false

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

  const open = () => {
    if (source !== undefined || stopped.signal.aborted) return
    const opened = new EventSource("/api/events/stream")
    source = opened
    opened.onopen = () => {
      wait = 1000
      become("live")
      // Events during a long gap may be missing, so all queries are refetched.
      if (Date.now() - lastAlive > 5 * 60_000) void client.invalidateQueries()
      lastAlive = Date.now()
    }
    opened.onerror = () => {
      become(navigator.onLine ? "connecting" : "offline")
      if (opened.readyState !== EventSource.CLOSED) return
      // Rejected (signed out, too many streams): retry later, with jitter so that tabs do not retry together.
      close()
      wait = Math.min(30_000, wait * 2)
      again = setTimeout(open, wait * (0.5 + Math.random()))
    }
    for (const type of Object.keys(readings)) {
      opened.addEventListener(type, (message) => {
        lastAlive = Date.now()
        const event = JSON.parse(String((message as MessageEvent).data)) as Happened
        channel.postMessage({ event } satisfies Word)
        heard(event)
      })
    }
  }
  const close = () => {
    clearTimeout(again)
    source?.close()
    source = undefined
  }

  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    if ("event" in data) heard(data.event)
    else if ("state" in data) stands(data.state)
    else if (holds) channel.postMessage({ state: connection.value } satisfies Word)
  }
  channel.postMessage({ ask: true } satisfies Word)

  void navigator.locks
    .request("svc-events", { signal: stopped.signal }, async () => {
      holds = true
      open()
      await new Promise<void>((resolve) => stopped.signal.addEventListener("abort", () => resolve()))
    })
    .catch(() => undefined)

  const network = () => {
    if (!navigator.onLine) return become("offline")
    if (holds) {
      close()
      open()
    }
  }
  addEventListener("online", network)
  addEventListener("offline", network)

  begun = () => {
    stopped.abort()
    close()
    channel.close()
    removeEventListener("online", network)
    removeEventListener("offline", network)
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
