/**
 * The last check before DATA. An attempt may begin DATA while the permit of its Identity's actor is valid
 * (`actor/Permit.ts`). The statement that leases messages grants the permit, so most attempts need no further
 * statement. A later attempt requests another permit, which is only granted while it still holds its lease and outgoing
 * mail is not stopped.
 *
 * A stop ends the permit, then waits for the attempts of this process that have begun DATA, at most until their
 * deadline: no content is written after that. Then it waits for the permits of other processes that owned the Identity
 * before.
 */
import { system } from "@svc/domain/account/Initiator"
import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import * as Permit from "../../../actor/Permit.ts"
import { commitTogether, type Fenced, type OwnIdentity } from "../../../actor/Write.ts"
import * as Batcher from "../../../store/Batcher.ts"
import { Writes } from "../../../store/Database.ts"
import { pause } from "../../../store/Deadline.ts"
import type { Writing } from "../../../work/Source.ts"
import type { Leased } from "./OutboxRecords.ts"

/** One attempt as the gate knows it. */
interface Passage {
  /** Requests permission to begin DATA. If the database does not respond, permission is denied. */
  readonly mayLeave: Effect.Effect<boolean>
  /** Whether the permission is still valid; checked in the same turn of the event loop in which content is written. */
  readonly isPermitted: () => boolean
  /** Ends the attempt, whatever its outcome. */
  readonly end: () => void
}

/** The gate of one Identity. */
export interface Gate {
  readonly permit: Permit.Permit
  /** Returns the permit before the actor moves: this process sends no more mail of the Identity. */
  readonly handBack: Effect.Effect<void>
  /** Registers an attempt; `writing` writes under the fence of the Identity's actor. */
  readonly enter: (leased: Pick<Leased, "id" | "started_at">, writing: Writing<unknown>) => Passage
}

/** An attempt in DATA: it may write until the deadline. */
interface Passing {
  until: number
  readonly ended: Deferred.Deferred<void>
}

interface Entry {
  readonly permit: Permit.Permit
  readonly passing: Set<Passing>
  /** Number of activations that use the entry. */
  users: number
}

/** A request for permission; the attempt should still hold the lease. */
interface PermissionRequest {
  readonly write: Fenced
  readonly identityId: string
  readonly leased: Pick<Leased, "id" | "started_at">
}

/** Permission is requested repeatedly, since a permit may expire while it is granted. */
const tries = 3

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const entries = new Map<string, Entry>()

  /** Requests permits and returns whether sending is allowed. */
  const grant = yield* Batcher.make((requests: ReadonlyArray<PermissionRequest>) =>
    commitTogether<{ open: boolean }>(
      requests.map(({ write }) => write),
      sql`requested as (
          select * from unnest(
            ${requests.map(({ leased }) => leased.id)}::uuid[], ${requests.map(({ leased }) => leased.started_at.toISOString())}::timestamptz[],
            ${requests.map(({ identityId }) => identityId)}::uuid[], ${requests.map(({ write }) => write.claim.kind)}::text[],
            ${requests.map(({ write }) => write.claim.id)}::text[], ${requests.map(({ write }) => write.claim.epoch)}::int[]
          ) with ordinality as requested (outbox_id, started_at, identity_id, kind, id, epoch, n)
        ),
        open as materialized (
          select requested.n, requested.kind, requested.id, requested.epoch from fence join requested on requested.n = fence.n
          join outbox o on o.id = requested.outbox_id and o.identity_id = requested.identity_id
            and o.attempt_started_at = requested.started_at
          join identity i on i.id = o.identity_id and i.status = 'ready'
          join mailbox m on m.identity_id = i.id and m.stopped_at is null
        ),
        ${Permit.permitted(sql, sql`select kind, id, epoch from open`)}`,
      sql`exists (select from open where open.n = fence.n) as open`,
    ),
  )

  const passage =
    (identityId: string, { permit, passing }: Entry): Gate["enter"] =>
    (leased, writing) => {
      const self: Passing = { until: 0, ended: Deferred.makeUnsafe<void>() }
      const passes = () => {
        if (!permit.holds()) return false
        self.until = permit.until()
        passing.add(self)
        return true
      }
      const renewal = Effect.orElseSucceed(
        writing.write(system, (write) => {
          const granted = Effect.flatten(grant({ write, identityId, leased }))
          return permit.renewedBy(
            write,
            Effect.map(granted, ({ open }) => open),
            (open) => open,
          )
        }),
        () => false,
      )
      return {
        mayLeave: Effect.gen(function* () {
          for (let n = 0; n < tries; n++) {
            if (passes()) return true
            if (!(yield* renewal)) return false
          }
          return passes()
        }),
        isPermitted: () => performance.now() < self.until,
        end: () => {
          passing.delete(self)
          Deferred.doneUnsafe(self.ended, Effect.void)
        },
      }
    }

  return {
    /** Returns the gate of an Identity for as long as its actor's activation uses it. */
    of: (identityId: string): Effect.Effect<Gate, never, Scope.Scope> =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const entry = entries.get(identityId) ?? { permit: Permit.make(), passing: new Set(), users: 0 }
            entry.users++
            entries.set(identityId, entry)
            return entry
          }),
          (entry) => Effect.sync(() => --entry.users === 0 && entries.delete(identityId)),
        ),
        (entry): Gate => ({
          permit: entry.permit,
          handBack: Effect.suspend(() => {
            const held = entry.permit.held()
            entry.permit.end()
            return held === undefined ? Effect.void : Effect.ignore(Permit.handBack(sql, held))
          }),
          enter: passage(identityId, entry),
        }),
      ),

    /** Waits after a committed stop until no process sends mail of the Identity any more. */
    closed: Effect.fnUntraced(function* (write: Fenced & { readonly identity: Pick<OwnIdentity, "id"> }) {
      const entry = entries.get(write.identity.id)
      entry?.permit.end()
      yield* Effect.forEach(
        [...(entry?.passing ?? [])],
        ({ until, ended }) =>
          Effect.raceFirst(Deferred.await(ended), pause(Math.max(0, until - performance.now()) + 1)),
        { concurrency: "unbounded", discard: true },
      )
      yield* Permit.formerEnded(write)
    }),
  }
})

export class SendingGate extends Context.Service<SendingGate, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/sending/outbox/SendingGate",
) {
  static readonly layer = Layer.effect(SendingGate, make)
}
