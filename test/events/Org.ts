/** A database with an Org and one Identity, and no running service that would process their Events. */
import * as Stores from "@svc/cluster/store/Database"
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import { databaseLayer } from "../harness/Database.ts"

export const org = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10"
export const identity = { id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a11", handle: "ada", orgId: org }
export const at = new Date("2026-11-20T12:00:00Z")

export class Org extends Context.Service<Org, PgClient.PgClient>()("test/events/Org") {
  static readonly layer = Layer.effect(
    Org,
    Effect.gen(function* () {
      const sql = yield* Stores.Writes
      yield* sql`
        insert into org (id, email, language, tos_version, tos_accepted_at, data_key, created_at)
        values (${org}, 'ada@example.org', 'en', '1', ${at}, '', ${at})`
      yield* sql`insert into handle (canonical, handle, org_id, registered_at) values ('ada', 'ada', ${org}, ${at})`
      yield* sql`
        insert into identity (id, canonical, handle, org_id, status, saga, created_at)
        values (${identity.id}, 'ada', 'ada', ${org}, 'ready', '{}', ${at})`
      return sql
    }),
  ).pipe(Layer.provide(databaseLayer), Layer.fresh)
}
