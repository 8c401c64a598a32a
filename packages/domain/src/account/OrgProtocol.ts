/**
 * Messages of the Org actor: operations on the whole account, and the call budget, which processes lease in batches.
 * Its entity id is the id of the Org.
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { NotFound } from "../problems/Problem.ts"

/** A rate limit per minute. The actor knows its quota. */
export const Policy = Schema.Literals(["calls", "identity_create", "handle_check"])
export type Policy = typeof Policy.Type

/** Leases up to `want` calls of the current window. Fewer or none are granted when the budget is almost used up. */
const Lease = Rpc.make("Lease", {
  payload: { policy: Policy, want: Schema.Int },
  success: Schema.Struct({
    granted: Schema.Int,
    /** The remaining budget. */
    left: Schema.Int,
    /** Milliseconds until the window ends. */
    ends_in: Schema.Int,
  }),
  error: failures(),
})

/**
 * Reports what an edge transferred under its lease and returns a new lease. Each `report` has a number that is greater
 * than all earlier ones; a report with the same or a smaller number was already counted and is ignored.
 */
const LeaseTransfer = Rpc.make("LeaseTransfer", {
  payload: { edge: Schema.String, used: Schema.Int, report: Schema.optionalKey(Schema.Int) },
  success: Schema.Struct({
    /** Bytes; 0 if the budget of the day is used up. */
    granted: Schema.Int,
    /** Milliseconds until the lease or the day ends. */
    ends_in: Schema.Int,
  }),
  error: failures(),
}).annotate(ClusterSchema.Uninterruptible, "server")

/** Starts the deletion. Every credential is rejected once the start is committed. */
const Delete = Rpc.make("Delete", {
  success: Schema.Struct({ requested_at: Schema.Date, identities: Schema.Int }),
  error: failures(NotFound),
}).annotate(ClusterSchema.Uninterruptible, "server")

/** Starts an export: of the whole Org if `identity_id` is null, otherwise of one Identity. */
const Export = Rpc.make("Export", {
  payload: { export_id: Uuid, identity_id: Schema.NullOr(Uuid), handle: Schema.NullOr(Schema.String) },
  error: failures(NotFound),
}).annotate(ClusterSchema.Uninterruptible, "server")

/** Runs due work: exports and the deletion of the account. */
const Work = Rpc.make("Work", { error: failures() }).annotate(ClusterSchema.InterruptOnTermination, true)

export const OrgActor = Entity.fromRpcGroup("Org", RpcGroup.make(Lease, LeaseTransfer, Delete, Export, Work))
