/** Inserts accepted messages into the outbox as the actor's statement does. */
import { makeUuidV7 } from "@svc/domain/Ids"
import { Writes } from "@svc/cluster/store/Database"
import { Clock, Effect } from "effect"

export const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

/**
 * Inserts a message as the actor's statement leaves it after the commit: an outbox row for each domain. It uses one transaction, because a
 * running process leases every row that it can see.
 */
export const insertAccepted = (identityId: string, domains?: readonly [string, ...Array<string>]) =>
  Effect.flatMap(Writes, (sql) => sql.withTransaction(inserted(identityId, domains)))

const inserted = Effect.fnUntraced(function* (
  identityId: string,
  domains: readonly [string, ...Array<string>] = ["x.example"],
) {
  const sql = yield* Writes
  const at = yield* now
  const message = yield* makeUuidV7
  const summary = {
    from: { address: "ada@mail.localhost", name: null },
    to: [],
    cc: [],
    bcc: [],
    subject: "s",
    snippet: "",
  }
  yield* sql`
    insert into message (id, identity_id, uid, direction, thread_id, message_id, envelope_from, recipient, sha256, size, summary, received_at)
    values (${message}, ${identityId}, (select coalesce(max(uid), 0) + 1 from message where identity_id = ${identityId}),
            'outbound', ${message}, ${`<${message}@mail.localhost>`}, '', '', '', 3, ${JSON.stringify(summary)}::jsonb, ${at})`
  yield* sql`
    insert into message_content (message_id, raw, headers, search_text, created_at)
    values (${message}, ${Buffer.from(`Message-ID: <${message}@mail.localhost>\r\n\r\nraw\r\n`)}, '[]', '', ${at})`
  yield* sql`
    insert into outgoing (message_id, identity_id, status, rows_left, created_at) values (${message}, ${identityId}, 'queued', ${domains.length}, ${at})`
  const rows = yield* Effect.forEach(domains, (domain) =>
    Effect.gen(function* () {
      const outbox = yield* makeUuidV7
      yield* sql`
        insert into outbox (id, message_id, identity_id, domain, next_attempt_at, created_at)
        values (${outbox}, ${message}, ${identityId}, ${domain}, ${at}, ${at})`
      yield* sql`
        insert into outgoing_recipient (message_id, address, outbox_id, status, changed_at)
        values (${message}, ${`b@${domain}`}, ${outbox}, 'queued', ${at})`
      return outbox
    }),
  )
  return { message, outbox: rows[0]! }
})
