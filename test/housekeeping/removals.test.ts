import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { sweep } from "@svc/cluster/housekeeping/Housekeeping"
import { Identities } from "@svc/cluster/actor/Identities"
import { Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"

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
      yield* sweep
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
      yield* sweep
      const remaining = yield* sql`select identity_id is null as unclaimed from message_content order by created_at`
      expect(remaining).toEqual([{ unclaimed: false }, { unclaimed: true }])
    }),
  )
})
