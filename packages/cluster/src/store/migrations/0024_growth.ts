/** What lists, housekeeping and removals find their rows by, however many there are. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Lists.
  `create index event_of_type on event (org_id, type, seq desc)`,
  `create index api_key_in_use on api_key (org_id, id desc) where revoked_at is null`,
  `create index webhook_in_order on webhook (identity_id, id)`,

  // Housekeeping: each walks what it may remove, and nothing else.
  `create index delivery_done on delivery (created_at) where status in ('delivered', 'failed')`,
  `create index show_once_lapsing on show_once (expires_at) where expires_at is not null`,
  `create index signing_secret_retiring on signing_secret (retires_at) where retires_at is not null`,
  `create index export_lapsing on export (expires_at)`,
  `create index page_view_by_day on page_view (day)`,
  `create index tunnel_transfer_by_day on tunnel_transfer (day)`,
  `create index system_mail_by_age on system_mail (received_at)`,
  `create index message_content_by_age on message_content (created_at)`,
  `create index device_uncollected on device_authorization (expires_at) where sealed_key is not null`,

  // A Webhook goes at once, its deliveries after it in batches: they are looked at through their Webhook only.
  `alter table delivery drop constraint delivery_webhook_id_fkey`,
  `create table removed_webhook (
    id uuid primary key,
    removed_at timestamptz not null
  )`,
]

export const growth = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
