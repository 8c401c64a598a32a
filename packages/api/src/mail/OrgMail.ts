/**
 * Lists the Identities whose mail is stopped, and stops and resumes outgoing mail of all. A stop returns when every Identity has confirmed, so after
 * a stop nothing more starts anywhere. If an Identity is unreachable the call fails, and a repeat asks the remaining ones.
 */
import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import type { OrgMailPatch, OrgMailStatus } from "@svc/domain/mail/MailSettings"
import type { IdentityStatus } from "@svc/domain/IdentityRef"
import { canonical } from "@svc/domain/handles/Handle"
import { Unavailable } from "@svc/domain/problems/Problem"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { MailSettingsQueries } from "@svc/cluster/mail/MailSettingsQueries"
import * as Cursors from "@svc/cluster/sealing/Cursors"
import { Clock, Effect, Schedule } from "effect"
import { untagged } from "../EntityTags.ts"
import { RequestContext } from "../RequestContext.ts"
import * as RequestServices from "../http/RequestServices.ts"

/** The number of Identities called at the same time. */
const atOnce = 16

/** An Identity that is being provisioned has no switch yet, but gets one in a moment. */
const untilReady = { pause: "200 millis", times: 15 } as const

export const layer = RequestServices.group(
  Api,
  "org_mail",
  Effect.fn(function* (handlers) {
    const actors = yield* Identities
    const queries = yield* IdentityQueries
    const settings = yield* MailSettingsQueries

    return handlers.handleAll({
      stopped: Effect.fnUntraced(function* () {
        const { org, identities } = yield* Caller
        return { stopped: yield* settings.stopped(org.id, identities) }
      }),
      switch: Effect.fnUntraced(function* ({ payload, headers }) {
        yield* untagged(headers["if-match"])
        const { org, by } = yield* Caller
        const found = yield* Cursors.all((request) => queries.list(org.id, request))
        // A repeat could revert a later stop.
        if ((yield* RequestContext).resumed)
          return yield* statusOf(payload, by.kind, found.filter(({ status }) => !isSilent(status)).length)
        const turned = yield* Effect.forEach(
          found,
          (identity) =>
            ask(
              actors
                .of(canonical(identity.handle))
                .SwitchMail({ org_id: org.id, patch: payload, if_version: null }, onBehalfOf(by)),
            ).pipe(
              Effect.retry({
                while: (error) => error._tag === "identity_not_ready" && error.agent_hint === "wait",
                schedule: Schedule.spaced(untilReady.pause),
                times: untilReady.times,
              }),
              Effect.as(1),
              Effect.catchTags({
                // A deleted or failed Identity sends nothing.
                not_found: () => Effect.succeed(0),
                identity_not_ready: (error) =>
                  isSilent(identity.status) ? Effect.succeed(0) : Effect.fail(later(error)),
                precondition_failed: (error) => Effect.fail(later(error)),
              }),
            ),
          { concurrency: atOnce },
        )
        return yield* statusOf(
          payload,
          by.kind,
          turned.reduce((sum, one) => sum + one, 0),
        )
      }),
    })
  }),
)

const isSilent = (status: IdentityStatus) => status === "failed" || status === "deleting"

const later = ({ detail }: { readonly detail: string }) =>
  new Unavailable({ detail: `Some Identities could not be reached: ${detail}`, retry_after_seconds: 1 })

const statusOf = (
  { outgoing, reason }: OrgMailPatch,
  by: OrgMailStatus["stopped_by"] | "system",
  identities: number,
): Effect.Effect<OrgMailStatus> =>
  Effect.map(Clock.currentTimeMillis, (now) =>
    outgoing === "active"
      ? { outgoing, stopped_at: null, stopped_by: null, reason: null, identities }
      : {
          outgoing,
          stopped_at: new Date(now),
          stopped_by: by === "system" ? null : by,
          reason: reason ?? null,
          identities,
        },
  )
