/** Registering, changing, testing and removing Webhooks, queueing replays: the writes an Identity's actor makes for them. */
import type { Replay as ReplayMessage, RegisterWebhook } from "@svc/domain/identity/IdentityProtocol"
import { makeUuidV7 } from "@svc/domain/Ids"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { Conflict, NotFound, PreconditionFailed, WebhookMismatch } from "@svc/domain/problems/Problem"
import type { WebhookPatch } from "@svc/domain/webhooks/Webhook"
import { Effect, Redacted } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { committed, type Owned, type Written } from "../identity/Ownership.ts"
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
  const minted = current === undefined ? yield* mintSecret(identity, yield* makeUuidV7) : undefined
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

/** Changes what is named. Disabling ends what waits for the Webhook; what is under way ends with its attempt. */
export const patch = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  change: { readonly webhook_id: string; readonly patch: WebhookPatch; readonly if_version: IfVersion },
  at: Date,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError | NotFound | PreconditionFailed> {
  const [before] = yield* sql<Changeable>`
    select url, event_types, description, status, version from webhook
    where id = ${change.webhook_id} and identity_id = ${identity.id}`
  if (before === undefined) return yield* new NotFound({ detail: "There is no such Webhook." })
  if (!matches(change.if_version, before.version)) {
    return yield* new PreconditionFailed({ detail: `The Webhook is at version ${before.version}.` })
  }
  const after = { ...before, ...change.patch }
  const disabled = JSON.stringify({
    started_at: at.toISOString(),
    duration_ms: 0,
    status_code: null,
    error: "webhook_disabled",
  })
  const [row] = yield* sql<{ owned: boolean }>`
    with ${fence}, changed as (
      update webhook
      set url = ${after.url}, event_types = ${[...new Set(after.event_types)]}::text[], description = ${after.description ?? null}::text,
          status = ${after.status}, version = version + 1
      where id = ${change.webhook_id} and version = ${before.version} and exists (select from fence)
      returning id, status
    ),
    ended as (
      update delivery d
      set status = 'failed', next_attempt_at = null,
          attempts = attempts || (jsonb_build_object('number', jsonb_array_length(attempts) + 1) || ${disabled}::jsonb)
      from changed
      where d.webhook_id = changed.id and changed.status = 'disabled'
        and d.status in ('queued', 'retrying') and d.attempt_started_at is null
    )
    select exists (select from changed) as owned`
  return committed(row, undefined)
})

interface Changeable {
  readonly url: string
  readonly event_types: ReadonlyArray<string>
  readonly description: string | null
  readonly status: "active" | "disabled"
  readonly version: number
}

/** The Webhook and its deliveries are gone; attempts under way are recorded nowhere. */
export const remove = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  webhookId: string,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError | NotFound> {
  const [row] = yield* sql<{ owned: boolean; gone: boolean }>`
    with ${fence}, gone as (
      delete from webhook where id = ${webhookId} and identity_id = ${identity.id} and exists (select from fence) returning 1
    )
    select exists (select from fence) as owned, exists (select from gone) as gone`
  if (row?.owned === true && !row.gone) return yield* new NotFound({ detail: "There is no such Webhook." })
  return committed(row, undefined)
})

/** A `webhook.test` Event for one Webhook, which no list shows. */
export const test = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  message: { readonly webhook_id: string; readonly delivery_id: string; readonly event_id: string },
  at: Date,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError | NotFound | Conflict> {
  const [webhook] = yield* sql<{ status: string }>`
    select status from webhook where id = ${message.webhook_id} and identity_id = ${identity.id}`
  if (webhook === undefined) return yield* new NotFound({ detail: "There is no such Webhook." })
  if (webhook.status !== "active") return yield* new Conflict({ detail: "The Webhook is disabled." })
  const [row] = yield* sql<{ owned: boolean }>`
    with ${fence}, told as (
      insert into event (id, org_id, identity_id, handle, type, data, created_at)
      select ${message.event_id}::uuid, ${identity.orgId}::uuid, ${identity.id}::uuid, ${identity.handle}::text,
             'webhook.test', '{}'::jsonb, ${at}::timestamptz
      from fence on conflict (id) do nothing
    ), queued as (
      insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
      select ${message.delivery_id}::uuid, ${message.webhook_id}::uuid, ${identity.id}::uuid, ${message.event_id}::uuid,
             'webhook.test', 'queued', ${at}::timestamptz, ${at}::timestamptz
      from fence on conflict (id) do nothing
    )
    select exists (select from fence) as owned`
  return committed(row, undefined)
})

/** Both secrets sign for this long after a rotation (decisions.md "Resources"). */
const overlapMillis = 24 * 60 * 60_000

/** A new signing secret; the former one signs on for a day. The same command again answers the same secret. */
export const rotateSecret = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  fence: Statement.Fragment,
  secretId: string,
  at: Date,
): Effect.fn.Return<
  Written<{ readonly signing_secret: string; readonly previous_valid_until: Date | null }> | undefined,
  SqlError.SqlError,
  Sealing
> {
  const valid = yield* signingSecrets(sql, identity, at)
  const made = valid.find(({ id }) => id === secretId)
  const retiring = valid.filter(({ id, retiresAt }) => id !== secretId && retiresAt === null)
  if (made !== undefined) {
    const until = valid.find(({ id }) => id !== secretId)?.retiresAt ?? null
    return { value: { signing_secret: Redacted.value(made.secret), previous_valid_until: until } }
  }
  const minted = yield* mintSecret(identity, secretId)
  const until = new Date(at.getTime() + overlapMillis)
  const [row] = yield* sql<{ owned: boolean }>`
    with ${fence},
    retiring as (
      update signing_secret set retires_at = ${until}
      where identity_id = ${identity.id} and retires_at is null and exists (select from fence)
    ),
    made as (
      insert into signing_secret (identity_id, id, sealed, created_at)
      select ${identity.id}::uuid, ${minted.id}::uuid, ${minted.sealed}::bytea, ${at}::timestamptz from fence
    )
    select exists (select from fence) as owned`
  return committed(row, {
    signing_secret: minted.secret,
    previous_valid_until: retiring.length === 0 ? null : until,
  })
})
