import { makeUuidV7 } from "@svc/domain/Ids"
import { system } from "@svc/domain/account/Initiator"
import { provision } from "@svc/cluster/credentials/IdentityKeys"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Reads } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeOrg } from "../harness/Actors.ts"

layer(actors())("the key of a new Identity", (it) => {
  // PostgreSQL may keep a plan that was made when there were few keys, and the index of active keys covers all Orgs.
  it.effect("is found among the Identity's own keys with any query plan", () =>
    Effect.gen(function* () {
      const [sql, sealing] = [yield* Reads, yield* Sealing]
      const [org, id] = [yield* makeOrg, yield* makeUuidV7]
      const identity = { id, handle: "ada", orgId: org, dataKey: (yield* sealing.makeDataKey(org)).dataKey }
      const { rows } = yield* provision(sealing)({
        sql,
        identity,
        at: new Date(0),
        by: system,
        gate: sql`unprovisioned`,
      })
      const plan = yield* sql<{ "QUERY PLAN": string }>`
        explain with unprovisioned as (
          select 1 as n, ${id}::uuid as identity_id, ${org}::uuid as org_id, 'ada' as handle, now() as at
        ), ${rows} select from minted`
      const lines = plan.map((row) => row["QUERY PLAN"]).join("\n")
      expect(lines).toContain("api_key_identity_id_idx")
      expect(lines).not.toContain("api_key_in_use")
    }),
  )
})
