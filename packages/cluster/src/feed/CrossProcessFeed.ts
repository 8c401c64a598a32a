/**
 * Telling the other processes what changed. `NOTIFY` holds one lock of the whole database from before its commit to the
 * end of it, so inside the writing transactions it would let them pass one by one (measured with 32 connections and
 * fsync: 2,300 writes a second in place of 8,200). So it is said after the commit, in transactions of its own that wait
 * for no disk: the first at once, what comes within the next milliseconds together, one at a time. What is lost when
 * a process dies between the two is found by the re-check of `ChangeFeed`.
 */
import { Effect, Latch, type Scope } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { Timing } from "../Timing.ts"

/** The one channel. A payload is keys with a space between them, after the word `from/…` of the process that tells it. */
export const channel = "svc_feed"

/** PostgreSQL takes less than 8,000 bytes. */
const payloadBytes = 7_900

/** The sender's word comes first; without it everybody listens. */
const sender = "from/"

export const encode = (from: string, keys: Iterable<string>, most = payloadBytes): ReadonlyArray<string> => {
  const payloads: Array<string> = []
  const head = sender + from
  let payload = head
  for (const key of keys) {
    // Keys are ids and canonical names: a byte a letter.
    if (payload.length + 1 + key.length > most) {
      payloads.push(payload)
      payload = head
    }
    payload += ` ${key}`
  }
  if (payload !== head) payloads.push(payload)
  return payloads
}

/** The keys another process tells; none where it was this one. */
export const decode = (self: string, payload: string): ReadonlyArray<string> => {
  const words = payload.split(" ")
  if (words[0] === sender + self) return []
  return words[0]?.startsWith(sender) === true ? words.slice(1) : words
}

export const notify = (sql: PgClient.PgClient, payloads: ReadonlyArray<string>) =>
  sql`select set_config('synchronous_commit', 'off', true), pg_notify(${channel}, payload) from unnest(${payloads}::text[]) as payload`

/** `announce` is cheap and never waits. */
export const make = (
  send: (keys: ReadonlySet<string>) => Effect.Effect<unknown, unknown>,
): Effect.Effect<(key: string) => void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const some = Latch.makeUnsafe()
    let waiting = new Set<string>()
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.gen(function* () {
          yield* some.await
          yield* some.close
          const keys = waiting
          waiting = new Set()
          // One that is lost is found by the re-check; a server that hangs must not let them pile up.
          yield* Effect.exit(Effect.timeoutOption(send(keys), Timing.ask))
          yield* Effect.sleep(Timing.feedGather)
        }),
      ),
    )
    return (key) => {
      waiting.add(key)
      some.openUnsafe()
    }
  })
