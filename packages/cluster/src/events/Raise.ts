/**
 * Raising an Event inside the statement that causes it: the Event and the deliveries it queues are common table
 * expressions of the same commit, so there is no Event without its cause and no cause without its Event.
 */
import { type EventType, type IdentityEventType } from "@svc/domain/events/Event"
import { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

export interface IdentityEvent {
  readonly eventId: string
  readonly type: IdentityEventType
  readonly org: string
  readonly identity: { readonly id: string; readonly handle: string }
  /** What happened, or an expression over the columns of the gate that builds it (jsonb). */
  readonly data: Readonly<Record<string, unknown>> | Statement.Fragment
  readonly at: Date
}

/**
 * CTEs `raised` and `queued`: the Event where `gate` (a CTE of this statement) has a row, and a delivery for each
 * active Webhook that subscribes to it. `except` names a Webhook that must not hear of it.
 */
export const raiseForIdentity = (
  sql: Sql,
  gate: string,
  event: IdentityEvent,
  except: string | null = null,
): Statement.Fragment => sql`
  raised as (
    insert into event (id, org_id, identity_id, handle, type, data, created_at)
    select ${event.eventId}::uuid, ${event.org}::uuid, ${event.identity.id}::uuid, ${event.identity.handle}::text,
           ${event.type}::text, ${Statement.isFragment(event.data) ? event.data : sql`${JSON.stringify(event.data)}::jsonb`},
           ${event.at}::timestamptz
    from ${sql(gate)}
    returning id
  ),
  queued as (
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
    select uuidv7(), w.id, w.identity_id, raised.id, ${event.type}::text, 'queued', ${event.at}::timestamptz, ${event.at}::timestamptz
    from webhook w, raised
    where w.identity_id = ${event.identity.id}::uuid and w.status = 'active'
      and w.id is distinct from ${except}::uuid
      and (w.event_types && array['*', ${event.type}::text])
    returning id
  )`

/** CTE `as` for an Org-level Event, which concerns no Identity and reaches no Webhook. */
export const raiseForOrg = (
  sql: Sql,
  gate: string,
  event: {
    readonly eventId: string
    readonly type: EventType
    readonly org: string
    readonly data: Readonly<Record<string, unknown>>
    readonly at: Date
  },
  as = "raised_for_org",
): Statement.Fragment => sql`
  ${sql(as)} as (
    insert into event (id, org_id, type, data, created_at)
    select ${event.eventId}::uuid, ${event.org}::uuid, ${event.type}::text, ${JSON.stringify(event.data)}::jsonb, ${event.at}::timestamptz
    from ${sql(gate)}
    returning id
  )`
