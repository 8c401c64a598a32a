import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { IfVersion } from "../Precondition.ts"
import { IdentityNotReady, NotFound, PreconditionFailed } from "../problems/Problem.ts"
import { CardPatch, KeptCard } from "./Card.ts"

const PatchCard = Rpc.make("PatchCard", {
  payload: { ...tenant, patch: CardPatch, if_version: IfVersion },
  success: KeptCard,
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})

export const CardMessages = RpcGroup.make(PatchCard)
