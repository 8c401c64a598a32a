/** Who caused an Event, and one shape for the data of each type that had several. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Keys: every Event of one says its name, scope and Identity. What the Event did not say stands in the key's row, in the
 * Event of its creation, or in that of its Identity's end, since Handles are given once.
 * Limits: `used` of `quota`, whatever is counted.
 */
export const reshapeEvents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    with known as (
      select e.seq, e.data ->> 'key_id' as key_id,
             coalesce(e.data ->> 'name', k.name, made.data ->> 'name', '') as name,
             coalesce(e.data ->> 'identity_id', k.identity_id::text, made.data ->> 'identity_id') as identity_id,
             coalesce(e.data ->> 'handle', i.handle, made.data ->> 'handle') as handle,
             coalesce(e.data ->> 'scope', made.data ->> 'scope') as scope, e.org_id
      from event e
      left join api_key k on k.id::text = e.data ->> 'key_id' and k.org_id = e.org_id
      left join identity i on i.id = k.identity_id
      left join event made on made.type = 'api_key.created' and made.org_id = e.org_id
        and made.data ->> 'key_id' = e.data ->> 'key_id'
      where e.type in ('api_key.created', 'api_key.revoked') and not e.data ?& array['name', 'scope', 'identity_id', 'handle']
    )
    update event e set data = jsonb_build_object(
      'key_id', known.key_id, 'name', known.name, 'handle', known.handle,
      'scope', coalesce(known.scope, case when known.identity_id is null then 'org' else 'identity' end),
      'identity_id', coalesce(known.identity_id, (
        select ended.data ->> 'identity_id' from event ended
        where ended.org_id = known.org_id and ended.type = 'identity.deleted' and ended.data ->> 'handle' = known.handle limit 1))
    )
    from known where e.seq = known.seq`
  yield* sql`
    update event set data = data - 'quota_bytes' - 'at_bytes'
      || jsonb_build_object('quota', data -> 'quota_bytes', 'used', data -> 'at_bytes')
    where type in ('limit.near', 'tunnel.transfer_blocked') and data ? 'quota_bytes'`
})

export const eventCause = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Null: stored before, or by a process of an older version.
  yield* sql`alter table event add column caused_by jsonb`
  yield* reshapeEvents
})
