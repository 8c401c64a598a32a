/**
 * A pool of connections to one server, limited in number, in messages per connection and in idle time. An idle
 * connection may have been closed by the server; a message that it did not accept is sent over a new one.
 */
import { Effect, Semaphore } from "effect"
import type { Conversation, Outcome, Unwelcome } from "./Conversation.ts"
import type { Letter } from "./Letter.ts"
import type { Broken } from "./Wire.ts"

export interface PoolSettings {
  readonly begin: Effect.Effect<Conversation, Broken | Unwelcome>
  readonly maxConnections: number
  readonly idleMillis: number
  /** The maximum number of messages per connection, because servers close connections that have carried many. */
  readonly maxLetters: number
}

interface PooledConnection {
  readonly conversation: Conversation
  letters: number
  timer: NodeJS.Timeout | undefined
}

export const make = ({ begin, maxConnections, idleMillis, maxLetters }: PoolSettings) => {
  const idle: Array<PooledConnection> = []
  const slots = Semaphore.makeUnsafe(maxConnections)
  /** Messages that wait for a connection or are in flight. */
  let underWay = 0
  let closed = false

  const leave = (one: PooledConnection) => {
    clearTimeout(one.timer)
    const at = idle.indexOf(one)
    if (at >= 0) idle.splice(at, 1)
    one.conversation.quit()
  }

  const take = (): PooledConnection | undefined => {
    for (let one = idle.pop(); one !== undefined; one = idle.pop()) {
      clearTimeout(one.timer)
      if (!one.conversation.isOpen()) continue
      one.conversation.wake()
      return one
    }
    return undefined
  }

  const keep = (one: PooledConnection) => {
    one.letters++
    if (closed || one.letters >= maxLetters || !one.conversation.isOpen()) return one.conversation.quit()
    one.conversation.rest()
    one.timer = setTimeout(() => leave(one), idleMillis).unref()
    idle.push(one)
  }

  const opened = Effect.map(begin, (conversation): PooledConnection => ({ conversation, letters: 0, timer: undefined }))

  const carry = (one: PooledConnection, letter: Letter): Effect.Effect<Outcome> =>
    one.conversation.transact(letter).pipe(Effect.onExit(() => Effect.sync(() => keep(one))))

  return {
    /** Whether the pool has neither a connection nor a message. */
    isEmpty: (): boolean => idle.length === 0 && underWay === 0,
    transact: (letter: Letter): Effect.Effect<Outcome, Broken | Unwelcome> =>
      Effect.acquireUseRelease(
        Effect.sync(() => void underWay++),
        () =>
          slots.withPermit(
            Effect.gen(function* () {
              const idleConnection = take()
              if (idleConnection !== undefined) {
                const outcome = yield* carry(idleConnection, letter)
                if (outcome._tag !== "Broken") return outcome
              }
              return yield* carry(yield* opened, letter)
            }),
          ),
        () => Effect.sync(() => void underWay--),
      ),
    close: (): void => {
      closed = true
      for (const one of idle.splice(0)) leave(one)
    },
  }
}

export type Pool = ReturnType<typeof make>
