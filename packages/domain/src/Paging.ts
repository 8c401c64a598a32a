/** Page sizes: 50 by default, 1 to 200 (decisions.md "General conventions"). */
import { Effect, Schema } from "effect"

export const defaultLimit = 50
export const maxLimit = 200

export const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxLimit }))
  .annotate({ description: "How many entries at most.", default: defaultLimit })
  .pipe(Schema.withDecodingDefaultKey(Effect.succeed(defaultLimit)))

/** How many of the newest entries to skip; deeper pages are reached by filters. */
export const Offset = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))
  .annotate({ description: "How many of the newest entries to skip.", default: 0 })
  .pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))
