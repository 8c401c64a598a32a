import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { AdminRequired } from "@svc/domain/problems/Problem"
import { ask } from "@svc/cluster/actor/Ask"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import * as OwnIdentity from "../identity/OwnIdentity.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "tunnels",
  Effect.fn(function* (handlers) {
    const own = yield* OwnIdentity.make
    const identities = yield* IdentityQueries
    const tunnels = yield* TunnelQueries
    const read = Effect.fnUntraced(function* (org: string, name: string) {
      const { id, tunnel, created_at } = yield* identities.read(org, name)
      return { ...tunnel, ...(yield* tunnels.report(id, created_at)) }
    })

    return handlers.handleAll({
      read: Effect.fnUntraced(function* ({ params }) {
        const { org_id, name } = yield* own(params.handle)
        return yield* read(org_id, name)
      }),
      patch: Effect.fnUntraced(function* ({ params, payload }) {
        const { kind } = yield* Caller
        const { org_id, name, actor } = yield* own(params.handle)
        if (kind === "identity_key" && (payload.allowed_networks !== undefined || payload.basic_auth !== undefined)) {
          return yield* new AdminRequired({ detail: "An Identity Key may not change who may reach the Tunnel." })
        }
        yield* ask(actor.PatchTunnel({ org_id, patch: payload }))
        return yield* read(org_id, name)
      }),
    })
  }),
)
