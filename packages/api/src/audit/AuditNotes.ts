/**
 * The audit entry of the current request, for handlers whose statement writes it, so that the change and its entry are one
 * commit.
 */
import { noteHeader } from "@svc/domain/account/Initiator"
import { Audit } from "@svc/cluster/audit/Audit"
import { textOf } from "@svc/cluster/audit/AuditWrite"
import { Effect } from "effect"
import { RequestContext } from "../RequestContext.ts"

interface Noting {
  /** The entry in the form that statements and messages take. */
  readonly text: string
  /** Marks the entry as written. */
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

/** Adds the entry to the options of a message. */
export const carrying = <O extends { readonly headers: Readonly<Record<string, string>> }>(
  options: O,
  { text }: Noting,
) => ({
  ...options,
  headers: { ...options.headers, [noteHeader]: text },
})
