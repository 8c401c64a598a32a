/**
 * Decides what a Webhook may deliver: no more than its creator may read at the time of the delivery
 * (credentials/Creator). A Webhook whose creator ended is stopped until another credential adopts it.
 */
import { expand, lacksToReceive } from "@svc/domain/events/Event"
import type { Webhook } from "@svc/domain/webhooks/Webhook"
import type { Statement } from "effect/sql"
import { endOf, joinCreator, type CreatorEnd, type CreatorRow, creatorScopes } from "../credentials/Creator.ts"
import type { Sql } from "../store/Database.ts"

export interface WebhookState extends CreatorRow {
  readonly status: "active" | "disabled"
  readonly event_types: ReadonlyArray<string>
}

/** Returns the join of the creator of `webhook w`. */
export const joinWebhookCreator = (sql: Sql, at: Statement.Fragment): Statement.Fragment =>
  joinCreator(sql, { kind: sql`w.creator_kind`, id: sql`w.creator_id`, identity: sql`w.identity_id` }, at)

const mayRead = (creator: CreatorRow, type: string) => lacksToReceive(creatorScopes(creator), [type]).length === 0

/** Returns why an Event of the type may not be delivered; undefined if it may. */
export const withheld = (creator: CreatorRow, type: string): CreatorEnd | undefined =>
  endOf(creator) ?? (mayRead(creator, type) ? undefined : "creator_narrowed")

/** Returns the status of a Webhook: `stopped` if its creator may read none of its Events. */
export const stateOf = (webhook: WebhookState): Pick<Webhook, "status" | "stopped_reason"> => {
  if (webhook.status === "disabled") return { status: "disabled", stopped_reason: null }
  const types = expand(webhook.event_types)
  const isBlind = types.length > 0 && !types.some((type) => mayRead(webhook, type))
  const end = endOf(webhook) ?? (isBlind ? "creator_narrowed" : null)
  return { status: end === null ? "active" : "stopped", stopped_reason: end }
}

/**
 * Returns the join of `failing.since` of `webhook w`: when the oldest of the last attempted deliveries was queued, if all of
 * them failed; null otherwise. Behind a long queue, the retries decide.
 */
export const joinFailing = (sql: Sql): Statement.Fragment => sql`
      left join lateral (
        select coalesce(
          (select min(a.created_at) from (
             select status, created_at from (
               select status, created_at from delivery where webhook_id = w.id order by id desc limit 20) newest
             where status <> 'queued' limit 5) a
           having count(*) filter (where a.status = 'delivered') = 0),
          (select min(created_at) from (
             select created_at from delivery where webhook_id = w.id and status = 'retrying' limit 20) retried
           where not exists (
             select from (select status from delivery where webhook_id = w.id order by id desc limit 20) newest
             where status <> 'queued'))) as since
        where w.status = 'active'
      ) failing on true`
