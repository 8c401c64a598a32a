/** The account: its sign-in, API keys, budgets, exports and deletion. */
import { Effect } from "effect"
import { type Capability, cascades, credential, noHandlers, workState } from "../Capability.ts"
import * as Cursors from "../sealing/Cursors.ts"
import * as AccountDeletion from "./AccountDeletion.ts"
import { OverviewQueries } from "./OverviewQueries.ts"
import { ApiKeys } from "./ApiKeys.ts"
import * as ExportSource from "./exports/ExportSource.ts"

export const account = {
  name: "account",
  handlers: noHandlers,
  work: { identity: [], org: [ExportSource.source, AccountDeletion.source] },
  queries: [ApiKeys.layer, OverviewQueries.layer],
  exports: [
    {
      members: ["api_keys.jsonl"],
      once: Effect.fnUntraced(function* ({ org, canonical }, pieces) {
        if (canonical !== null) return
        const keys = yield* ApiKeys
        yield* pieces.lines("api_keys.jsonl", yield* Cursors.all((request) => keys.list(org, request)))
      }),
    },
  ],
  tables: {
    export_piece: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (
            delete from export_piece where (export_id, member, number) in (
              select p.export_id, p.member, p.number from export_piece p join export e on e.id = p.export_id
              where e.identity_id = ${id} limit ${limit})
            returning 1)
          select count(*)::int as n from gone`,
      },
      exported: { not: "the exports themselves" },
    },
    api_key: cascades("api_keys.jsonl"),
    call_window: cascades(workState),
    device_authorization: cascades(credential),
    export: cascades({ not: "the exports themselves" }),
    magic_link: cascades(credential),
    org: {
      erased: { by: "account/AccountDeletion.ts", statement: "delete from org" },
      exported: { not: "the account, in GET /api/account" },
    },
    session: cascades(credential),
    terms_acceptance: cascades({ not: "in GET /api/account" }),
  },
} satisfies Capability
