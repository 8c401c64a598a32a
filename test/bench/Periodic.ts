/**
 * The statements that run without a caller: scans for due work, housekeeping, sums, seals. A service is started over a store with
 * millions of rows and left alone. Each of its statements has a budget of buffers (8 kB pages) per run, which does not depend on the
 * size of its table.
 */
import { inStore } from "../faults/Store.ts"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment } from "../harness/Deployment.ts"
import { round, type Row } from "../harness/Report.ts"
import { copyIdentities, each, handleOf } from "./Crowd.ts"
import * as Statements from "./Statements.ts"

/** Buffers per run, without those of planning, which reads the catalog once per connection. */
const budget = 500
/** Statements that read more, by their beginnings. None of them depends on the size of its table. */
const exempt: ReadonlyArray<readonly [beginning: string, why: string]> = [
  ["select r.org_id from (select distinct org_id from audit", "after a start, the audit records of a day"],
]
/** How long the service runs alone, in seconds: some runs of everything but the sweep, which runs at the start. */
const alone = 90
/** Rows of one Identity that are due and cannot leave, as when its Webhook has been away for a day. */
const stuck = 100_000

/** Rows besides those of the crowd; `i` is an Identity of the crowd. Nothing in them is due, except what is stuck. */
const further = [
  `insert into actor (kind, id, epoch) select 'Identity', i.canonical, 1 from identity i on conflict do nothing`,
  `insert into actor_command (id, message, done_at) select uuidv7(), 'card', now() from identity i`,
  `insert into audit (org_id, id, at, class, action, actor_kind, outcome, via)
   select o.id, uuidv7(), now() - interval '1 second' * n, 'identity', 'card.update', 'admin_key', 'success', 'api'
   from bench_other o, generate_series(1, ${stuck} * 5) n`,
  `insert into audit_seal (org_id, seq, record_id, record_at, previous, hash)
   select a.org_id, row_number() over (order by a.at), a.id, a.at, '', '' from audit a join bench_other o on o.id = a.org_id`,
  `insert into connector_heard (identity_id, platform, key, heard_at)
   select i.id, 'bluesky', decode(md5(n::text), 'hex'), now() from identity i, generate_series(1, ${each}) n`,
  `insert into greylist (key, first_seen_at, seen_at)
   select decode(md5(n::text), 'hex'), now(), now() from generate_series(1, ${stuck}) n`,
  `insert into idempotency_record (credential_id, operation, key, fingerprint, command_id, started_at)
   select i.id, 'card', 'one', '', uuidv7(), now() from identity i`,
  `insert into outgoing (message_id, identity_id, status, rows_left, created_at)
   select m.id, m.identity_id, 'done', 0, now() from message m where m.uid = 1`,
  `insert into outbox (id, message_id, identity_id, domain, next_attempt_at, created_at)
   select uuidv7(), m.id, m.identity_id, 'example.org', now() + interval '1 hour', now() from message m where m.uid = 2`,
  `insert into removed_message (id, identity_id, uid, removed_at)
   select uuidv7(), i.id, n, now() from identity i, generate_series(1, ${each}) n`,
  `insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
   select uuidv7(), i.org_id, decode(md5(i.canonical), 'hex'), now(), now(), now() + interval '30 days' from identity i`,
  `insert into thread_reference (identity_id, reference, thread_id, noted_at)
   select m.identity_id, m.message_id, m.thread_id, now() from message m`,
  `insert into usage_hour (org_id, identity_id, hour, kind, count, failed, bytes_in, bytes_out)
   select i.org_id, i.id, date_trunc('hour', now()) - n * interval '1 hour', 'mail_received', 1, 0, 0, 0
   from identity i, generate_series(1, ${each}) n`,
  // The Webhook of each Identity waits for its next attempt; one Identity has a queue that cannot leave.
  `update webhook set status = 'active'`,
  `update delivery set status = 'retrying', next_attempt_at = now() + interval '1 hour'
   where id in (select distinct on (webhook_id) id from delivery order by webhook_id, id)`,
  `insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
   select uuidv7(), w.id, w.identity_id, e.id, e.type, 'queued', now() - interval '1 hour', now()
   from webhook w join identity i on i.id = w.identity_id and i.canonical = '${handleOf(7)}', lateral (
     select id, type from event where identity_id = i.id limit 1) e, generate_series(1, ${stuck})`,
]

interface Statement {
  readonly query: string
  readonly calls: number
  /** The mean of a run, as are the members below. */
  readonly buffers: number
  readonly rows: number
  readonly millis: number
}

/** Fills the store and returns how many rows its largest tables have. */
const fill = async (deployment: Deployment, handle: string, identities: number) => {
  await copyIdentities(deployment, handle, identities)
  await inStore(deployment, "create table bench_other as select uuidv7() as id")
  for (const statement of further) {
    await inStore(deployment, `do $$ begin set local session_replication_role = replica; ${statement}; end $$`)
  }
  await inStore(deployment, "vacuum (analyze)")
  return inStore<{ name: string; rows: number }>(
    deployment,
    `select relname as name, reltuples::float8 as rows from pg_class
     where relkind = 'r' and relnamespace = 'public'::regnamespace order by reltuples desc limit 8`,
  )
}

export const periodic = (identities: number) => async (): Promise<Row> => {
  const deployment = await deploy({ postgres: { ...Statements.settings, "pg_stat_statements.track_planning": "off" } })
  try {
    await Statements.prepare(deployment)
    const first = await deployment.start()
    const { session: key } = await signUp(first.base)
    const { handle } = await makeIdentity(first.base, key)
    first.signal("SIGTERM")
    await first.exited
    const tables = await fill(deployment, handle, identities)
    await inStore(deployment, "alter system set pg_stat_statements.track = 'top'")
    await inStore(deployment, "select pg_reload_conf()")
    await inStore(deployment, "select pg_stat_statements_reset()")
    const service = await deployment.start()
    await new Promise((resolve) => setTimeout(resolve, alone * 1000))
    service.signal("SIGTERM")
    await service.exited
    const statements = await inStore<Statement>(
      deployment,
      `select query, calls::int, (shared_blks_hit + shared_blks_read + local_blks_hit + temp_blks_read)::float8 / calls as buffers,
              (rows::float8 / calls) as rows, (total_exec_time / calls)::float8 as millis
       from pg_stat_statements where query !~ 'pg_stat_statements|pg_reload_conf' order by 3 desc`,
    )
    const shown = ({ query, calls, buffers, rows, millis }: Statement) =>
      [
        `${Math.round(buffers)} buffers`.padStart(16),
        `${round(millis, 2)} ms`.padStart(11),
        `${round(rows, 1)} rows`.padStart(12),
        `${calls} ×`.padStart(8),
        ` ${query.replaceAll(/\s+/g, " ").trim().slice(0, 140)}`,
      ].join(" ")
    const isExempt = (query: string) => exempt.some(([beginning]) => query.trimStart().startsWith(beginning))
    const over = statements.filter(({ query, buffers }) => buffers > budget && !isExempt(query))
    return {
      id: "periodic",
      ok: over.length === 0,
      what: `statements without a caller at ${tables.map(({ name, rows }) => `${name} ${rows.toLocaleString("en")}`).join(", ")}`,
      goals: [{ what: `statements above ${budget} buffers`, value: over.length, atMost: 0 }],
      figures: { statements: statements.length },
      details: statements.slice(0, Math.max(15, over.length)).map(shown),
    }
  } finally {
    await deployment.stop()
  }
}
