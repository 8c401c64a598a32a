/**
 * Telling a sender's repeat of a transaction from a second equal mail. Only a transaction that was not answered with 250
 * can be repeated. So what stores a message leaves a mark under the key of its transaction, in the same commit, and the
 * mark goes when the 250 has gone out; whoever finds a mark is a repeat.
 *
 * Where it can die, and what follows:
 *
 * | the process dies, or the connection breaks      | stored | mark | the sender      | the same DATA again           |
 * |-------------------------------------------------|--------|------|-----------------|-------------------------------|
 * | before the commit                               | no     | no   | saw no 250      | is stored                     |
 * | after the commit, before the 250                | yes    | yes  | saw no 250      | finds the mark: 250, not stored |
 * | 451, because another recipient was out of reach | yes    | yes  | saw 451         | finds the mark: 250, not stored |
 * | after the 250, before the mark has gone         | yes    | yes  | saw 250         | only a second equal mail comes; see below |
 * | the mark has gone                               | yes    | no   | saw 250         | is a second mail, and stored  |
 * | the 250 is lost on its way                      | yes    | no   | saw no 250      | is stored twice (RFC 1047)    |
 *
 * In the fourth row a second equal mail must not pass for a repeat: within this process it waits until the mark has gone,
 * and one that finds a mark of another process looks again after a pause, in which that process removes it. What is left is
 * a process that is killed in the milliseconds between a 250 and the removal, and an equal mail after that.
 */
import { hash } from "node:crypto"
import { Writes } from "@svc/cluster/store/Database"
import { Context, Deferred, Effect, Exit, FiberSet, Layer, Schedule } from "effect"
import { Timing } from "../Timing.ts"

/** What a transaction and its repeat have in common, for one recipient of it. */
export const keyOf = (
  mail: { readonly sha256: Uint8Array; readonly envelopeFrom: string },
  recipient: { readonly mailbox: string; readonly tag: string | null },
): Uint8Array =>
  new Uint8Array(
    hash(
      "sha256",
      Buffer.concat([Buffer.from(JSON.stringify([recipient.mailbox, recipient.tag, mail.envelopeFrom])), mail.sha256]),
      "buffer",
    ),
  )

/** Of all the mail for the operator there is one key. */
export const operator = { mailbox: "@", tag: null }

export interface Transaction {
  /** The reply has gone out, or can not any more: `answered` says whether it was 250. */
  readonly end: (answered: boolean) => void
}

interface Answered {
  readonly keys: ReadonlyArray<Uint8Array>
  readonly release: () => void
}

const again = Schedule.spaced(Timing.smtpForgetRetry)

/** Transactions whose marks go in one statement. */
const together = 500

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const fork = yield* FiberSet.makeRuntime()
  const underWay = new Map<string, Deferred.Deferred<void>>()

  /** Transactions that were answered, whose marks are to go, and those whose marks are going. */
  const answered: Array<Answered> = []
  let going: ReadonlyArray<Answered> = []

  /** A mark that comes back after a power cut costs a look, so the disk is not waited for. */
  const removed = (ended: ReadonlyArray<Answered>) => sql`
    with unhurried as materialized (select set_config('synchronous_commit', 'off', true)),
    gone as (delete from unanswered_mail using unhurried where key = any(${ended.flatMap((one) => one.keys)}::bytea[]))
    select 1`

  /** One statement at a time for all of them. */
  const forget = () => {
    if (going.length > 0 || answered.length === 0) return
    const ended = answered.splice(0, together)
    going = ended
    const release = Effect.sync(() => {
      going = []
      for (const one of ended) one.release()
      forget()
    })
    fork(Effect.ensuring(Effect.retry(removed(ended), again), release))
  }

  // A process that is told to leave takes the last marks along.
  yield* Effect.addFinalizer(() => {
    const left = [...going, ...answered.splice(0)]
    return left.length === 0 ? Effect.void : Effect.ignore(Effect.timeout(removed(left), Timing.smtpForgetLast))
  })

  /** Both ways to begin: at once where no equal one is under way, and when those that are have ended. */
  const begin = (keys: ReadonlyArray<Uint8Array>) => {
    // In one order everywhere, so that no two transactions wait for one another.
    const names = [...new Set(keys.map((key) => Buffer.from(key).toString("hex")))].sort()
    const ended = Deferred.makeUnsafe<void>()
    const release = () => {
      for (const name of names) if (underWay.get(name) === ended) underWay.delete(name)
      Deferred.doneUnsafe(ended, Exit.void)
    }
    const transaction: Transaction = {
      end: (wasAnswered) => {
        if (!wasAnswered) return release()
        answered.push({ keys, release })
        // What the same turn of the event loop still ends goes along.
        if (answered.length === 1) queueMicrotask(forget)
      },
    }
    const atOnce = (): Transaction | undefined => {
      if (names.some((name) => underWay.has(name))) return undefined
      for (const name of names) underWay.set(name, ended)
      return transaction
    }
    const later = Effect.gen(function* () {
      for (const name of names) {
        for (let other = underWay.get(name); other !== undefined; other = underWay.get(name))
          yield* Deferred.await(other)
        underWay.set(name, ended)
      }
      return transaction
    }).pipe(Effect.onInterrupt(() => Effect.sync(release)))
    return { atOnce, later }
  }

  const waiting = <E>(later: Effect.Effect<Transaction>, busy: E) =>
    Effect.timeoutOrElse(later, { duration: Timing.smtpEqual, orElse: () => Effect.fail(busy) })

  return {
    /**
     * Begins when no equal transaction is under way here any more; one that fails was not answered. `busy` is what it fails
     * with where that takes too long.
     */
    within: <A, E, R>(
      keys: ReadonlyArray<Uint8Array>,
      work: Effect.Effect<A, E, R>,
      busy: NoInfer<E>,
    ): Effect.Effect<Transaction, E, R> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          const { atOnce, later } = begin(keys)
          const begun = atOnce()
          return Effect.flatMap(
            begun === undefined ? restore(waiting(later, busy)) : Effect.succeed(begun),
            (transaction) =>
              restore(work).pipe(
                Effect.onExit((exit) => Effect.sync(() => Exit.isFailure(exit) && transaction.end(false))),
                Effect.as(transaction),
              ),
          )
        }),
      ),
  }
})

export class Transactions extends Context.Service<Transactions, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/Transactions",
) {
  static readonly layer = Layer.effect(Transactions, make)
}
