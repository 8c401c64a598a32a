/**
 * Shared by the handlers of tokens, signatures and sign-ins: their audit record, and whether the lists of allowed audiences and
 * sites apply to a caller.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { allows } from "@svc/domain/account/Scope"
import type { AuditNote } from "@svc/cluster/actor/Write"
import { Effect } from "effect"
import type { Noting } from "../audit/AuditNotes.ts"
import { RequestContext } from "../RequestContext.ts"

/** Sets the target of the request's audit record: the token, signature or sign-in. */
export const recordedAs = (type: string, id: string, name: string) =>
  Effect.map(RequestContext, (exchange) => {
    const { act } = exchange
    if (act !== undefined) exchange.act = () => ({ ...act(), target: { type, id, name } })
  })

/**
 * Stores the audit record in the statement that permits the proof, so that no proof is issued without a record. A request that
 * is repeated after a crash gets another proof, so its record is not that of the first one.
 */
export const onRecord = <A, E, R>(noting: Noting, issue: (note: AuditNote) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(RequestContext, (exchange) => {
    const { act } = exchange
    if (act === undefined) return Effect.die("a proof is not handed out without an audit record")
    exchange.act = () => ({ ...act(), command: undefined })
    return noting((note) =>
      note === undefined ? Effect.die("a proof is not handed out without an audit record") : issue(note),
    )
  })

/** Returns whether the caller may change the lists of audiences and sites, and so is not bound by them. */
export const mayChangeLists = ({ kind, scopes }: CallerInfo): boolean =>
  kind === "session" || (kind === "admin_key" && allows(scopes, "proof:admin"))
