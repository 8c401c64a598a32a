/**
 * Raises an Event inside the statement that causes it. The Event and its deliveries are common table expressions of the
 * same commit, so no Event exists without its cause and no cause without its Event. No other module inserts Events.
 *
 * A statement raises one Event for each row of a gate: a common table expression that has a row for each change that was
 * made. An Event stores who caused it, which the API does not show.
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

/** A value, or an expression over the columns of the gate. */
type OrColumn<A> = A | Statement.Fragment

/** A write on an Identity, or on the Identity of each row of the gate. */
interface IdentityChange {
  readonly sql: Sql
  readonly identity: {
    readonly id: OrColumn<string>
    readonly handle: OrColumn<string>
    readonly orgId: OrColumn<string>
  }
  readonly at: OrColumn<Date>
  readonly by: OrColumn<Initiator>
}

/** A write that concerns the Org. */
interface OrgChange {
  readonly sql: Sql
  readonly org: OrColumn<string>
  readonly at: OrColumn<Date>
  readonly by: OrColumn<Initiator>
}

/** The data of an Event type; a member may be an expression over the columns of the gate. */
type Raised<T extends EventType> = { readonly [K in keyof DataOf<T>]: DataOf<T>[K] | Statement.Fragment }

/** Encodes the initiator of a change as the column `event.caused_by` and gates store it. */
export const causedBy = (by: Initiator): string =>
  JSON.stringify({ kind: by.kind, credential_id: by.credentialId, request_id: by.requestId })

const causeOf = ({ sql, by }: { readonly sql: Sql; readonly by: OrColumn<Initiator> }) =>
  sql`${Statement.isFragment(by) ? by : causedBy(by)}::jsonb`

/** Builds the data of an Event: literal members are one parameter, expressions are appended. A message's id appears under both of its names. */
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

/**
 * Returns when an Event was created: the database's time of the insertion, so that `created_at` follows `seq`. The time of
 * the write is earlier, since other processes insert Events in between. The time of the write is used if it is later or if
 * it differs much from the database's time, as in tests that set the time.
 */
const createdAt = (sql: Sql, at: OrColumn<Date>) => {
  const written = sql`${at}::timestamptz`
  return sql`greatest(${written}, case when clock_timestamp() < ${written} + interval '1 minute'
             then date_trunc('milliseconds', clock_timestamp()) end)`
}

/** Returns when deliveries of the Events of a gate are due. Actors compare it with their own clock, not with the database's. */
const dueAt = (sql: Sql, at: OrColumn<Date>, gate: string) =>
  Statement.isFragment(at) ? sql`(select min(${at})::timestamptz from ${sql(gate)})` : sql`${at}::timestamptz`

const idOf = (sql: Sql, id: string | undefined) => (id === undefined ? sql`uuidv7()` : sql`${id}::uuid`)

/**
 * Returns the common table expressions `raised` and `queued`: an Event for each row of `gate`, and a delivery for each active
 * Webhook that subscribes to it, except the Webhook `except`. An `id` may only be given for a gate of one row. A statement
 * that raises a second type of Event names its expressions `as` and `queued_<as>`.
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
  const excluded = options.except === undefined ? sql`` : sql`and w.id <> ${options.except}::uuid`
  return sql`
  ${raised} as (
    insert into event (id, org_id, identity_id, handle, type, data, created_at, caused_by)
    select ${idOf(sql, options.id)}, ${identity.orgId}::uuid, ${identity.id}::uuid, ${identity.handle}::text, ${type}::text,
           ${dataOf(sql, data)}, ${createdAt(sql, at)}, ${causeOf(write)}
    from ${sql(gate)}
    returning id, identity_id, type
  ),
  ${sql(options.as === undefined ? "queued" : `queued_${options.as}`)} as (
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
    select uuidv7(), w.id, w.identity_id, r.id, r.type, 'queued', due.at, due.at
    from ${raised} r join webhook w on w.identity_id = r.identity_id cross join (select ${dueAt(sql, at, gate)} as at) due
    where w.status = 'active' and w.event_types && array['*', r.type] ${excluded}
    returning id, identity_id
  )`
}

/** Returns the common table expression `as`: an Event of the Org for each row of `gate`. No Webhook receives it. */
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
    select ${idOf(sql, options.id)}, ${Statement.isFragment(org) ? org : sql`${org}::uuid`}, ${type}::text, ${dataOf(sql, data)}, ${createdAt(sql, at)}, ${causeOf(change)}
    from ${sql(gate)}
    returning id
  )`
}

/**
 * Returns the common table expressions `raised` and `queued` for the Event that tests one Webhook, whether or not the Webhook
 * subscribes to it. The command supplies the ids, so a repeated command raises no second Event.
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
           ${testEventType}::text, '{}'::jsonb, ${createdAt(sql, at)}, ${causeOf(write)}
    from ${sql(gate)}
    on conflict (id) do nothing
    returning id, identity_id, type
  ),
  queued as (
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
    select ${test.deliveryId}::uuid, ${test.webhookId}::uuid, identity_id, id, type, 'queued',
           due.at, due.at
    from raised cross join (select ${dueAt(sql, at, gate)} as at) due
    on conflict (id) do nothing
    returning id
  )`
}

/** Returns the SQL expression for a time column in the data of an Event: RFC 3339 in UTC with milliseconds. */
export const instant = (sql: Sql, column: string): Statement.Fragment =>
  sql`to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
