import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { IfVersion } from "../Precondition.ts"
import { IdentityNotReady, NotFound, PreconditionFailed } from "../problems/Problem.ts"
import { MailPatch } from "./MailSettings.ts"

const AllowRecipient = Rpc.make("AllowRecipient", {
  payload: { ...tenant, address: Schema.String },
  error: failures(NotFound, IdentityNotReady),
})

const DisallowRecipient = Rpc.make("DisallowRecipient", {
  payload: { ...tenant, address: Schema.String },
  error: failures(NotFound, IdentityNotReady),
})

/** Lifts the suppression of an address whose mail bounced, so that delivery is attempted again. */
const LiftSuppression = Rpc.make("LiftSuppression", {
  payload: { ...tenant, address: Schema.String },
  error: failures(NotFound, IdentityNotReady),
})

/** Sets the disclosure; null `text` restores the default. */
const SetDisclosure = Rpc.make("SetDisclosure", {
  payload: { ...tenant, text: Schema.NullOr(Schema.String), if_version: IfVersion },
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})

/** Stops or starts outgoing mail. */
const SwitchMail = Rpc.make("SwitchMail", {
  payload: { ...tenant, patch: MailPatch, if_version: IfVersion },
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})

export const MailSettingsMessages = RpcGroup.make(
  AllowRecipient,
  DisallowRecipient,
  LiftSuppression,
  SetDisclosure,
  SwitchMail,
)
