/** Actor writes during a fault, and their outcome. */
import { setTimeout as sleep } from "node:timers/promises"
import { call } from "../harness/Client.ts"
import { note, type Outcome, timed } from "./Load.ts"

let registered = 0

/** Returns the body for a Webhook with a unique address, so that duplicates are detected. */
export const webhook = () => ({ url: `http://127.0.0.1:9/${registered++}`, event_types: ["email.sent"] })

/** Registers a Webhook and returns its id if that was acknowledged. */
export const register = async (
  into: Outcome,
  base: string,
  token: string,
  handle: string,
): Promise<string | undefined> => {
  const answer = await timed(into, 201, base, "POST", `/api/identities/${handle}/webhooks`, {
    token,
    body: webhook(),
  })
  return answer?.body.id
}

/** Compares acknowledged with stored writes; returns lost and duplicate ones. */
export const missing = async (
  base: string,
  token: string,
  handles: ReadonlyArray<string>,
  written: ReadonlyArray<string>,
) => {
  const listed: Array<{ readonly id: string; readonly url: string }> = []
  for (const handle of handles) {
    let cursor = ""
    do {
      const { status, body } = await call(base, "GET", `/api/identities/${handle}/webhooks?limit=100${cursor}`, {
        token,
      })
      // The row fails if the state cannot be read.
      if (status !== 200) return { lost: Number.NaN, twice: Number.NaN }
      listed.push(...body.webhooks)
      cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`
    } while (cursor !== "")
  }
  const there = new Set(listed.map(({ id }) => id))
  const addresses = new Set(listed.map(({ url }) => url))
  return { lost: written.filter((id) => !there.has(id)).length, twice: listed.length - addresses.size }
}

export interface Counted {
  /** Number of values that were lower than an acknowledged one. */
  lost: number
  /** Number of failed preconditions although nobody else changes the counter. */
  disturbed: number
  acknowledged: number
}

/**
 * A counter in the AI disclosure of an Identity, which one caller increments under `If-Match`. An actor reads its
 * version and writes it in two statements, so a process that no longer owns the Identity would reset the counter,
 * unless the fence rejects its write.
 */
export const counter = (token: string, handle: string, into: Outcome, counted: Counted) => {
  const path = `/api/identities/${handle}/ai-disclosure`
  let least = 0
  let isUnknown = false
  /** Reads the counter and increments it. Returns whether that was acknowledged. */
  return async (base: string): Promise<boolean> => {
    const read = await timed(into, 200, base, "GET", path, { token })
    if (read === undefined) return false
    const value = Number(/^counter (\d+)$/.exec(read.body.text)?.[1] ?? 0)
    if (value < least) counted.lost++
    least = value
    const body = { text: `counter ${value + 1}` }
    const headers = { "if-match": read.headers.get("etag")! }
    const answer = await call(base, "PUT", path, { token, body, headers }).catch(() => undefined)
    if (answer?.status === 200) {
      counted.acknowledged++
      least = value + 1
      isUnknown = false
    } else if (answer?.status === 412) {
      // After an unknown outcome, the caller's own change may have been applied before.
      if (!isUnknown) counted.disturbed++
    } else {
      isUnknown = true
      note(into, answer === undefined ? "the connection broke" : `${answer.status} ${answer.body?.code}`)
    }
    return answer?.status === 200
  }
}

/**
 * Writes and reads the first half of the Identities, and counts at the others, until it is stopped. Each caller pauses for
 * `pauseMillis` between its requests; without a pause the callers use all processors.
 */
export const writing = (
  token: string,
  handles: ReadonlyArray<string>,
  seen: Outcome,
  nextBase: () => Promise<string>,
  pauseMillis = 0,
) => {
  const written: Array<string> = []
  const counted: Counted = { lost: 0, disturbed: 0, acknowledged: 0 }
  let isRunning = true
  const half = Math.ceil(handles.length / 2)
  const writers = handles.slice(0, half).map(async (handle) => {
    while (isRunning) {
      const id = await register(seen, await nextBase(), token, handle)
      if (id !== undefined) written.push(id)
      await timed(seen, 200, await nextBase(), "GET", `/api/identities/${handle}`, { token })
      await sleep(Math.max(pauseMillis, 50))
    }
  })
  // The default is no pause, so that a fault hits many requests between the read of the version and the write.
  const counters = handles.slice(half).map(async (handle) => {
    const count = counter(token, handle, seen, counted)
    while (isRunning) if (!(await count(await nextBase())) || pauseMillis > 0) await sleep(Math.max(pauseMillis, 50))
  })
  const callers = Promise.all([...writers, ...counters])
  return {
    written,
    counted,
    end: async () => {
      isRunning = false
      await callers
    },
  }
}
