/**
 * Announces changes to other processes with `NOTIFY`. Its commit holds a lock of the whole database, so that notifying
 * inside of writing transactions would serialize them (measured with 32 connections and fsync: 2,300 instead of 8,200
 * writes per second). Instead, notifications are sent after the commit, in separate transactions that do not wait for the
 * disk. The first is sent immediately, and later ones are batched. `ChangeFeed` finds changes whose process crashed before
 * the notification.
 */
import { type Duration, Effect, Latch, type Scope } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { Timing } from "../Timing.ts"

/** The channel of all processes. A payload is `from/` with the sender's id, followed by keys, separated by spaces. */
export const channel = "svc_feed"

/** Largest payload; PostgreSQL allows less than 8,000 bytes. */
const payloadBytes = 7_900

/** Prefix of the sender's id. All processes read a payload without it. */
const sender = "from/"

export const encode = (from: string, keys: Iterable<string>, most = payloadBytes): ReadonlyArray<string> => {
  const payloads: Array<string> = []
  const head = sender + from
  let payload = head
  for (const key of keys) {
    // Keys are ids and canonical Handles, which have one byte per character.
    if (payload.length + 1 + key.length > most) {
      payloads.push(payload)
      payload = head
    }
    payload += ` ${key}`
  }
  if (payload !== head) payloads.push(payload)
  return payloads
}

/** Returns the keys of a notification, or an empty list if this process sent it. */
export const decode = (self: string, payload: string): ReadonlyArray<string> => {
  const words = payload.split(" ")
  if (words[0] === sender + self) return []
  return words[0]?.startsWith(sender) === true ? words.slice(1) : words
}

export const notify = (sql: PgClient.PgClient, payloads: ReadonlyArray<string>) =>
  sql`select set_config('synchronous_commit', 'off', true), pg_notify(${channel}, payload) from unnest(${payloads}::text[]) as payload`

/** Returns a function that queues a key and never waits. Queued keys are sent in batches, at most one per `gather`. */
export const make = (
  send: (keys: ReadonlySet<string>) => Effect.Effect<unknown, unknown>,
  gather: Duration.Input = Timing.feedGather,
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
          // A lost notification is found by the periodic check. The timeout keeps the queue from growing without limit.
          yield* Effect.exit(Effect.timeoutOption(send(keys), Timing.ask))
          yield* Effect.sleep(gather)
        }),
      ),
    )
    return (key) => {
      waiting.add(key)
      some.openUnsafe()
    }
  })
