/**
 * The id of the current request. It is always generated here, returned as `request-id`, and part of every log entry and
 * problem.
 */
import { makePublic } from "@svc/domain/Ids"
import { Effect } from "effect"
import { RequestContext } from "./RequestContext.ts"

export const RequestId: Effect.Effect<string> = Effect.map(RequestContext, ({ requestId }) => requestId)

export const makeRequestId = makePublic("req_")
