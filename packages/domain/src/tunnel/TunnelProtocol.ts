import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { IdentityNotReady, InvalidRequest, NotFound } from "../problems/Problem.ts"
import { TunnelPatch, TunnelSettings } from "./Tunnel.ts"

const PatchTunnel = Rpc.make("PatchTunnel", {
  /**
   * Changes the settings. `if_settings` contains the settings that the caller read; if others are stored by now, they
   * stay unchanged and the message fails with {@link otherSettings}.
   */
  payload: { ...tenant, patch: TunnelPatch, if_settings: Schema.optionalKey(TunnelSettings) },
  error: failures(NotFound, IdentityNotReady, InvalidRequest),
})

/** Reports changed settings by a failure that every version of the program can decode. */
const ifMatch = "/if-match"
export const otherSettings = () =>
  new InvalidRequest({
    detail: "The Tunnel's settings do not match `If-Match`.",
    errors: [{ path: ifMatch, message: "the settings have changed" }],
  })
export const isOtherSettings = ({ errors }: InvalidRequest): boolean =>
  errors?.some(({ path }) => path === ifMatch) === true

/**
 * Reports that a link opened or closed. The actor looks up whether the Identity is connected and raises an Event for a
 * change.
 */
const TunnelChanged = Rpc.make("TunnelChanged", { error: failures() })

/**
 * Allots another TCP port if a different program occupies the given one and it is still the Identity's. Returns the
 * current port.
 */
const MoveTunnelPort = Rpc.make("MoveTunnelPort", {
  payload: { port: Schema.Int },
  success: Schema.Struct({ port: Schema.NullOr(Schema.Int) }),
  error: failures(),
})

export const TunnelMessages = RpcGroup.make(PatchTunnel, TunnelChanged, MoveTunnelPort)
