import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import * as Housekeeping from "@svc/cluster/housekeeping/Housekeeping"
import { Identities } from "@svc/cluster/actor/Identities"
import { Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { rows } from "../harness/Stores.ts"

layer(actors())("housekeeping", (it) => {
  it.effect("removes the deliveries of a removed Webhook, and expired records of commands and responses", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const org_id = yield* makeOrg
      const actor = (yield* Identities).of("keeper")
      yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle: "keeper" }))
      yield* waitUntil(
        sql`select 1 from identity where canonical = 'keeper' and status = 'ready'`,
        (rows) => rows.length === 1,
      )
      const webhooks = [yield* makeUuidV7, yield* makeUuidV7] as const
      for (const webhook_id of webhooks) {
        yield* ask(
          actor.RegisterWebhook({
            org_id,
            webhook_id,
            url: "http://127.0.0.1:9/",
            event_types: [],
            description: null,
          }),
        )
        yield* sql`
          insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
          select uuidv7(), w.id, w.identity_id, uuidv7(), 'email.sent', case when n % 2 = 0 then 'delivered' else 'queued' end,
                 case when n % 2 = 0 then null else now() + interval '1 hour' end, now()
          from webhook w, generate_series(1, 12000) n where w.id = ${webhook_id}`
      }
      yield* ask(actor.RemoveWebhook({ org_id, webhook_id: webhooks[0] }))
      yield* sql`
        insert into idempotency_record (credential_id, operation, key, fingerprint, command_id, started_at)
        select uuidv7(), 'POST /', n::text, '', uuidv7(), now() - make_interval(hours => n) from generate_series(1, 30) n`
      yield* sql`
        insert into actor_command (id, message, done_at) select uuidv7(), 'm', now() - make_interval(hours => n) from generate_series(1, 30) n`
      yield* Housekeeping.sweep
      const [remaining] = yield* sql`
        select (select count(*)::int from delivery where webhook_id = ${webhooks[0]}) as removed,
               (select count(*)::int from delivery where webhook_id = ${webhooks[1]}) as others,
               (select count(*)::int from removed_webhook) as notes,
               (select count(*)::int from idempotency_record) as answers, (select count(*)::int from actor_command where message = 'm') as commands`
      expect(remaining).toEqual({ removed: 0, others: 12_000, notes: 0, answers: 23, commands: 23 })
    }),
  )

  it.effect("removes bodies that no message has claimed within a day", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const org_id = yield* makeOrg
      const { id } = yield* makeIdentity(org_id, "claimed")
      const add = (age: string, identity: string | null) =>
        sql`insert into message_content (message_id, identity_id, raw, headers, search_text, created_at)
            values (uuidv7(), ${identity}, '', '[]', '', now() - ${age}::interval)`
      yield* add("2 days", null)
      yield* add("1 hour", null)
      yield* add("2 days", id)
      yield* Housekeeping.sweep
      const remaining = yield* sql`select identity_id is null as unclaimed from message_content order by created_at`
      expect(remaining).toEqual([{ unclaimed: false }, { unclaimed: true }])
    }),
  )

  it.effect("ends access in each sweep, and sweeps again after one that failed", () =>
    Effect.gen(function* () {
      const [sql, org, at] = [yield* Writes, yield* makeOrg, new Date(yield* Clock.currentTimeMillis)]
      const [expiring, uncollected, grant] = [yield* makeUuidV7, yield* makeUuidV7, yield* makeUuidV7]
      yield* sql`
        insert into api_key (id, org_id, name, token_prefix, token_hash, created_at, expires_at, end_told_at)
        values (${expiring}, ${org}, 'expiring', '', '1', ${at}, ${new Date(at.getTime() + 86_400_000)}, ${at}),
               (${uncollected}, ${org}, 'uncollected', '', '2', ${at}, null, null)`
      yield* sql`
        insert into device_authorization
          (id, device_hash, user_code, name, status, org_id, key_id, sealed_key, interval_seconds, created_at, expires_at)
        values (${uncollected}, '1', 'code', '', 'approved', ${org}, ${uncollected}, 'sealed', 5, ${at}, now())`
      yield* sql`
        insert into client_grant
          (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
        values (${grant}, ${org}, 'app', 'App', '', '', '', '{}', now(), now())`
      const ends = rows<{ type: string }>((s) => s`select type from event where org_id = ${org} order by type`)
      const lastRun = Effect.sync(() =>
        Metric.snapshotUnsafe(Context.empty())
          .filter(({ attributes }) => attributes?.["name"] === "Housekeeping")
          .map(({ state }) => (state as { readonly value: number }).value),
      )
      const before = yield* lastRun
      // The table of the last removal is missing, so the sweep fails at its end.
      yield* sql`alter table thread_reference rename to missing`
      yield* TestClock.adjust("1 hour")
      yield* Layer.build(Layer.fresh(Housekeeping.layer))
      const { value } = yield* waitUntil(ends, ({ length }) => length === 3, 0)
      expect(value.map(({ type }) => type)).toEqual(["api_key.expiring", "api_key.revoked", "grant.revoked"])
      expect(yield* lastRun).toEqual(before)
      yield* sql`alter table missing rename to thread_reference`
      yield* waitUntil(lastRun, ([seconds]) => seconds !== before[0], "10 minutes")
    }),
  )
})
