/**
 * Suppresses unreachable addresses. The Allowed Recipient of the address stays listed, but no mail is sent to it until
 * the suppression is lifted. A bounce never adds or renews an Allowed Recipient. The account holder's own address is
 * allowed without a row; a row only records its suppression.
 */
import type { Statement } from "effect/sql"
import type { Write } from "../../actor/Write.ts"

/** CTE `suppressed`: suppresses the rows of `gate` (`address`, `diagnostic`) that are `hard`. */
export const suppressed = (
  { sql, identity, at }: Pick<Write, "sql" | "at"> & { readonly identity: Pick<Write["identity"], "id" | "orgId"> },
  gate: Statement.Fragment,
): Statement.Fragment => sql`
  suppressed as (
    insert into allowed_recipient (identity_id, address, reason, created_at, suppressed_at, suppression)
    select ${identity.id}::uuid, lower(gone.address), coalesce(present.reason, 'account_owner'), ${at}::timestamptz,
           ${at}::timestamptz, min(coalesce(gone.diagnostic, 'The address does not exist.'))
    from (${gate}) gone
    left join allowed_recipient present on present.identity_id = ${identity.id}::uuid and present.address = lower(gone.address)
    left join org o on o.id = ${identity.orgId}::uuid and o.email = lower(gone.address)
    where gone.hard and (present.address is not null or o.id is not null)
    group by lower(gone.address), present.reason
    on conflict (identity_id, address) do update
    set suppressed_at = coalesce(allowed_recipient.suppressed_at, excluded.suppressed_at),
        suppression = coalesce(allowed_recipient.suppression, excluded.suppression)
  )`
