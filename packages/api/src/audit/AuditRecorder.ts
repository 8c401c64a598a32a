/**
 * Audits calls. The statement of a change stores the record of the call (`AuditNotes`). The records of other calls are
 * separate commits. For reads of secrets and of the log, the record is stored before the read. For refusals, sign-ins, and
 * changes that are several commits or leave the service, such as posts on a platform, it is stored before the response.
 * Other reads are counted.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import type { AuditUnavailable, Problem } from "@svc/domain/problems/Problem"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { Timing } from "@svc/cluster/Timing"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect, type Exit, type Redacted } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { RequestContextState } from "../RequestContext.ts"
import { actOf, type Called, naming, outcomeOf, planOf, sourceOf, withMade } from "./AuditedOperations.ts"

type Params = Readonly<Record<string, string | undefined>>
type Response = HttpServerResponse.HttpServerResponse

/**
 * Reading the log is recorded once an hour per credential and client address and counted otherwise; an entry per page would
 * fill the log that is read. Downloads are always recorded.
 */
const recordedByTheHour = new Set(["audit.list", "audit.read"])
/** The number of remembered readers. Beyond it, each read is recorded. */
const readersAtMost = 10_000

/** Endpoints whose statement that reads or creates the secret also stores the entry. The others are recorded before. */
const recordThemselves = new Set([
  "vault.value",
  "proof.createToken",
  "proof.createSignature",
  "agent_sign_ins.create",
  "api_keys.create",
  "api_keys.createForIdentity",
  "api_keys.rotate",
  "webhooks.create",
  "webhooks.rotate",
  "identities.rotate",
  "device_confirmation.approve",
])

/** Refusals of a read that are not recorded, because they reveal nothing about the caller. */
const passing = new Set(["not_found", "audit_unavailable"])

export const make = Effect.gen(function* () {
  const audit = yield* Audit
  const strangers = yield* RefusedCredentials
  /** Per credential and address, the monotonic time in milliseconds until which reads are only counted. */
  const readers = new Map<string, number>()

  /** Records a read of the log, unless the same reader was recorded within the hour. */
  const read = (act: Act) =>
    Effect.flatMap(monotonicMillis, (now) => {
      const reader = `${act.actor.id} ${act.source.address}`
      if ((readers.get(reader) ?? 0) > now) return Effect.void
      return Effect.tap(audit.secret(act), () =>
        Effect.sync(() => {
          if (readers.size >= readersAtMost) for (const [key, until] of readers) if (until <= now) readers.delete(key)
          if (readers.size < readersAtMost) readers.set(reader, now + Timing.auditReadingMillis)
        }),
      )
    })

  /** Runs and records the handler of an admitted call; `once` returns a stored response to the same request. */
  const recorded = <E, R, E2, R2>(
    handler: Effect.Effect<Response, E, R>,
    once: (handler: Effect.Effect<Response, E | AuditUnavailable, R>) => Effect.Effect<Response, E2, R2>,
    call: Called,
    caller: CallerInfo,
    identity: IdentityRef | null | undefined,
    params: Params,
    exchange: RequestContextState,
  ) => {
    const plan = planOf(call)
    const isByTheHour = recordedByTheHour.has(plan.action)
    if (plan.class === "read" || isByTheHour) {
      audit.used({
        org: caller.org.id,
        kind: caller.kind,
        id: caller.credentialId,
        action: plan.action,
        tool: exchange.source.tool ?? "",
        handle: identity?.handle ?? "",
      })
      if (!isByTheHour) return once(handler)
    }
    const act = actOf(plan, caller, identity, params, exchange)
    const isBefore = plan.class === "secret" && !recordThemselves.has(plan.action)
    if (!isBefore)
      exchange.act = (made) => ({ ...(made === undefined ? act : naming(plan, act, made)), ...exchange.about })
    const settled = (exit: Exit.Exit<Response, E2>) => {
      if (exchange.repeated) return audit.record({ ...act, outcome: "repeated" })
      const outcome = outcomeOf(exit)
      if (outcome.outcome === "allowed" && exchange.recorded !== undefined) {
        return Effect.sync(() => audit.kept(exchange.recorded!))
      }
      // The entry before the call says that it was allowed.
      if (outcome.outcome === "allowed" && isBefore) return Effect.void
      return audit.record({
        ...withMade(plan, { ...act, ...outcome }, exit),
        ...exchange.about,
        command: exchange.commandId,
      })
    }
    const secret = Effect.suspend(() =>
      isByTheHour ? read(act) : audit.secret({ ...act, command: exchange.commandId }),
    )
    return Effect.onExit(once(isBefore ? Effect.andThen(secret, handler) : handler), settled)
  }

  return {
    recorded,
    /** Records a refused call of a known caller. */
    refused: (call: Called, caller: CallerInfo, params: Params, exchange: RequestContextState, problem: Problem) => {
      const plan = planOf(call)
      if (problem.code === "unavailable" || (plan.class === "read" && passing.has(problem.code))) return Effect.void
      const act: Act = actOf(plan, caller, undefined, params, exchange)
      return audit.record({ ...act, outcome: "refused", code: problem.code })
    },
    /** Records the refusal of a credential that once belonged to an Org. */
    turnedAway: (
      call: Called,
      credential: Redacted.Redacted<string>,
      exchange: RequestContextState,
      problem: Problem,
    ) =>
      problem.code === "unavailable"
        ? Effect.void
        : strangers.turnedAway(credential, {
            action: planOf(call).action,
            code: problem.code,
            source: sourceOf(exchange.source),
            requestId: exchange.requestId,
          }),
  }
})
