/**
 * Writes the audit log. A secret is recorded before it is shown ({@link Audit.secret}, or the statement that reads it
 * with `auditWrite`), or it is not shown. Changes and sign-ins are recorded before the response is sent; records that
 * wait at the same time share a commit. If the store fails after the change was made, the response is sent anyway and
 * the record waits here. Records that no longer fit are reported as a gap. Other reads are only counted (`ReadCounts`).
 */
import { system } from "@svc/domain/account/Initiator"
import { AuditUnavailable, type Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import { raiseForOrg } from "../events/Raise.ts"
import { networkOf } from "../net/ClientNetwork.ts"
import * as Metrics from "../observe/Metrics.ts"
import { ServiceKey } from "../sealing/ServiceKey.ts"
import * as Batcher from "../store/Batcher.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as SealQueue from "./SealQueue.ts"
import * as AuditWrite from "./AuditWrite.ts"
import * as Refusals from "./Refusals.ts"
import * as ReadCounts from "./ReadCounts.ts"

interface AuditSettings {
  /** How much of a client's address is stored: all of it, its network (/24, /64), or nothing. */
  readonly addresses: "full" | "network" | "none"
}

/** Records that may wait for the store; above that the oldest are dropped. */
const waitingAtMost = 10_000
/** Records per statement. */
const batch = 100

interface Gap {
  count: number
  since: Date
  until: Date
}

const records = Metrics.counter(
  "svc_audit_records_total",
  "Records of the audit log: kept with their act, later, or lost",
  ["outcome"],
  [["kept"], ["late"], ["lost"]],
)
const [kept, late, lost] = [records.of("kept"), records.of("late"), records.of("lost")]
const waitingNow = Metrics.gauge("svc_audit_waiting", "Records of the audit log that wait for the store", [])
/** The waiting records of each recorder; a process with several roles has several recorders. */
const recorders = new Set<ReadonlyArray<AuditWrite.AuditWrite>>()
const showWaiting = () => {
  let n = 0
  for (const { length } of recorders) n += length
  waitingNow.set([], n)
}

/** The secret is not shown without a record of who saw it. */
const closed = new AuditUnavailable({
  detail: "The audit log could not be written, so nothing was shown.",
  retry_after_seconds: 1,
})

/** Runs a statement that records what it shows; if the store is unreachable, nothing is shown. */
export const orClosed = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E | Unavailable, R>,
): Effect.Effect<A, Exclude<E, Unavailable> | AuditUnavailable, R> =>
  Effect.catchIf(
    effect,
    (error): error is E & Unavailable => error._tag === "unavailable",
    () => Effect.fail(closed),
  ) as Effect.Effect<A, Exclude<E, Unavailable> | AuditUnavailable, R>

const make = (settings: AuditSettings) =>
  Effect.gen(function* () {
    const sql = yield* Writes
    const key = yield* Effect.orDie((yield* ServiceKey).ofRecords)
    const marks = yield* SealQueue.make(sql)
    const usage = yield* ReadCounts.make(sql)
    const waiting: Array<AuditWrite.AuditWrite> = []
    const gaps = new Map<string, Gap>()
    yield* Effect.acquireRelease(
      Effect.sync(() => recorders.add(waiting)),
      () => Effect.sync(() => (recorders.delete(waiting), showWaiting())),
    )

    const shown = (address: string | null) =>
      address === null || settings.addresses === "none"
        ? null
        : settings.addresses === "network"
          ? networkOf(address)
          : address

    /** Adds time, id and proof, and reduces the address as configured. */
    const note = (act: AuditWrite.Act, count?: number): Effect.Effect<AuditWrite.AuditWrite> =>
      AuditWrite.make(key, { ...act, source: { ...act.source, address: shown(act.source.address) } }, count)

    const insert = (notes: ReadonlyArray<AuditWrite.AuditWrite>) =>
      orUnavailable(
        Effect.tap(sql`${AuditWrite.insert(sql, notes)}`, () =>
          Effect.sync(() => marks.touch(notes.map(({ org }) => org))),
        ),
      )
    const write = yield* Batcher.make(
      (notes: ReadonlyArray<AuditWrite.AuditWrite>) =>
        Effect.as(
          insert(notes),
          notes.map(() => undefined),
        ),
      { ...Batcher.usual, most: batch },
    )

    /** Adds lost records to the gap of the Org that the next round reports. */
    const widen = (org: string, { count, since, until }: Gap) => {
      const gap = gaps.get(org)
      if (gap === undefined) gaps.set(org, { count, since, until })
      else {
        gap.count += count
        if (since < gap.since) gap.since = since
        if (until > gap.until) gap.until = until
      }
    }
    const forget = ({ org, count, at }: AuditWrite.AuditWrite) => {
      lost.n += count
      widen(org, { count, since: at, until: at })
    }
    const wait = (notes: ReadonlyArray<AuditWrite.AuditWrite>) => {
      waiting.push(...notes)
      for (const over of waiting.splice(0, Math.max(0, waiting.length - waitingAtMost))) forget(over)
      showWaiting()
    }

    /** Returns when the record is stored or waits for the store. */
    const keep = (made: AuditWrite.AuditWrite): Effect.Effect<void> =>
      Effect.matchCauseEffect(write(made), {
        onSuccess: () => Effect.sync(() => void kept.n++),
        onFailure: (cause) =>
          Effect.andThen(
            Effect.sync(() => wait([made])),
            Effect.logWarning("A record of the audit log waits for the store", cause),
          ),
      })

    // A record of several acts belongs to no single request.
    const refusals = yield* Refusals.make((act, count) =>
      Effect.flatMap(note({ ...act, command: undefined }, count), keep),
    )

    /**
     * Retries waiting records one by one. A record that no statement accepts is dropped; one that the store cannot take
     * now keeps waiting, as do those that an interruption leaves.
     */
    const retry = Effect.gen(function* () {
      while (waiting.length > 0) {
        const taken = waiting.splice(0, batch)
        const attempt = (notes: ReadonlyArray<AuditWrite.AuditWrite>, left = notes) =>
          Effect.matchCauseEffect(insert(notes), {
            onSuccess: () => Effect.sync(() => ((late.n += notes.length), "kept" as const)),
            onFailure: (cause) =>
              Effect.succeed(
                cause.reasons.some((reason) => reason._tag === "Die") ? ("refused" as const) : ("later" as const),
              ),
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => wait(left))))
        let outcome = yield* attempt(taken)
        for (let at = 0; outcome === "refused" && at < taken.length; at++) {
          const single = yield* attempt([taken[at]!], taken.slice(at))
          if (single === "refused") forget(taken[at]!)
          else if (single === "later") {
            taken.splice(0, at)
            outcome = "later"
          }
        }
        showWaiting()
        if (outcome === "later") return wait(taken)
      }
    })

    /** Reports gaps of the log in the Org's Events. */
    const tell = Effect.gen(function* () {
      for (const [org, gap] of Array.from(gaps)) {
        const at = new Date(yield* Clock.currentTimeMillis)
        const data = { count: gap.count, since: gap.since.toISOString(), until: gap.until.toISOString() }
        gaps.delete(org)
        yield* orUnavailable(
          sql`with live as (select id from org where id = ${org}::uuid and status = 'active'),
            ${raiseForOrg({ sql, org, at, by: system }, "live", "audit.gap", data)} select 1`,
        ).pipe(Effect.onError(() => Effect.sync(() => widen(org, gap))))
      }
    })

    const round = Effect.andThen(retry, tell)
    // At shutdown, stores the counts and the waiting records.
    yield* Effect.addFinalizer(() =>
      Effect.andThen(refusals.flush, round).pipe(
        Effect.timeout(Timing.settle),
        Effect.ignoreCause,
        Effect.andThen(
          Effect.suspend(() =>
            waiting.length === 0
              ? Effect.void
              : Effect.logError(`${waiting.length} records of the audit log are lost: the store takes none`),
          ),
        ),
      ),
    )
    // Begins after the finalizer was added, so it is interrupted first and returns the records of its statement.
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.auditRetry), Effect.ignoreCause(round))))

    return {
      note,
      /** Commits the record of a secret before it is shown, or fails so that nothing is shown. */
      secret: (act: AuditWrite.Act): Effect.Effect<void, AuditUnavailable> =>
        Effect.flatMap(note(act), (made) =>
          orClosed(Effect.asVoid(Effect.tap(write(made), () => Effect.sync(() => kept.n++)))),
        ),
      /** Records a change, a sign-in or a rejection: stored, or waiting for the store, when it returns. Never fails. */
      record: (act: AuditWrite.Act): Effect.Effect<void> =>
        Refusals.areCounted(act) ? refusals.record(act) : Effect.flatMap(note(act), keep),
      /** Returns whether a command has been carried out: its record is stored with its change. */
      isRecorded: (act: AuditWrite.Act): Effect.Effect<boolean, Unavailable> =>
        Effect.flatMap(note(act), ({ id, at }) =>
          Effect.map(
            orUnavailable(sql`select from audit where id = ${id}::uuid and at = ${at} and org_id = ${act.org}::uuid`),
            ({ length }) => length > 0,
          ),
        ),
      /** Notes that another statement has stored the record (`auditWrite`). */
      kept: (made: AuditWrite.AuditWrite): void => {
        kept.n += made.count
        marks.touch([made.org])
      },
      /** Counts a read. */
      used: usage.count,
    }
  })

export class Audit extends Context.Service<Audit, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/audit/Audit",
) {
  static readonly layer = (settings: AuditSettings) =>
    Layer.effect(Audit, make(settings)).pipe(Layer.provide(ServiceKey.layer))
}
