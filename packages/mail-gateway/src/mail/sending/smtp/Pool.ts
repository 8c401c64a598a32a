/**
 * Connections to one server, kept for the next letter: so many at most, each for so many letters and while it is not idle
 * for long. A kept connection may have gone meanwhile; what it did not take is given to a new one, since nobody has it.
 */
import { Effect, Semaphore } from "effect"
import type { Conversation, Outcome, Unwelcome } from "./Conversation.ts"
import type { Letter } from "./Letter.ts"
import type { Broken } from "./Wire.ts"

export interface PoolSettings {
  readonly begin: Effect.Effect<Conversation, Broken | Unwelcome>
  readonly most: number
  readonly idleMillis: number
  /** Servers end connections that have carried many. */
  readonly letters: number
}

interface Kept {
  readonly conversation: Conversation
  letters: number
  timer: NodeJS.Timeout | undefined
}

export const make = ({ begin, most, idleMillis, letters }: PoolSettings) => {
  const idle: Array<Kept> = []
  const places = Semaphore.makeUnsafe(most)
  let closed = false

  const leave = (one: Kept) => {
    clearTimeout(one.timer)
    const at = idle.indexOf(one)
    if (at >= 0) idle.splice(at, 1)
    one.conversation.quit()
  }

  const take = (): Kept | undefined => {
    for (let one = idle.pop(); one !== undefined; one = idle.pop()) {
      clearTimeout(one.timer)
      if (!one.conversation.isOpen()) continue
      one.conversation.wake()
      return one
    }
    return undefined
  }

  const keep = (one: Kept) => {
    one.letters++
    if (closed || one.letters >= letters || !one.conversation.isOpen()) return one.conversation.quit()
    one.conversation.rest()
    one.timer = setTimeout(() => leave(one), idleMillis).unref()
    idle.push(one)
  }

  const fresh = Effect.map(begin, (conversation): Kept => ({ conversation, letters: 0, timer: undefined }))

  const carry = (one: Kept, letter: Letter): Effect.Effect<Outcome> =>
    one.conversation.transact(letter).pipe(Effect.onExit(() => Effect.sync(() => keep(one))))

  return {
    isIdle: (): boolean => idle.length === 0,
    transact: (letter: Letter): Effect.Effect<Outcome, Broken | Unwelcome> =>
      places.withPermit(
        Effect.gen(function* () {
          const kept = take()
          if (kept !== undefined) {
            const outcome = yield* carry(kept, letter)
            if (outcome._tag !== "Broken") return outcome
          }
          return yield* carry(yield* fresh, letter)
        }),
      ),
    close: (): void => {
      closed = true
      for (const one of idle.splice(0)) leave(one)
    },
  }
}

export type Pool = ReturnType<typeof make>
