/**
 * Distinguishes a sender's retry of a transaction from a second identical message. Only a transaction that was not
 * answered with 250 can be retried. The statement that stores a message therefore also inserts a mark under the
 * transaction's key, and the mark is deleted after the 250 was sent. A transaction that finds its mark is a retry.
 *
 * Failures and their consequences:
 *
 * | failure                                         | stored | mark | the sender      | the same DATA again             |
 * |-------------------------------------------------|--------|------|-----------------|---------------------------------|
 * | before the commit                               | no     | no   | saw no 250      | is stored                       |
 * | after the commit, before the 250                | yes    | yes  | saw no 250      | finds the mark: 250, not stored |
 * | 451, because another recipient was unavailable  | yes    | yes  | saw 451         | finds the mark: 250, not stored |
 * | after the 250, before the mark is deleted       | yes    | yes  | saw 250         | is a second message, see below  |
 * | after the mark is deleted                       | yes    | no   | saw 250         | is a second message, and stored |
 * | the 250 is lost in transit                      | yes    | no   | saw no 250      | is stored twice (RFC 1047)      |
 *
 * In the fourth row a second identical message must not be taken for a retry. Within this process it waits until the
 * mark is deleted. A message that finds a mark of another process checks again after a pause, in which that process
 * deletes it. The remaining gap: a process is killed in the milliseconds between a 250 and the deletion, and an
 * identical message follows.
 */
import { hash } from "node:crypto"
import { Writes } from "@svc/cluster/store/Database"
import { Context, Deferred, Effect, Exit, FiberSet, Layer, Schedule } from "effect"
import { Timing } from "../Timing.ts"
import type { Recipient } from "./RecipientAddress.ts"

/** Returns the key that a transaction and its retry share for one Mailbox, in whatever order the sender names its tags. */
export const keyOf = (
  mail: { readonly sha256: Uint8Array; readonly envelopeFrom: string },
  { mailbox, addresses }: Recipient,
): Uint8Array => {
  // An address without a tag differs from one with the empty tag (`ada+@`).
  const tags = addresses.map(({ tag }) => (tag === null ? "" : `+${tag}`)).sort()
  return new Uint8Array(
    hash(
      "sha256",
      Buffer.concat([Buffer.from(JSON.stringify([mailbox, tags, mail.envelopeFrom])), mail.sha256]),
      "buffer",
    ),
  )
}

/** The recipient in the key of mail for the operator. */
export const operator: Recipient = { mailbox: "@", addresses: [] }

interface Transaction {
  /** Called after the reply was sent, or can no longer be sent. `answered` is whether it was a 250. */
  readonly end: (answered: boolean) => void
}

interface Answered {
  readonly keys: ReadonlyArray<Uint8Array>
  readonly release: () => void
}

const retrySchedule = Schedule.spaced(Timing.smtpForgetRetry)

/** The maximum number of transactions whose marks are deleted in one statement. */
const batchSize = 500

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const fork = yield* FiberSet.makeRuntime()
  const inProgress = new Map<string, Deferred.Deferred<void>>()

  /** Answered transactions whose marks are still to be deleted, and those being deleted. */
  const pending: Array<Answered> = []
  let deleting: ReadonlyArray<Answered> = []

  /** Does not wait for the disk. A mark that reappears after a power failure only costs a second check. */
  const deleteMarks = (ended: ReadonlyArray<Answered>) => sql`
    with unhurried as materialized (select set_config('synchronous_commit', 'off', true)),
    gone as (delete from unanswered_mail using unhurried where key = any(${ended.flatMap((one) => one.keys)}::bytea[]))
    select 1`

  /** Deletes the marks of all answered transactions, one statement at a time. */
  const deletePending = () => {
    if (deleting.length > 0 || pending.length === 0) return
    const ended = pending.splice(0, batchSize)
    deleting = ended
    const release = Effect.sync(() => {
      deleting = []
      for (const one of ended) one.release()
      deletePending()
    })
    fork(Effect.ensuring(Effect.retry(deleteMarks(ended), retrySchedule), release))
  }

  // Deletes the remaining marks at shutdown.
  yield* Effect.addFinalizer(() => {
    const left = [...deleting, ...pending.splice(0)]
    return left.length === 0 ? Effect.void : Effect.ignore(Effect.timeout(deleteMarks(left), Timing.smtpForgetLast))
  })

  /**
   * Returns two ways to start: `immediately`, if no equal transaction is in progress, and `whenFree`, after the equal
   * ones have ended.
   */
  const begin = (keys: ReadonlyArray<Uint8Array>) => {
    // Sorted, so that two transactions never wait for each other.
    const names = [...new Set(keys.map((key) => Buffer.from(key).toString("hex")))].sort()
    const ended = Deferred.makeUnsafe<void>()
    const release = () => {
      for (const name of names) if (inProgress.get(name) === ended) inProgress.delete(name)
      Deferred.doneUnsafe(ended, Exit.void)
    }
    const transaction: Transaction = {
      end: (answered) => {
        if (!answered) return release()
        pending.push({ keys, release })
        // Transactions that end in the same turn of the event loop are batched.
        if (pending.length === 1) queueMicrotask(deletePending)
      },
    }
    const immediately = (): Transaction | undefined => {
      if (names.some((name) => inProgress.has(name))) return undefined
      for (const name of names) inProgress.set(name, ended)
      return transaction
    }
    const whenFree = Effect.gen(function* () {
      for (const name of names) {
        for (let other = inProgress.get(name); other !== undefined; other = inProgress.get(name))
          yield* Deferred.await(other)
        inProgress.set(name, ended)
      }
      return transaction
    }).pipe(Effect.onInterrupt(() => Effect.sync(release)))
    return { immediately, whenFree }
  }

  const waitFor = <E>(whenFree: Effect.Effect<Transaction>, busy: E) =>
    Effect.timeoutOrElse(whenFree, { duration: Timing.smtpEqual, orElse: () => Effect.fail(busy) })

  return {
    /**
     * Runs `work` when no equal transaction is in progress in this process. Failed work counts as not answered. Fails
     * with `busy` if the wait takes too long.
     */
    within: <A, E, R>(
      keys: ReadonlyArray<Uint8Array>,
      work: Effect.Effect<A, E, R>,
      busy: NoInfer<E>,
    ): Effect.Effect<Transaction, E, R> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          const { immediately, whenFree } = begin(keys)
          const started = immediately()
          return Effect.flatMap(
            started === undefined ? restore(waitFor(whenFree, busy)) : Effect.succeed(started),
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
