/** Connectors of an Identity. Their messages and work belong to a separate actor (`ConnectorActor`, `ConnectorWork`). */
import { Effect } from "effect"
import { type Capability, cascades, credential, exportedRows, noHandlers, workState } from "../Capability.ts"
import { ConnectorQueries } from "./ConnectorQueries.ts"

export const connector = {
  name: "connector",
  handlers: noHandlers,
  work: { identity: [], org: [] },
  queries: [ConnectorQueries.layer],
  exports: [
    exportedRows(
      "connectors.jsonl",
      Effect.fnUntraced(function* ({ id }) {
        return (yield* (yield* ConnectorQueries).list(id)).connectors
      }),
    ),
  ],
  tables: {
    connector_heard: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from connector_heard where ctid in (
            select ctid from connector_heard where identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: workState,
    },
    connector_sent: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from connector_sent where command_id in (
            select command_id from connector_sent where identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: workState,
    },
    connector: cascades("connectors.jsonl"),
    connector_authorization: cascades(workState),
    connector_kept: cascades(workState),
    connector_pause: cascades(workState),
    connector_registration: cascades(credential),
    connector_revocation: cascades(workState),
  },
} satisfies Capability
