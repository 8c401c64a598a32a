/** The commands for Webhooks of an Identity's actor: register, change, rotate the secret, test, replay, recover, remove. */
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { Conflict, NotFound, PreconditionFailed, WebhookMismatch } from "@svc/domain/problems/Problem"
import { testEventType } from "@svc/domain/events/Event"
import { adopts, type WebhookPatch, webhooksAtMost } from "@svc/domain/webhooks/Webhook"
import { Effect } from "effect"
import { type ActorHandlers, once } from "../actor/ActorHandlers.ts"
import { commit, FenceLost, type Write } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { raiseTest } from "../events/Raise.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { creatorColumns } from "../credentials/Creator.ts"
import { joinWebhookCreator, stateOf, type WebhookState } from "./WebhookState.ts"
import * as SigningSecrets from "./SigningSecrets.ts"

interface ForWebhook {
  readonly org_id: string
  readonly webhook_id: string
}

export const handlers = ({ onReady, onPresent }: ActorHandlers, sealing: Sealing["Service"]) => ({
  RegisterWebhook: onReady((write: Write, webhook: NewWebhook) => register(write, webhook, sealing)),
  PatchWebhook: onReady(once("PatchWebhook", patch)),
  RemoveWebhook: onPresent(once("RemoveWebhook", remove)),
  TestWebhook: onReady(test),
  RotateSecret: onReady((write: Write, { secret_id }: { readonly org_id: string; readonly secret_id: string }) =>
    SigningSecrets.rotate(write, secret_id, sealing),
  ),
  Replay: onPresent(replay),
  Recover: onReady(recover),
})

interface NewWebhook extends ForWebhook {
  readonly url: string
  readonly event_types: ReadonlyArray<string>
  readonly description: string | null
}

/** Registers a Webhook. Returns the signing secret of the Identity, which is created with the first Webhook. */
const register = Effect.fnUntraced(function* (write: Write, webhook: NewWebhook, sealing: Sealing["Service"]) {
  const { sql, identity, at, by } = write
  const [others] = yield* sql<{ many: number }>`
    select count(*)::int as many from webhook where identity_id = ${identity.id} and id <> ${webhook.webhook_id}`
  if (others!.many >= webhooksAtMost) {
    return yield* new Conflict({ detail: `An Identity has at most ${webhooksAtMost} Webhooks. Remove one first.` })
  }
  const secret = yield* SigningSecrets.currentOrNew(write, sealing)
  const row = yield* commit<{ created_at: Date }>(
    write,
    sql`
    made as (
      insert into webhook (id, identity_id, url, event_types, description, created_at, creator_kind, creator_id)
      select ${webhook.webhook_id}::uuid, ${identity.id}::uuid, ${webhook.url}::text, ${[...webhook.event_types]}::text[],
             ${webhook.description}::text, ${at}::timestamptz, ${by.kind}::text, ${by.credentialId}::uuid
      from fence
      on conflict (id) do nothing
    ) ${secret.minted === undefined ? sql`` : sql`, ${secret.minted}`}
    ${auditWriteWith(sql, write.note, "fence")}`,
    {
      columns: sql`coalesce((select created_at from webhook where id = ${webhook.webhook_id}::uuid), ${at}::timestamptz) as created_at`,
    },
  )
  return { signing_secret: secret.text, created_at: row.created_at }
})

interface NewReplay extends ForWebhook {
  readonly delivery_id: string
  readonly event_id: string
}

/** Fails unless the Webhook exists and delivers. */
const assertActive = Effect.fnUntraced(function* ({ sql, identity, at }: Write, webhookId: string) {
  const [webhook] = yield* sql<WebhookState>`
    select status, event_types, ${creatorColumns(sql)} from webhook w ${joinWebhookCreator(sql, sql`${at}::timestamptz`)}
    where w.id = ${webhookId} and w.identity_id = ${identity.id}`
  if (webhook === undefined) return yield* new NotFound({ detail: "The Webhook does not exist." })
  const { status } = stateOf(webhook)
  if (status === "active") return
  const why = status === "disabled" ? "" : " because the credential that made it may not read its Events any more"
  return yield* new Conflict({ detail: `The Webhook is ${status}${why}. Set its status to active first.` })
})

/** Queues a new delivery of an Event to a Webhook of the same Identity, subscribed or not. */
const replay = Effect.fnUntraced(function* (write: Write, message: NewReplay) {
  const { sql, identity, at } = write
  const [found] = yield* sql<{ event_identity: string | null; webhook_identity: string | null }>`
    select e.identity_id as event_identity, w.identity_id as webhook_identity
    from event e left join webhook w on w.id = ${message.webhook_id} and exists (
      select from identity i where i.id = w.identity_id and i.org_id = ${identity.orgId})
    where e.id = ${message.event_id} and e.org_id = ${identity.orgId}`
  if (found === undefined) return yield* new NotFound({ detail: "The Event does not exist." })
  if (found.webhook_identity === null) return yield* new NotFound({ detail: "The Webhook does not exist." })
  if (found.event_identity !== found.webhook_identity) {
    return yield* new WebhookMismatch({ detail: "The Webhook and the Event belong to different Identities." })
  }
  yield* assertActive(write, message.webhook_id)
  yield* commit(
    write,
    sql`queued as (
      insert into delivery (id, webhook_id, identity_id, event_id, event_type, replay, status, next_attempt_at, created_at)
      select ${message.delivery_id}::uuid, ${message.webhook_id}::uuid, ${identity.id}::uuid, e.id, e.type, true, 'queued',
             ${at}::timestamptz, ${at}::timestamptz
      from event e, fence where e.id = ${message.event_id}::uuid
      on conflict (id) do nothing
      returning id
    ) ${auditWriteWith(sql, write.note, "fence")}`,
    { raises: true },
  )
})

/** The maximum number of deliveries that one call of {@link recover} queues; the caller repeats it for the rest. */
const recoveredAtOnce = 1000

/**
 * Queues a new delivery of every Event whose latest delivery to the Webhook failed since a time, oldest first. The new
 * delivery is the latest one from then on, so a repeated command queues nothing twice.
 */
const recover = Effect.fnUntraced(function* (write: Write, message: ForWebhook & { readonly since: Date }) {
  const { identity, sql, at } = write
  yield* assertActive(write, message.webhook_id)
  const row = yield* commit<{ queued: number }>(
    write,
    sql`latest as (
      select distinct on (event_id) event_id, event_type, status, created_at from delivery
      where webhook_id = ${message.webhook_id}::uuid and created_at >= ${message.since}::timestamptz
      order by event_id, id desc
    ),
    queued as (
      insert into delivery (id, webhook_id, identity_id, event_id, event_type, replay, status, next_attempt_at, created_at)
      select uuidv7(), ${message.webhook_id}::uuid, ${identity.id}::uuid, l.event_id, l.event_type, true, 'queued',
             ${at}::timestamptz, ${at}::timestamptz
      from (
        select event_id, event_type from latest where status = 'failed' and event_type <> ${testEventType}::text
        order by event_id limit ${recoveredAtOnce}
      ) l, fence
      returning id
    ) ${auditWriteWith(sql, write.note, "fence")}`,
    { columns: sql`(select count(*)::int from queued) as queued`, raises: true },
  )
  return { queued: row.queued }
})

/** Changes the given members. Disabling fails the pending deliveries; attempts in flight are the last ones. */
const patch = Effect.fnUntraced(function* (
  write: Write,
  change: ForWebhook & { readonly patch: WebhookPatch; readonly if_version: IfVersion },
) {
  const { sql, identity, at, by } = write
  const [before] = yield* sql<Changeable>`
    select url, event_types, description, status, version from webhook
    where id = ${change.webhook_id} and identity_id = ${identity.id}`
  if (before === undefined) {
    return yield* change.if_version === null
      ? new NotFound({ detail: "The Webhook does not exist." })
      : new PreconditionFailed({ detail: "The Webhook does not exist." })
  }
  if (!matches(change.if_version, before.version)) {
    return yield* new PreconditionFailed({ detail: `The Webhook is at version ${before.version}.` })
  }
  const after = { ...before, ...change.patch }
  const adopter = adopts(change.patch)
    ? sql`, creator_kind = ${by.kind}::text, creator_id = ${by.credentialId}::uuid`
    : sql``
  const disabled = JSON.stringify({
    started_at: at.toISOString(),
    duration_ms: 0,
    status_code: null,
    error: "webhook_disabled",
    response_body: null,
  })
  const written = yield* commit<{ changed: boolean }>(
    write,
    sql`
    changed as (
      update webhook
      set url = ${after.url}, event_types = ${[...new Set(after.event_types)]}::text[], description = ${after.description ?? null}::text,
          status = ${after.status}, version = version + 1${adopter}
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
    ) ${auditWriteWith(sql, write.note, "changed")}`,
    { columns: sql`exists (select from changed) as changed` },
  )
  // Only another owner of the actor can have changed the Webhook between the read and the write.
  if (!written.changed) return yield* new FenceLost()
})

interface Changeable {
  readonly url: string
  readonly event_types: ReadonlyArray<string>
  readonly description: string | null
  readonly status: "active" | "disabled"
  readonly version: number
}

/** Removes a Webhook. Housekeeping removes its deliveries. Attempts in flight are not recorded. */
const remove = Effect.fnUntraced(function* (
  write: Write,
  { webhook_id, if_version = null }: ForWebhook & { readonly if_version?: IfVersion },
) {
  const { sql, identity, at } = write
  if (if_version !== null) {
    const [before] = yield* sql<{ version: number }>`
      select version from webhook where id = ${webhook_id} and identity_id = ${identity.id}`
    if (before === undefined || !matches(if_version, before.version)) {
      return yield* new PreconditionFailed({ detail: "The Webhook is at another version." })
    }
  }
  const row = yield* commit<{ gone: boolean }>(
    write,
    sql`
    gone as (
      delete from webhook where id = ${webhook_id} and identity_id = ${identity.id} and exists (select from fence) returning id
    ),
    remains as (insert into removed_webhook (id, removed_at) select id, ${at}::timestamptz from gone on conflict do nothing)
    ${auditWriteWith(sql, write.note, "gone")}`,
    { columns: sql`exists (select from gone) as gone`, gate: "gone" },
  )
  if (!row.gone) return yield* new NotFound({ detail: "The Webhook does not exist." })
})

/** Raises a `webhook.test` Event for one Webhook, which no list shows. */
const test = Effect.fnUntraced(function* (write: Write, message: NewReplay) {
  yield* assertActive(write, message.webhook_id)
  yield* commit(
    write,
    write.sql`${raiseTest(write, "fence", {
      eventId: message.event_id,
      deliveryId: message.delivery_id,
      webhookId: message.webhook_id,
    })} ${auditWriteWith(write.sql, write.note, "fence")}`,
    { raises: true },
  )
})
