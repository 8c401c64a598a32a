/**
 * The note of the request at hand, for a write that puts it on record in its own statement: then the change and its record
 * are one commit, and nothing is left to do when the answer goes out.
 */
import { noteHeader } from "@svc/domain/account/Initiator"
import { Audit } from "@svc/cluster/audit/Audit"
import { textOf } from "@svc/cluster/audit/AuditWrite"
import { Effect } from "effect"
import { RequestContext } from "../RequestContext.ts"

export interface Noting {
  /** As statements and messages take it. */
  readonly text: string
  /** It is on record. */
  readonly kept: Effect.Effect<void>
}

export const make = Effect.map(Effect.service(Audit), (audit) =>
  Effect.gen(function* () {
    const exchange = yield* RequestContext
    if (exchange.act === undefined) return yield* Effect.die("a call that is not recorded has no note")
    const note = yield* audit.note({ ...exchange.act, command: exchange.commandId })
    const noting: Noting = {
      text: textOf([note]),
      kept: Effect.sync(() => {
        exchange.recorded = true
        audit.kept(note)
      }),
    }
    return noting
  }),
)

/** The options of a message, with the note. */
export const carrying = <O extends { readonly headers: Readonly<Record<string, string>> }>(
  options: O,
  { text }: Noting,
) => ({
  ...options,
  headers: { ...options.headers, [noteHeader]: text },
})
