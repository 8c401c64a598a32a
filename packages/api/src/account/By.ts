/** Who caused what a request changes: its credential and its id, kept with the change. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { By } from "@svc/domain/account/By"
import { Effect } from "effect"
import { RequestId } from "../RequestId.ts"

export const byOf = (caller: CallerInfo): Effect.Effect<By> =>
  Effect.map(RequestId, (requestId) => ({ kind: caller.kind, credentialId: caller.credentialId, requestId }))
