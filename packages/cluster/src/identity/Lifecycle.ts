/** Handles the messages that start, repeat and reverse an Identity's sagas: its creation, retries and its deletion. */
import { AccountDeleting, HandleTaken, IdentityBusy, IdentityQuotaExhausted } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { byOf, noteOf, requireOwner, type Request } from "../actor/ActorHandlers.ts"
import type { Ownership } from "../actor/Ownership.ts"
import { type AuditNote, commit, type Fenced } from "../actor/Write.ts"
import { auditWriteWith, insertNotes } from "../audit/AuditWrite.ts"
import * as IdentityKeys from "../credentials/IdentityKeys.ts"
import type { Sealing } from "../sealing/Sealing.ts"

import type { CreationBatch } from "./CreationBatch.ts"
import * as Saga from "./Saga.ts"
import { type Owned, sagaJson, type State, withRunning } from "./State.ts"

/**
 * Commits the saga's next state together with the Identity's status. The status `deleting` revokes all keys of the Identity.
 */
const commitSaga = (fenced: Fenced, next: Owned, note: AuditNote | undefined) =>
  Effect.as(
    commit(
      fenced,
      fenced.sql`
      moved as (
        update identity set saga = ${sagaJson(next.saga)}::jsonb, saga_due_at = ${next.sagaDueAt}, status = ${next.status}
        where id = ${next.id} and exists (select from fence) returning id)
      ${next.status === "deleting" ? fenced.sql`, ${IdentityKeys.revokeAll({ ...fenced, identity: next })}` : fenced.sql``}
      ${auditWriteWith(fenced.sql, note, "moved")}`,
    ),
    { value: undefined, state: next },
  )

const taken = Effect.fail(
  new HandleTaken({ detail: "The Handle, or another spelling of it, is in use or was used before." }),
)

/** Commits a new Identity: the Org's quota, the Handle, and the Identity with a saga that has just started. */
const create = Effect.fnUntraced(function* (
  fenced: Fenced,
  wanted: { readonly canonical: string; readonly handle: string; readonly orgId: string; readonly id: string },
  /** Number of Identities that an Org may ever create. */
  quota: number,
  sealing: Sealing["Service"],
  creations: CreationBatch["Service"],
  note: AuditNote | undefined,
) {
  const saga = Saga.start("provisioning", fenced.at)
  const created = withRunning(wanted, saga, "provisioning", fenced.at)
  const row = yield* creations
    .make({ fenced, ...wanted, quota, saga: sagaJson(saga), sagaDueAt: created.sagaDueAt, note })
    .pipe(
      // A violation of the Handle's unique constraint rolls back the whole statement, including the quota.
      Effect.catchIf(
        (error) => error._tag === "SqlError" && error.reason._tag === "UniqueViolation",
        () => taken,
      ),
    )
  if (row.status !== "active" || row.data_key === null) {
    return yield* new AccountDeleting({ detail: "The account is being deleted." })
  }
  if (!row.made) {
    return yield* new IdentityQuotaExhausted({ detail: `The Org has already created ${quota} Identities.` })
  }
  const state: Owned = { ...created, dataKey: yield* Effect.orDie(sealing.openDataKey(wanted.orgId, row.data_key)) }
  return { value: undefined, state }
})

export const handlers = (actor: {
  readonly canonical: Effect.Effect<string>
  readonly ownership: Ownership<State>
  readonly sealing: Sealing["Service"]
  readonly identityQuota: number
  readonly creations: CreationBatch["Service"]
  /** Wakes the worker because the saga has work. */
  readonly wake: Effect.Effect<void>
}) => {
  const { ownership } = actor
  /** Stores the audit record of a command that has nothing to change. */
  const unchanged = (request: Request<unknown>) => {
    const note = noteOf(request)
    return note === undefined
      ? Effect.void
      : Effect.asVoid(ownership.write(byOf(request), ({ sql }) => insertNotes(sql, [note])))
  }

  return {
    Create: Effect.fnUntraced(function* (
      request: Request<{ readonly org_id: string; readonly identity_id: string; readonly handle: string }>,
    ) {
      const { org_id, identity_id, handle } = request.payload
      const present = yield* ownership.state
      // The same command was repeated after a crash between commit and reply.
      if (present?.id === identity_id) return yield* unchanged(request)
      if (present !== undefined) return yield* taken
      const wanted = { canonical: yield* actor.canonical, handle, orgId: org_id, id: identity_id }
      yield* ownership.change(byOf(request), (fenced) =>
        create(fenced, wanted, actor.identityQuota, actor.sealing, actor.creations, noteOf(request)),
      )
      yield* actor.wake
    }),

    Retry: Effect.fnUntraced(function* (request: Request<{ readonly org_id: string }>) {
      const identity = yield* requireOwner(yield* ownership.state, request.payload)
      if (identity.saga.status !== "failed") return yield* unchanged(request)
      const status = identity.saga.kind === "teardown" ? "deleting" : "provisioning"
      yield* ownership.change(byOf(request), (fenced) =>
        commitSaga(fenced, withRunning(identity, Saga.rerun(identity.saga), status, fenced.at), noteOf(request)),
      )
      yield* actor.wake
    }),

    Delete: Effect.fnUntraced(function* (
      request: Request<{ readonly org_id: string; readonly account?: boolean | undefined }>,
    ) {
      const identity = yield* requireOwner(yield* ownership.state, request.payload)
      if (identity.status === "provisioning" && request.payload.account !== true) {
        return yield* new IdentityBusy({ detail: "The Identity is being provisioned.", retry_after_seconds: 1 })
      }
      if (identity.status === "deleting" && identity.saga.status !== "failed") return yield* unchanged(request)
      yield* ownership.change(byOf(request), (fenced) => {
        const saga = identity.status === "deleting" ? Saga.rerun(identity.saga) : Saga.start("teardown", fenced.at)
        return commitSaga(fenced, withRunning(identity, saga, "deleting", fenced.at), noteOf(request))
      })
      yield* actor.wake
    }),
  }
}
