/** Messages for the life cycle of an Identity and its initial credentials. */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import {
  AccountDeleting,
  HandleTaken,
  IdentityBusy,
  IdentityNotReady,
  IdentityQuotaExhausted,
  NotFound,
} from "../problems/Problem.ts"

export const Create = Rpc.make("Create", {
  payload: { ...tenant, identity_id: Uuid, handle: Schema.String },
  error: failures(HandleTaken, IdentityQuotaExhausted, AccountDeleting),
})

export const Retry = Rpc.make("Retry", { payload: tenant, error: failures(NotFound) })

export const Delete = Rpc.make("Delete", {
  /** `account` means that the whole account is deleted, so provisioning stops after its current step. */
  payload: { ...tenant, account: Schema.optionalKey(Schema.Boolean) },
  error: failures(NotFound, IdentityBusy),
})

/** Deletes the show-once secrets. */
export const Acknowledge = Rpc.make("Acknowledge", { payload: tenant, error: failures(NotFound) })

/** Revokes the current Identity Key and IMAP password and stores new ones as show-once secrets. */
export const RotateKey = Rpc.make("RotateKey", { payload: tenant, error: failures(NotFound, IdentityNotReady) })

export const LifecycleMessages = RpcGroup.make(Create, Retry, Delete, Acknowledge, RotateKey)
