import { Api } from "@svc/domain/Api"
import { Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Tunnel, TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import { isOtherSettings } from "@svc/domain/tunnel/TunnelProtocol"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { notAsSeen, tagOfValue } from "../EntityTags.ts"
import { unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"

const tagOfSettings = tagOfValue(TunnelSettings)
const tagOfAll = tagOfValue(Tunnel)

/**
 * The entity tag has two parts. `If-Match` compares the first, the settings, because links and traffic change without an
 * edit of the Tunnel; `If-None-Match` compares both.
 */
const firstHalf = (settings: TunnelSettings) => `${tagOfSettings(settings).slice(0, -1)}.`
const etagOf = (tunnel: Tunnel) => firstHalf(tunnel.settings) + tagOfAll(tunnel).slice(1)
const isMatched = (header: string, settings: TunnelSettings) =>
  header.split(",").some((one) => one.trim().startsWith(firstHalf(settings)))

export const layer = RequestServices.group(
  Api,
  "tunnels",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const identities = yield* IdentityQueries
    const tunnels = yield* TunnelQueries
    const read = Effect.fnUntraced(function* ({ id, orgId, canonical }: SubjectInfo) {
      const { tunnel, created_at } = yield* identities.read(orgId, canonical)
      const body = { ...tunnel, ...(yield* tunnels.report(id, created_at)) }
      return HttpApiSchema.withHeaders({ body, headers: { etag: etagOf(body) } })
    })

    return handlers.handleAll({
      read: () => Effect.flatMap(Subject, read),
      patch: Effect.fnUntraced(function* ({ payload, headers }) {
        const subject = yield* Subject
        const condition = headers["if-match"]
        let seen: { readonly if_settings?: TunnelSettings } = {}
        if (condition !== undefined && condition.trim() !== "*") {
          const { body } = yield* read(subject)
          if (!isMatched(condition, body.settings)) return yield* notAsSeen()
          seen = { if_settings: body.settings }
        }
        yield* unlessMade(
          askIdentity(subject, (actor, by) =>
            actor.PatchTunnel({ org_id: subject.orgId, patch: payload, ...seen }, by),
          ),
        ).pipe(
          Effect.catchTag("invalid_request", (refused) =>
            Effect.fail(isOtherSettings(refused) ? notAsSeen() : refused),
          ),
        )
        return yield* read(subject)
      }),
    })
  }),
)
