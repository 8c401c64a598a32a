/** The id of the request at hand: always ours, sent back as `request-id`, on every log entry and in every problem. */
import { makePublic } from "@svc/domain/Ids"
import { Effect } from "effect"
import { RequestContext } from "./RequestContext.ts"

export const RequestId: Effect.Effect<string> = Effect.map(RequestContext, ({ requestId }) => requestId)

export const makeRequestId = makePublic("req_")
