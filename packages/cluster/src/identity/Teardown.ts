/**
 * The steps of the teardown saga, in reverse order of provisioning. The last step removes the Identity's rows in
 * batches, then the Identity itself. Its Handle is never given out again.
 */
import type { sagaSteps } from "@svc/domain/identity/Identity"
import { Context, Effect } from "effect"
import type { RemoveBatch } from "../Capability.ts"
import * as CardSteps from "../card/CardSteps.ts"
import * as ConnectorSteps from "../connectors/ConnectorSteps.ts"
import * as IdentityKeys from "../credentials/IdentityKeys.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { withoutIdentity } from "../credentials/GrantRevocation.ts"
import type { Step } from "../saga/Step.ts"
import { Unhurried } from "../store/Database.ts"
import * as TunnelSteps from "../tunnel/TunnelSteps.ts"

const batch = 2_000

/** The statements by which capabilities delete an Identity's rows in batches (`inBatches` of their tables). */
export class BatchedErasure extends Context.Service<BatchedErasure, ReadonlyArray<RemoveBatch>>()(
  "svc/BatchedErasure",
) {}

/** Revokes the Identity's keys and the access of every app to it. */
const credentials: Step = (subject) =>
  Effect.map(IdentityKeys.teardown(subject), ({ rows }) => ({
    rows: subject.sql`${rows}, ${withoutIdentity(subject)}`,
  }))

export const make = Effect.gen(function* () {
  const unhurried = yield* Unhurried

  const removals = yield* BatchedErasure

  /** Deletes an Identity's rows in batches, each in a separate commit. */
  const removeBelongings = (identityId: string) =>
    Effect.forEach(
      removals,
      (removal) => Effect.repeat(removal(unhurried, identityId, batch), { while: ([row]) => row!.n === batch }),
      { discard: true },
    )

  /** Removes the rest; the actor deletes the Identity's own row in the same statement. */
  const remainder: Step = ({ sql, identity, at, by }) =>
    Effect.as(removeBelongings(identity.id), {
      rows: sql`
        remains as (
          insert into removed_webhook (id, removed_at)
          select id, ${at}::timestamptz from webhook where identity_id = ${identity.id} and exists (select from fence)
          on conflict do nothing
        ),
        leftover as (delete from event where identity_id = ${identity.id} and exists (select from fence)),
        -- Exports of the Identity go with it. Exports of the whole Org contain its mail, so they go too.
        archives as (delete from export where org_id = ${identity.orgId} and identity_id is null and exists (select from fence)),
        ${raiseForOrg({ sql, org: identity.orgId, at, by }, "fence", "identity.deleted", {
          identity_id: identity.id,
          handle: identity.handle,
        })}`,
    })

  const steps: { readonly [Name in (typeof sagaSteps)["teardown"][number]]: Step } = {
    identity_keys: credentials,
    connectors: yield* ConnectorSteps.teardown,
    card: CardSteps.teardown,
    tunnel: TunnelSteps.teardown,
    mailbox: remainder,
  }
  return steps
})
