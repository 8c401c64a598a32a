/**
 * The last gate before DATA, and who is past it. Whether outgoing mail is stopped is read from the store each time, so a
 * stop holds in every process; what is kept here is only what lets a stop be answered truly: attempts of this process
 * that were let through and have not ended, and looks that are under way, which look again once a stop has come between.
 */
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import * as Batched from "../../store/Batched.ts"
import { Reads } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"

/** One attempt as the gate knows it. */
export interface Passage {
  /** Whether it may go on to DATA now; a store that does not answer lets nothing out. */
  readonly mayLeave: Effect.Effect<boolean>
  /** It is over, whatever came of it. */
  readonly end: () => void
}

/** A row of the outbox, and the Identity that it must be of. */
interface Asked {
  readonly identityId: string
  readonly outboxId: string
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  /** Raised by each stop, of any Identity. */
  let stops = 0
  const passing = new Map<string, Map<object, Deferred.Deferred<void>>>()

  /** Of those that ask at the same time at once. Each is answered by a statement that began after it had asked. */
  const look = yield* Batched.make((asked: ReadonlyArray<Asked>) =>
    sql<{ asked: number }>`
      select asked.n::int as asked
      from unnest(${asked.map(({ outboxId }) => outboxId)}::uuid[], ${asked.map(({ identityId }) => identityId)}::uuid[])
        with ordinality as asked (id, identity_id, n)
      join outbox o on o.id = asked.id and o.identity_id = asked.identity_id and o.attempt_started_at is not null
      join identity i on i.id = o.identity_id and i.status = 'ready'
      join mailbox m on m.identity_id = i.id and m.stopped_at is null`.pipe(
      Effect.map(Batched.inOrder(asked)),
      Effect.map((rows) => rows.map((row) => row !== undefined)),
    ),
  )
  const isOpen = (asked: Asked) => Effect.orElseSucceed(look(asked), () => false)

  const enter = (identityId: string, outboxId: string): Passage => {
    const self = {}
    const ended = Deferred.makeUnsafe<void>()
    const register = () => {
      const others = passing.get(identityId)
      if (others === undefined) passing.set(identityId, new Map([[self, ended]]))
      else others.set(self, ended)
    }
    return {
      mayLeave: Effect.gen(function* () {
        while (true) {
          const before = stops
          const open = yield* isOpen({ identityId, outboxId })
          if (!open) return false
          if (before !== stops) continue
          register()
          return true
        }
      }),
      end: () => {
        const others = passing.get(identityId)
        if (others?.delete(self) === true && others.size === 0) passing.delete(identityId)
        Deferred.doneUnsafe(ended, Exit.void)
      },
    }
  }

  return {
    enter,
    /** A stop was committed: nothing more will start, and what had started has ended or had its time. */
    closed: (identityId: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        stops++
        const others = [...(passing.get(identityId)?.values() ?? [])]
        return Effect.asVoid(
          Effect.timeoutOption(
            Effect.forEach(others, (ended) => Deferred.await(ended), { discard: true }),
            Timing.stopWait,
          ),
        )
      }),
  }
})

export class SendingGate extends Context.Service<SendingGate, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/sending/SendingGate",
) {
  static readonly layer = Layer.effect(SendingGate, make)
}
