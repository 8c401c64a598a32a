/**
 * Puts calls on record: what changes something, before its answer goes out; what shows a secret, before it is opened;
 * other reads are counted. Refusals are recorded where who calls is known.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import type { Problem } from "@svc/domain/problems/Problem"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/Note"
import { Strangers } from "@svc/cluster/audit/Strangers"
import { Effect, type Exit, type Redacted } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { ExchangeState } from "../Exchange.ts"
import { actOf, type Called, outcomeOf, planOf, sourceOf, withMade } from "./Acts.ts"

type Params = Readonly<Record<string, string | undefined>>
type Response = HttpServerResponse.HttpServerResponse

/** Their handlers put the act on record in the statement that reads the secret. */
const recordThemselves = new Set(["vault.value"])

/** What is refused so is no judgement of who calls. */
const passing = new Set(["rate_limited", "unavailable", "not_found", "audit_unavailable"])

export const make = Effect.gen(function* () {
  const audit = yield* Audit
  const strangers = yield* Strangers

  /** The handler of an admitted call, on record. */
  const recorded = <E, R>(
    handler: Effect.Effect<Response, E, R>,
    call: Called,
    caller: CallerInfo,
    identity: IdentityRef | null | undefined,
    params: Params,
    exchange: ExchangeState,
  ) => {
    const plan = planOf(call)
    if (plan.class === "read") {
      audit.used({
        org: caller.org.id,
        kind: caller.kind,
        id: caller.credentialId,
        action: plan.action,
        tool: exchange.source.tool ?? "",
        handle: identity?.handle ?? "",
      })
      return handler
    }
    const act = actOf(plan, caller, identity, params, exchange)
    exchange.act = act
    const settled = (exit: Exit.Exit<Response, E>) => {
      const outcome = outcomeOf(exit)
      // That it was allowed stands there already.
      if (plan.class === "secret" && outcome.outcome === "allowed") return Effect.void
      return audit.record(withMade(plan, { ...act, ...outcome }, exit))
    }
    const watched = Effect.onExit(handler, settled)
    return plan.class === "secret" && !recordThemselves.has(plan.action)
      ? Effect.andThen(audit.secret(act), watched)
      : watched
  }

  return {
    recorded,
    /** A call was refused whose caller is known. */
    refused: (call: Called, caller: CallerInfo, params: Params, exchange: ExchangeState, problem: Problem) => {
      const plan = planOf(call)
      if (passing.has(problem.code) && plan.class === "read") return Effect.void
      if (problem.code === "rate_limited" || problem.code === "unavailable") return Effect.void
      const act: Act = actOf(plan, caller, undefined, params, exchange)
      return audit.record({ ...act, outcome: "refused", code: problem.code })
    },
    /** A credential was refused: whose it was is recorded, if it ever was somebody's. */
    turnedAway: (call: Called, credential: Redacted.Redacted<string>, exchange: ExchangeState, problem: Problem) =>
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
