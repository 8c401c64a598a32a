/** The id of the request at hand: always ours, sent back as `request-id`, on every log entry and in every problem. */
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { Context, Effect } from "effect"

export const RequestId = Context.Reference<string>("@svc/api/RequestId", { defaultValue: () => "req_unknown" })

export const makeRequestId = Effect.map(makeUuidV7, (id) => toPublic("req_", id))
