/**
 * The last gate before DATA, and who is past it. Whether outgoing mail is stopped is read from the store each time, so a
 * stop holds in every process; what is kept here is only what lets a stop be answered truly: attempts of this process
 * that were let through and have not ended, and looks that are under way, which look again once a stop has come between.
 */
import { Context, Deferred, Effect, Exit, Layer } from "effect"
import { Reads } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"

/** One attempt as the gate knows it. */
export interface Passage {
  /** Whether it may go on to DATA now; a store that does not answer lets nothing out. */
  readonly mayLeave: Effect.Effect<boolean>
  /** It is over, whatever came of it. */
  readonly end: () => void
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  /** Raised by each stop, of any Identity. */
  let stops = 0
  const passing = new Map<string, Map<object, Deferred.Deferred<void>>>()

  const isOpen = (identityId: string, outboxId: string) =>
    sql<{ open: boolean }>`
      select m.stopped_at is null and i.status = 'ready' and o.attempt_started_at is not null as open
      from outbox o join identity i on i.id = o.identity_id join mailbox m on m.identity_id = i.id
      where o.id = ${outboxId} and o.identity_id = ${identityId}`.pipe(
      Effect.map(([row]) => row?.open === true),
      Effect.orElseSucceed(() => false),
    )

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
          const open = yield* isOpen(identityId, outboxId)
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
