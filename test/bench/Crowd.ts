/**
 * Creates many Identities with messages, Events and deliveries directly in the store, as copies of an Identity that the
 * service created.
 */
import { inStore } from "../faults/Store.ts"
import { toPublic } from "@svc/domain/Ids"
import type { Deployment } from "../harness/Deployment.ts"

/** Number of messages, of Events and of deliveries per Identity. */
export const each = 10

/** Identities copied by one statement. */
const batch = 2_000

/**
 * Tables with one row per Identity (`folder`: a few), the column that selects them, and the columns that differ in a
 * copy.
 */
const copied = [
  ["handle", "canonical", "'canonical', b.canonical, 'handle', b.canonical"],
  ["identity", "id", "'id', b.id, 'canonical', b.canonical, 'handle', b.canonical"],
  ["mailbox", "identity_id", `'identity_id', b.id, 'uid_next', ${each + 1}, 'modseq', ${each + 1}`],
  ["card", "identity_id", "'identity_id', b.id"],
  [
    "folder",
    "identity_id",
    `'id', uuidv7(), 'identity_id', b.id, 'uid_next', case when t.use = 'inbox' then ${each + 1} else 1 end`,
  ],
] as const

/** Returns the Handle of the n-th copy. */
export const handleOf = (n: number) => `crowd${n}`

const copies = ([table, key, changed]: (typeof copied)[number]) => `
  insert into ${table} select r.* from bench_batch b cross join bench_template o
  join ${table} t on t.${key} = o.${key === "canonical" ? key : "id"}
  cross join lateral jsonb_populate_record(t, jsonb_build_object(${changed})) r`

/**
 * Complete data of the Events, as the service writes it. An Event that matches no schema would be returned unchanged
 * and logged, which would distort the measurement of lists.
 */
const received = JSON.stringify({
  message_id: toPublic("msg_", "01900000-0000-7000-8000-000000000000"),
  subject: "Letter",
  snippet: "A letter.",
  size: 500,
  from: { address: "bench@example.org", name: "Bench" },
  to: [{ address: "bench@mail.localhost", name: null }],
  tag: null,
  origin: { verdict: "unverified", spf: "none", dkim: "none", dmarc: "none", domain: null },
  received_at: "2026-11-22T00:00:00.000Z",
})
const refused = JSON.stringify({ reason: "full", from: "bench@example.org", count: 1 })

/**
 * Number of Identities with an Event of a type that no others have: a full page, regardless of the number of
 * Identities.
 */
const seldom = 20

const letters = [
  `insert into message (id, identity_id, uid, direction, thread_id, subject_key, tag, message_id, envelope_from,
                        recipient, sha256, size, summary, received_at, modseq)
   select uuidv7(), b.id, u, 'inbound', uuidv7(), null, case when u = 1 then 'seldom' end, '<' || b.n || '.' || u || '@bench.example>',
          'bench@example.org', b.canonical || '@mail.localhost', '\\x00', 500,
          jsonb_build_object('from', jsonb_build_object('address', 'bench@example.org', 'name', 'Bench'),
            'to', jsonb_build_array(jsonb_build_object('address', b.canonical || '@mail.localhost', 'name', null)), 'cc', '[]'::jsonb,
            'bcc', '[]'::jsonb, 'reply_to', '[]'::jsonb, 'subject', 'Letter ' || u, 'snippet', 'A letter.',
            'in_reply_to', null, 'references', '[]'::jsonb, 'attachments', '[]'::jsonb,
            'origin', jsonb_build_object('verdict', 'unverified', 'spf', 'none', 'dkim', 'none', 'dmarc', 'none', 'domain', null)),
          now() - interval '1 day', u
   from bench_batch b, generate_series(1, ${each}) u`,
  `insert into thread (identity_id, id, subject_key, messages, unread, last_uid)
   select m.identity_id, m.thread_id, null, 1, 1, m.uid from message m join bench_batch b on b.id = m.identity_id`,
  `insert into message_content (message_id, identity_id, raw, text, headers, search_text, created_at)
   select m.id, m.identity_id, convert_to('A letter.', 'UTF8'), 'A letter.', '[]',
          concat_ws(chr(30), 'bench bench@example.org', m.recipient, 'letter', '', 'a letter'), now()
   from message m join bench_batch b on b.id = m.identity_id`,
  `insert into placed (folder_id, uid, identity_id, message_id, draft, modseq)
   select f.id, m.uid, m.identity_id, m.id, false, m.modseq
   from message m join bench_batch b on b.id = m.identity_id join folder f on f.identity_id = b.id and f.use = 'inbox'`,
  `insert into event (id, org_id, identity_id, handle, type, data, created_at, caused_by)
   select uuidv7(), o.org_id, b.id, b.canonical, told.type, told.data, now() - interval '1 day', '{}'
   from bench_batch b, bench_template o, generate_series(1, ${each}) u, lateral (
     select * from (values
       ('tunnel.connected', '{}'::jsonb, u = 1 and b.n < ${seldom}),
       ('email.refused', '${refused}'::jsonb, u = 1 and b.n >= ${seldom}),
       ('email.received', '${received}'::jsonb, u > 1)) of_type (type, data, holds) where holds) told
   order by b.n, u`,
  `insert into vault_secret (id, org_id, identity_id, name, description, version, size, created_at, updated_at)
   select uuidv7(), o.org_id, b.id, 'crowd.secret', null, 1, 1, now(), now() from bench_batch b, bench_template o`,
  // Most deliveries have ended; each Identity has a Webhook.
  `insert into webhook (id, identity_id, url, event_types, description, status, created_at, version)
   select uuidv7(), b.id, 'https://receiver.example/', '{card.updated}', null, 'disabled', now(), 1 from bench_batch b`,
  `insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, attempts, next_attempt_at, created_at)
   select uuidv7(), w.id, b.id, e.id, e.type, 'delivered', '[]', null, now() - interval '1 day'
   from bench_batch b join webhook w on w.identity_id = b.id join event e on e.identity_id = b.id`,
]

/** Copies the Identity `handle` within its Org `count` times. */
export const copyIdentities = async (deployment: Deployment, handle: string, count: number): Promise<void> => {
  const run = (statement: string) => inStore(deployment, statement)
  await run(`create table bench_template as select id, canonical, org_id from identity where canonical = '${handle}'`)
  for (let from = 0; from < count; from += batch) {
    await run("drop table if exists bench_batch")
    await run(
      `create table bench_batch as
       select n, uuidv7() as id, 'crowd' || n as canonical from generate_series(${from}, ${Math.min(count, from + batch) - 1}) n`,
    )
    await run("analyze bench_batch")
    // Triggers are disabled, since the copied rows already satisfy their checks.
    const statements = ["set local session_replication_role = replica", ...copied.map(copies), ...letters]
    await run(`do $$ begin ${statements.join(";\n")}; end $$`)
  }
  await run(`update org set identities_created = ${count}`)
  await run("vacuum (analyze)")
}
