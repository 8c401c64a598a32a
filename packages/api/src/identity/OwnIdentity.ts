/** The Identity that a path names, as far as it is the caller's Org's: its id to read by, its actor to ask. */
import { Caller } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import { Identities } from "@svc/cluster/identity/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Effect } from "effect"

export const make = Effect.gen(function* () {
  const actors = yield* Identities
  const identities = yield* IdentityQueries

  /** No actor is woken for a name that does not exist, or belongs to another Org. */
  return Effect.fnUntraced(function* (handle: string) {
    const { org } = yield* Caller
    const name = canonical(handle)
    const id = yield* identities.idOf(org.id, name)
    return { id, name, org_id: org.id, actor: actors.of(name) }
  })
})
