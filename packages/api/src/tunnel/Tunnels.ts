import { Api } from "@svc/domain/Api"
import { Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Effect } from "effect"
import * as Serving from "../http/Serving.ts"
import * as Asking from "../account/Asking.ts"

export const layer = Serving.group(
  Api,
  "tunnels",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* Asking.ofIdentity
    const identities = yield* IdentityQueries
    const tunnels = yield* TunnelQueries
    const read = Effect.fnUntraced(function* ({ id, orgId, canonical }: SubjectInfo) {
      const { tunnel, created_at } = yield* identities.read(orgId, canonical)
      return { ...tunnel, ...(yield* tunnels.report(id, created_at)) }
    })

    return handlers.handleAll({
      read: () => Effect.flatMap(Subject, read),
      patch: Effect.fnUntraced(function* ({ payload }) {
        const subject = yield* Subject
        yield* askIdentity(subject, (actor, by) => actor.PatchTunnel({ org_id: subject.orgId, patch: payload }, by))
        return yield* read(subject)
      }),
    })
  }),
)
