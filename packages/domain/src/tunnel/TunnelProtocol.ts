import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { IdentityNotReady, InvalidRequest, NotFound } from "../problems/Problem.ts"
import { TunnelPatch } from "./Tunnel.ts"

export const PatchTunnel = Rpc.make("PatchTunnel", {
  payload: { ...tenant, patch: TunnelPatch },
  error: failures(NotFound, IdentityNotReady, InvalidRequest),
})

/** A link came or went: whether the Identity is connected is looked up, and a change raises its Event. */
export const TunnelChanged = Rpc.make("TunnelChanged", { error: failures() })

/** Another program holds the TCP port: while it is the Identity's, another one is allotted. Answers the port there is then. */
export const MoveTunnelPort = Rpc.make("MoveTunnelPort", {
  payload: { port: Schema.Int },
  success: Schema.Struct({ port: Schema.NullOr(Schema.Int) }),
  error: failures(),
})

export const TunnelMessages = RpcGroup.make(PatchTunnel, TunnelChanged, MoveTunnelPort)
