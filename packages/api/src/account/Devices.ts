/** Device login: the terminal's endpoints without a credential, and the account holder's with one. */
import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { judgeRights, namedScopes } from "@svc/domain/account/KeyRights"
import { isScope } from "@svc/domain/ScopeTable"
import { Devices } from "@svc/cluster/account/Devices"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { Clock, Effect, Redacted } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { unlessMade } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"
import * as AuditNotes from "../audit/AuditNotes.ts"
import { sourceOf } from "../audit/AuditedOperations.ts"
import { RequestContext, keptByNobody } from "../RequestContext.ts"

export const login = RequestServices.group(
  Api,
  "device_login",
  Effect.fn(function* (handlers) {
    const devices = yield* Devices
    const strangers = yield* RefusedCredentials
    const { baseUrl } = yield* Addresses

    return handlers.handleAll({
      start: Effect.fnUntraced(function* ({ payload }) {
        const { scopes: names, ...request } = payload
        const scopes = names === undefined ? undefined : yield* Effect.fromResult(namedScopes(names, isScope))
        const started = yield* devices.start(request, scopes)
        yield* keptByNobody
        return HttpApiSchema.withHeaders({
          body: {
            device_code: started.deviceCode,
            user_code: started.userCode,
            verification_uri: `${baseUrl}/auth/device`,
            verification_uri_complete: `${baseUrl}/auth/device?user_code=${started.userCode}`,
            expires_at: started.expiresAt,
            interval_seconds: started.intervalSeconds,
          },
          headers: { location: `/api/auth/device/${started.userCode}` },
        })
      }),
      poll: Effect.fnUntraced(function* ({ payload }) {
        yield* keptByNobody
        const minted = yield* devices.poll(payload.device_code)
        const { source, requestId } = yield* RequestContext
        yield* strangers.handedOut(Redacted.make(minted.key), {
          action: "device_login.poll",
          source: sourceOf(source),
          requestId,
        })
        return minted
      }),
    })
  }),
)

export const confirmation = RequestServices.group(
  Api,
  "device_confirmation",
  Effect.fn(function* (handlers) {
    const devices = yield* Devices
    const noting = yield* AuditNotes.make
    return handlers.handleAll({
      read: ({ params }) => devices.view(params.userCode),
      approve: Effect.fnUntraced(function* ({ params, payload }) {
        const caller = yield* Caller
        const now = yield* Clock.currentTimeMillis
        yield* unlessMade(
          noting((note) =>
            devices.approve(
              caller.org.id,
              params.userCode,
              payload ?? {},
              (requested) => judgeRights(caller, requested, isScope, now),
              caller.by,
              note,
            ),
          ),
        )
      }),
      deny: ({ params }) => unlessMade(devices.deny(params.userCode)),
    })
  }),
)
