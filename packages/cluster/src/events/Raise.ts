/**
 * Raising an Event inside the statement that causes it: the Event and the deliveries it queues are common table
 * expressions of the same commit, so there is no Event without its cause and no cause without its Event. Nothing else
 * inserts Events.
 *
 * An Event is raised for each row of a gate, a CTE of the same statement that has rows where the change was made: none,
 * one, or one for each key that went. Each keeps who caused it, which the API does not show.
 */
import type { Initiator } from "@svc/domain/account/Initiator"
import {
  type DataOf,
  type EventType,
  type IdentityEventType,
  type OrgEventType,
  testEventType,
} from "@svc/domain/events/Event"
import { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** A value, or the column of the gate that has it. */
type Told<A> = A | Statement.Fragment

/** A write on an Identity, or on that of each row of the gate, as far as its Events need to know it. */
export interface IdentityChange {
  readonly sql: Sql
  readonly identity: { readonly id: Told<string>; readonly handle: Told<string>; readonly orgId: Told<string> }
  readonly at: Told<Date>
  readonly by: Told<Initiator>
}

/** A write that concerns the Org. */
export interface OrgChange {
  readonly sql: Sql
  readonly org: Told<string>
  readonly at: Told<Date>
  readonly by: Told<Initiator>
}

/** The type's own data; a member may be an expression over the columns of the gate. */
export type Raised<T extends EventType> = { readonly [K in keyof DataOf<T>]: DataOf<T>[K] | Statement.Fragment }

/** Who caused it, as an Event keeps it and as a gate's column has it. */
export const causedBy = (by: Initiator): string =>
  JSON.stringify({ kind: by.kind, credential_id: by.credentialId, request_id: by.requestId })

const causeOf = ({ sql, by }: { readonly sql: Sql; readonly by: Told<Initiator> }) =>
  sql`${Statement.isFragment(by) ? by : causedBy(by)}::jsonb`

/** Literal members are one parameter; expressions are added to it. What names a message has its name in both spellings. */
const dataOf = (sql: Sql, data: Readonly<Record<string, unknown>>): Statement.Fragment => {
  const members = Object.entries("message_id" in data ? { email_id: data["message_id"], ...data } : data)
  const literal = members.filter(([, value]) => !Statement.isFragment(value))
  const computed = members.flatMap(([name, value]) =>
    // The names are those of the type's schema, so they need no quoting.
    Statement.isFragment(value) ? [sql`${sql.literal(`'${name}', `)}${value}`] : [],
  )
  const given =
    literal.length === 0 && computed.length > 0 ? [] : [sql`${JSON.stringify(Object.fromEntries(literal))}::jsonb`]
  const built = computed.length === 0 ? [] : [sql`jsonb_build_object(${Statement.join(", ", false)(computed)})`]
  return Statement.join(" || ", false)([...given, ...built])
}

const idOf = (sql: Sql, id: string | undefined) => (id === undefined ? sql`uuidv7()` : sql`${id}::uuid`)

/**
 * CTEs `raised` and `queued`: the Event for each row of `gate`, and a delivery for each active Webhook that subscribes to
 * it. `except` names a Webhook that must not hear of it. An `id` of one's own is for a gate of one row. A second Event of
 * the same statement names its CTEs `as`, and `queued_<as>`.
 */
export const raise = <T extends IdentityEventType>(
  write: IdentityChange,
  gate: string,
  type: T,
  data: Raised<T>,
  options: { readonly id?: string; readonly except?: string; readonly as?: string } = {},
): Statement.Fragment => {
  const { sql, identity, at } = write
  const raised = sql(options.as ?? "raised")
  const spared = options.except === undefined ? sql`` : sql`and w.id <> ${options.except}::uuid`
  return sql`
  ${raised} as (
    insert into event (id, org_id, identity_id, handle, type, data, created_at, caused_by)
    select ${idOf(sql, options.id)}, ${identity.orgId}::uuid, ${identity.id}::uuid, ${identity.handle}::text, ${type}::text,
           ${dataOf(sql, data)}, ${at}::timestamptz, ${causeOf(write)}
    from ${sql(gate)}
    returning id, identity_id, type, created_at
  ),
  ${sql(options.as === undefined ? "queued" : `queued_${options.as}`)} as (
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
    select uuidv7(), w.id, w.identity_id, r.id, r.type, 'queued', r.created_at, r.created_at
    from ${raised} r join webhook w on w.identity_id = r.identity_id
    where w.status = 'active' and w.event_types && array['*', r.type] ${spared}
    returning id, identity_id
  )`
}

/** CTE `as` for an Org-level Event for each row of `gate`; it concerns no Identity and reaches no Webhook. */
export const raiseForOrg = <T extends OrgEventType>(
  change: OrgChange,
  gate: string,
  type: T,
  data: Raised<T>,
  options: { readonly as?: string; readonly id?: string } = {},
): Statement.Fragment => {
  const { sql, org, at } = change
  return sql`
  ${sql(options.as ?? "raised_for_org")} as (
    insert into event (id, org_id, type, data, created_at, caused_by)
    select ${idOf(sql, options.id)}, ${Statement.isFragment(org) ? org : sql`${org}::uuid`}, ${type}::text, ${dataOf(sql, data)}, ${at}::timestamptz, ${causeOf(change)}
    from ${sql(gate)}
    returning id
  )`
}

/**
 * CTEs `raised` and `queued` for the Event by which one Webhook is tried out, whether or not it subscribes. The ids are
 * the command's, so a repeat makes neither twice.
 */
export const raiseTest = (
  write: IdentityChange,
  gate: string,
  test: { readonly eventId: string; readonly deliveryId: string; readonly webhookId: string },
): Statement.Fragment => {
  const { sql, identity, at } = write
  return sql`
  raised as (
    insert into event (id, org_id, identity_id, handle, type, data, created_at, caused_by)
    select ${test.eventId}::uuid, ${identity.orgId}::uuid, ${identity.id}::uuid, ${identity.handle}::text,
           ${testEventType}::text, '{}'::jsonb, ${at}::timestamptz, ${causeOf(write)}
    from ${sql(gate)}
    on conflict (id) do nothing
    returning id, identity_id, type, created_at
  ),
  queued as (
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
    select ${test.deliveryId}::uuid, ${test.webhookId}::uuid, identity_id, id, type, 'queued', created_at, created_at
    from raised
    on conflict (id) do nothing
    returning id
  )`
}
