/** Registering Webhooks and queueing replays: the writes an Identity's actor makes for them. */
import type { Replay as ReplayMessage, RegisterWebhook } from "@svc/domain/identity/IdentityProtocol"
import { Conflict, NotFound, WebhookMismatch } from "@svc/domain/problems/Problem"
import { Effect, Redacted } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { Owned, Written } from "../identity/Ownership.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"
import { mintSecret, signingSecrets } from "./SigningSecrets.ts"

/** The Webhook, and the Identity's signing secret: minted with the first Webhook, shown with each (decisions.md "Resources"). */
export const register = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  webhook: (typeof RegisterWebhook)["payloadSchema"]["Type"],
  at: Date,
): Effect.fn.Return<
  Written<{ readonly signing_secret: string; readonly created_at: Date }> | undefined,
  SqlError.SqlError,
  Sealing
> {
  const [current] = yield* signingSecrets(sql, identity, at)
  const minted = current === undefined ? yield* mintSecret(identity) : undefined
  const secret =
    minted === undefined
      ? sql``
      : sql`, secret as (
          insert into signing_secret (identity_id, id, sealed, created_at)
          select ${identity.id}::uuid, ${minted.id}::uuid, ${minted.sealed}::bytea, ${at}::timestamptz from fence
        )`
  const [row] = yield* sql<{ owned: boolean; created_at: Date }>`
    with ${fence}, made as (
      insert into webhook (id, identity_id, url, event_types, description, created_at)
      select ${webhook.webhook_id}::uuid, ${identity.id}::uuid, ${webhook.url}::text, ${[...webhook.event_types]}::text[],
             ${webhook.description}::text, ${at}::timestamptz
      from fence
      on conflict (id) do nothing
    ) ${secret}
    select exists (select from fence) as owned,
           coalesce((select created_at from webhook where id = ${webhook.webhook_id}::uuid), ${at}::timestamptz) as created_at`
  return row?.owned === true
    ? {
        value: {
          signing_secret: minted?.secret ?? Redacted.value(current!.secret),
          created_at: row.created_at,
        },
      }
    : undefined
})

/** A fresh delivery of an Event to a Webhook of the same Identity, subscribed or not. */
export const replay = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  message: (typeof ReplayMessage)["payloadSchema"]["Type"],
  at: Date,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError | NotFound | Conflict | WebhookMismatch> {
  const [found] = yield* sql<{ event_identity: string | null; webhook_identity: string | null; status: string | null }>`
    select e.identity_id as event_identity, w.identity_id as webhook_identity, w.status
    from event e left join webhook w on w.id = ${message.webhook_id} and exists (
      select from identity i where i.id = w.identity_id and i.org_id = ${identity.orgId})
    where e.id = ${message.event_id} and e.org_id = ${identity.orgId}`
  if (found === undefined) return yield* new NotFound({ detail: "There is no such Event." })
  if (found.webhook_identity === null) return yield* new NotFound({ detail: "There is no such Webhook." })
  if (found.event_identity !== found.webhook_identity) {
    return yield* new WebhookMismatch({ detail: "The Webhook belongs to another Identity than the Event." })
  }
  if (found.status !== "active") return yield* new Conflict({ detail: "The Webhook is disabled." })
  const [row] = yield* sql<{ owned: boolean }>`
    with ${fence}, queued as (
      insert into delivery (id, webhook_id, identity_id, event_id, event_type, replay, status, next_attempt_at, created_at)
      select ${message.delivery_id}::uuid, ${message.webhook_id}::uuid, ${identity.id}::uuid, e.id, e.type, true, 'queued',
             ${at}::timestamptz, ${at}::timestamptz
      from event e, fence where e.id = ${message.event_id}::uuid
      on conflict (id) do nothing
    )
    select exists (select from fence) as owned`
  return row?.owned === true ? { value: undefined } : undefined
})
