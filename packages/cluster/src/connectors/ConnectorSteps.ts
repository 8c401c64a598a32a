/** The teardown step for Connectors: revokes every credential at its platform before the Identity is removed. */
import { platformNames } from "@svc/domain/connectors/PlatformNames"
import { canonical } from "@svc/domain/handles/Handle"
import { Effect } from "effect"
import { ask } from "../actor/Ask.ts"
import { type Step, StepFailed } from "../saga/Step.ts"
import { Timing } from "../Timing.ts"
import { Connectors } from "./Connectors.ts"

/**
 * Asks the actor of each platform that has a connection or a pending revocation to leave. An unreachable platform fails
 * the step a few times; then the Identity is removed and the revocation is retried without it.
 */
export const teardown: Effect.Effect<Step, never, Connectors> = Effect.map(
  Effect.service(Connectors),
  (connectors): Step =>
    ({ sql, identity }) =>
      Effect.gen(function* () {
        const name = canonical(identity.handle)
        const rows = yield* sql<{ platform: string }>`
          select platform from connector where identity_id = ${identity.id}
          union select platform from connector_revocation where identity_id = ${identity.id} and due_at is not null`
        const known = rows.filter(({ platform }) => (platformNames as ReadonlyArray<string>).includes(platform))
        const left = yield* Effect.forEach(
          known,
          ({ platform }) =>
            ask(connectors.of(name, platform).Leave({ org_id: identity.orgId }), Timing.askPlatform).pipe(
              Effect.map(({ revoked }) => (revoked ? [] : [platform])),
              Effect.catch(() => Effect.succeed([platform])),
            ),
          { concurrency: "unbounded" },
        )
        const unrevoked = left.flat()
        if (unrevoked.length > 0) {
          return yield* new StepFailed({ message: `not revoked yet: ${unrevoked.join(", ")}` })
        }
        return { rows: sql`removed as (select 1)` }
      }),
)
