import { Api } from "@svc/domain/Api"
import { Subject, type SubjectInfo } from "@svc/domain/account/Authorization"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import { isOtherSettings } from "@svc/domain/tunnel/TunnelProtocol"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { isMatched, notAsSeen, tagOfValue } from "../EntityTags.ts"
import * as Serving from "../http/Serving.ts"
import * as Asking from "../account/Asking.ts"

const tagOfSettings = tagOfValue(TunnelSettings)

export const layer = Serving.group(
  Api,
  "tunnels",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* Asking.ofIdentity
    const identities = yield* IdentityQueries
    const tunnels = yield* TunnelQueries
    const read = Effect.fnUntraced(function* ({ id, orgId, canonical }: SubjectInfo) {
      const { tunnel, created_at } = yield* identities.read(orgId, canonical)
      const report = yield* tunnels.report(id, created_at)
      return HttpApiSchema.withHeaders({
        body: { ...tunnel, ...report },
        headers: { etag: tagOfSettings(report.settings) },
      })
    })

    return handlers.handleAll({
      read: () => Effect.flatMap(Subject, read),
      patch: Effect.fnUntraced(function* ({ payload, headers }) {
        const subject = yield* Subject
        const condition = headers["if-match"]
        let seen: { readonly if_settings?: TunnelSettings } = {}
        if (condition !== undefined && condition.trim() !== "*") {
          const { body, headers } = yield* read(subject)
          if (!isMatched(condition, headers.etag)) return yield* notAsSeen()
          seen = { if_settings: body.settings }
        }
        yield* askIdentity(subject, (actor, by) =>
          actor.PatchTunnel({ org_id: subject.orgId, patch: payload, ...seen }, by),
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
