import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { IdentityNotReady, InvalidRequest, NotFound } from "../problems/Problem.ts"
import { TunnelPatch, TunnelSettings } from "./Tunnel.ts"

export const PatchTunnel = Rpc.make("PatchTunnel", {
  /** `if_settings`: what the caller saw; other settings by now are left as they are, and {@link otherSettings} answered. */
  payload: { ...tenant, patch: TunnelPatch, if_settings: Schema.optionalKey(TunnelSettings) },
  error: failures(NotFound, IdentityNotReady, InvalidRequest),
})

/** The settings are not those that the caller saw: in a failure that every version of the program can read. */
const ifMatch = "/if-match"
export const otherSettings = () =>
  new InvalidRequest({
    detail: "The Tunnel has other settings than `If-Match` names.",
    errors: [{ path: ifMatch, message: "the settings are others by now" }],
  })
export const isOtherSettings = ({ errors }: InvalidRequest): boolean =>
  errors?.some(({ path }) => path === ifMatch) === true

/** A link came or went: whether the Identity is connected is looked up, and a change raises its Event. */
export const TunnelChanged = Rpc.make("TunnelChanged", { error: failures() })

/** Another program holds the TCP port: while it is the Identity's, another one is allotted. Answers the port there is then. */
export const MoveTunnelPort = Rpc.make("MoveTunnelPort", {
  payload: { port: Schema.Int },
  success: Schema.Struct({ port: Schema.NullOr(Schema.Int) }),
  error: failures(),
})

export const TunnelMessages = RpcGroup.make(PatchTunnel, TunnelChanged, MoveTunnelPort)
