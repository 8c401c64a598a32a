/**
 * The messages of the Org actor, whose entity id is the Org's id: what happens to an account as a whole, and the budget
 * of its calls, which processes take in portions.
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { NotFound } from "../problems/Problem.ts"

/** A policy of calls per minute; the actor knows its quota. */
export const Policy = Schema.Literals(["calls", "identity_create", "handle_check"])
export type Policy = typeof Policy.Type

/** Takes up to `want` calls of the running window; fewer, or none, are left at its end. */
export const Lease = Rpc.make("Lease", {
  payload: { policy: Policy, want: Schema.Int },
  success: Schema.Struct({
    granted: Schema.Int,
    /** The remaining budget of the actor. */
    left: Schema.Int,
    /** Milliseconds until the window ends. */
    ends_in: Schema.Int,
  }),
  error: failures(),
})

/**
 * An edge tells what it transferred of its lease, and gets a new one. `report` is the number of what it tells, greater
 * than all it gave before: what comes again under its number, or under a smaller one, is counted already.
 */
export const LeaseTransfer = Rpc.make("LeaseTransfer", {
  payload: { edge: Schema.String, used: Schema.Int, report: Schema.optionalKey(Schema.Int) },
  success: Schema.Struct({
    /** Bytes; 0 where the day's budget is used up. */
    granted: Schema.Int,
    /** Milliseconds until the lease, or the day, ends. */
    ends_in: Schema.Int,
  }),
  error: failures(),
}).annotate(ClusterSchema.Uninterruptible, "server")

/** Begins the deletion: from its commit on every credential is refused. */
export const Delete = Rpc.make("Delete", {
  success: Schema.Struct({ requested_at: Schema.Date, identities: Schema.Int }),
  error: failures(NotFound),
}).annotate(ClusterSchema.Uninterruptible, "server")

/** `identity_id` null is the whole Org. */
export const Export = Rpc.make("Export", {
  payload: { export_id: Uuid, identity_id: Schema.NullOr(Uuid), handle: Schema.NullOr(Schema.String) },
  error: failures(NotFound),
}).annotate(ClusterSchema.Uninterruptible, "server")

/** Runs due work: exports and the deletion of the account. */
export const Work = Rpc.make("Work", { error: failures() }).annotate(ClusterSchema.InterruptOnTermination, true)

export const OrgActor = Entity.fromRpcGroup("Org", RpcGroup.make(Lease, LeaseTransfer, Delete, Export, Work))
