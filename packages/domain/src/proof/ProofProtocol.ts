import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Conflict, IdentityNotReady, NotFound } from "../problems/Problem.ts"
import { PublicJwk } from "./SigningKey.ts"

export const RotateSigningKey = Rpc.make("RotateSigningKey", {
  payload: tenant,
  error: failures(NotFound, IdentityNotReady),
})

/** Publishes a key of the agent, whose possession the caller has checked. */
export const AddSigningKey = Rpc.make("AddSigningKey", {
  payload: {
    ...tenant,
    kid: Schema.String,
    jwk: PublicJwk,
    name: Schema.NullOr(Schema.String),
    /** The API key that registers it; null for a session. */
    registered_by: Schema.NullOr(Schema.String),
  },
  error: failures(NotFound, IdentityNotReady, Conflict),
})

export const RemoveSigningKey = Rpc.make("RemoveSigningKey", {
  payload: { ...tenant, kid: Schema.String },
  error: failures(NotFound, Conflict),
})

export const ProofMessages = RpcGroup.make(RotateSigningKey, AddSigningKey, RemoveSigningKey)
