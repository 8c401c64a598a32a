import { Statement } from "effect/sql"
import type { By } from "@svc/domain/account/By"
import type { Sql } from "../store/Database.ts"
interface W {
  readonly sql: Sql
  readonly identity: { readonly id: string; readonly handle: string; readonly orgId: string }
  readonly at: Date
  readonly by: By
}
export const raise = (
  w: W,
  gate: string,
  type: string,
  data: Readonly<Record<string, unknown>>,
  options: { except?: string; as?: string } = {},
): Statement.Fragment => {
  const { sql } = w
  const literal = Object.fromEntries(Object.entries(data).filter(([, v]) => !Statement.isFragment(v)))
  const computed = Object.entries(data)
    .filter(([, v]) => Statement.isFragment(v))
    .map(([k, v]) => sql` || jsonb_build_object(${k}::text, ${v as Statement.Fragment})`)
  const all = computed.reduce((a, b) => sql`${a}${b}`, sql`${JSON.stringify(literal)}::jsonb`)
  return sql`
  raised as (
    insert into event (id, org_id, identity_id, handle, type, data, created_at)
    select uuidv7(), ${w.identity.orgId}::uuid, ${w.identity.id}::uuid, ${w.identity.handle}::text, ${type}::text, ${all}, ${w.at}::timestamptz
    from ${sql(gate)} returning id
  ),
  queued as (
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
    select uuidv7(), w.id, w.identity_id, raised.id, ${type}::text, 'queued', ${w.at}::timestamptz, ${w.at}::timestamptz
    from webhook w, raised
    where w.identity_id = ${w.identity.id}::uuid and w.status = 'active'
      and w.id is distinct from ${options.except ?? null}::uuid
      and (w.event_types && array['*', ${type}::text])
    returning id
  )`
}
export const raiseForOrg = (
  w: { readonly sql: Sql; readonly org: string; readonly at: Date; readonly by: By },
  gate: string,
  type: string,
  data: Readonly<Record<string, unknown>>,
  options: { as?: string } = {},
): Statement.Fragment => {
  const { sql } = w
  const literal = Object.fromEntries(Object.entries(data).filter(([, v]) => !Statement.isFragment(v)))
  const computed = Object.entries(data)
    .filter(([, v]) => Statement.isFragment(v))
    .map(([k, v]) => sql` || jsonb_build_object(${k}::text, ${v as Statement.Fragment})`)
  const all = computed.reduce((a, b) => sql`${a}${b}`, sql`${JSON.stringify(literal)}::jsonb`)
  return sql`${sql(options.as ?? "raised_for_org")} as (
    insert into event (id, org_id, type, data, created_at)
    select uuidv7(), ${w.org}::uuid, ${type}::text, ${all}, ${w.at}::timestamptz from ${sql(gate)} returning id)`
}
export const raiseTest = (w: W, gate: string, id: string): Statement.Fragment => w.sql`
  told as (
    insert into event (id, org_id, identity_id, handle, type, data, created_at)
    select ${id}::uuid, ${w.identity.orgId}::uuid, ${w.identity.id}::uuid, ${w.identity.handle}::text, 'webhook.test', '{}'::jsonb, ${w.at}::timestamptz
    from ${w.sql(gate)} on conflict (id) do nothing)`
