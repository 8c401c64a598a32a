/**
 * The audit record of the current request, for a change whose statement also stores the record, so that the change and its
 * record are one commit. A record that no statement takes is stored by `AuditRecorder` before the response.
 */
import type { AuditNote } from "@svc/cluster/actor/Write"
import { Audit } from "@svc/cluster/audit/Audit"
import { toNote } from "@svc/cluster/audit/AuditWrite"
import { Effect } from "effect"
import { RequestContext } from "../RequestContext.ts"

/**
 * Runs a change with the record of the request, or without one if the record is stored before. `made` is the id of the resource
 * that the change creates.
 */
export type Noting = <A, E, R>(
  change: (note: AuditNote | undefined) => Effect.Effect<A, E, R>,
  made?: string,
) => Effect.Effect<A, E, R>

export const make = Effect.map(
  Effect.service(Audit),
  (audit): Noting =>
    (change, made) =>
      Effect.flatMap(RequestContext, (exchange) =>
        exchange.act === undefined
          ? change(undefined)
          : Effect.flatMap(audit.note({ command: exchange.commandId, ...exchange.act(made) }), (write) => {
              const note = toNote(write)
              return Effect.tap(change(note), () =>
                Effect.sync(() => {
                  if (note.taken) exchange.recorded = write
                }),
              )
            }),
      ),
)
