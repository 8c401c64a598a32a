import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { IfVersion } from "../Precondition.ts"
import { IdentityNotReady, NotFound, PreconditionFailed } from "../problems/Problem.ts"
import { CardPatch, KeptCard } from "./Card.ts"

export const PatchCard = Rpc.make("PatchCard", {
  payload: { ...tenant, patch: CardPatch, if_version: IfVersion },
  // `noted`: the audit log says it; an older process leaves that to who asked.
  success: Schema.Struct({ ...KeptCard.fields, noted: Schema.optionalKey(Schema.Boolean) }),
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})

export const CardMessages = RpcGroup.make(PatchCard)
