import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * What an Identity's actor does first, in one round trip: it raises the entity's epoch, then reads the Identity. In
 * PL/pgSQL, since there each statement sees what was committed before it began: one in SQL, or one statement for both, would
 * read what stood before the claim had waited for a former owner's write.
 */
export const claimedIdentity = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    create or replace function claimed_identity(name text) returns table (
      claimed int, id uuid, handle text, org_id uuid, status text, saga jsonb, saga_due_at timestamptz, data_key bytea)
    language plpgsql as $$
    begin
      insert into actor (kind, id, epoch) values ('Identity', name, 1)
        on conflict on constraint actor_pkey do update set epoch = actor.epoch + 1 returning actor.epoch into claimed;
      select i.id, i.handle, i.org_id, i.status, i.saga, i.saga_due_at, o.data_key
        into id, handle, org_id, status, saga, saga_due_at, data_key
        from identity i join org o on o.id = i.org_id where i.canonical = name;
      return next;
    end $$`
})
