/**
 * Decides whether a Handle may be claimed: by the rules of `@svc/domain/handles/Handle`, then by whether it was ever
 * given out.
 */
import { check } from "@svc/domain/handles/Handle"
import { HandleInvalid, HandleReserved, HandleTaken } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer } from "effect"
import { IdentityQueries } from "../identity/IdentityQueries.ts"

const make = (options: { readonly brand: string }) =>
  Effect.gen(function* () {
    const identities = yield* IdentityQueries
    return {
      /** Returns the canonical Handle, or fails. A reserved Handle is reported as reserved, not as taken. */
      claimable: Effect.fnUntraced(function* (spelling: string) {
        const checked = check(spelling, options)
        if (checked._tag === "Invalid") return yield* new HandleInvalid({ detail: checked.detail })
        if (checked._tag === "Reserved") return yield* new HandleReserved({ detail: checked.detail })
        if (yield* identities.isTaken(checked.canonical)) {
          return yield* new HandleTaken({
            detail: "The Handle, or another spelling of it, is in use or was used before.",
          })
        }
        return { handle: checked.handle, canonical: checked.canonical }
      }),
    }
  })

export class HandleRules extends Context.Service<HandleRules, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/handles/HandleRules",
) {
  static readonly layer = (options: { readonly brand: string }) => Layer.effect(HandleRules, make(options))
}
