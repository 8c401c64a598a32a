/**
 * The credential that created a Webhook or approved a device login. Both act later without the credential, so they stop
 * when their creator ends. A rotated key is continued by its successor, so only the end of the last successor counts.
 * Webhooks and approvals of a session never stop, because a session stands for the account holder.
 */
import { scopesOf, type Scopes, unlimited } from "@svc/domain/account/Scope"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** Why a creator allows nothing any more. */
export type CreatorEnd = "creator_revoked" | "creator_expired" | "creator_narrowed"

/** The columns of {@link creatorColumns}. */
export interface CreatorRow {
  /** The kind of the credential; null if the account holder or the service itself is the creator. */
  readonly creator_kind: string | null
  readonly creator_end: CreatorEnd | null
  /** Null if the credential is unknown. */
  readonly creator_scopes: string | null
}

export const creatorColumns = (sql: Sql) =>
  sql`creator.kind as creator_kind, creator.ended as creator_end, creator.scopes as creator_scopes`

/**
 * Returns the lateral join `creator`: the state of the creator at a time. A Grant that does not include `identity` any more is
 * narrowed.
 */
export const joinCreator = (
  sql: Sql,
  made: { readonly kind: Statement.Fragment; readonly id: Statement.Fragment; readonly identity: Statement.Fragment },
  at: Statement.Fragment,
): Statement.Fragment => sql`
  left join lateral (
    select made.kind, found.ended, found.scopes
    from (select ${made.kind} as kind where ${made.kind} in ('admin_key', 'identity_key', 'grant')) made left join lateral (
      with recursive successor as (
        select id, replaced_by, revoked_at, expires_at, scopes from api_key where id = ${made.id} and made.kind <> 'grant'
        union all
        select k.id, k.replaced_by, k.revoked_at, k.expires_at, k.scopes
        from successor s join api_key k on k.id = s.replaced_by
      )
      select case when revoked_at is not null then 'creator_revoked' when expires_at <= ${at} then 'creator_expired' end as ended, scopes
      from successor where replaced_by is null
      union all
      select case when g.reason = 'expired' or (g.revoked_at is null and g.expires_at <= ${at}) then 'creator_expired'
                  when g.revoked_at is not null then 'creator_revoked'
                  when not (${made.identity} = any(g.identities)) then 'creator_narrowed' end,
             array_to_string(g.scopes, ' ')
      from client_grant g where g.id = ${made.id} and made.kind = 'grant'
    ) found on true
  ) creator on true`

/** Returns why the creator allows nothing any more; null if it is valid. */
export const endOf = ({ creator_kind, creator_end, creator_scopes }: CreatorRow): CreatorEnd | null =>
  creator_kind !== null && creator_scopes === null ? "creator_revoked" : creator_end

/** Returns the scopes that a valid creator has now. */
export const creatorScopes = ({ creator_kind, creator_scopes }: CreatorRow): Scopes =>
  creator_kind === null ? unlimited : scopesOf(creator_scopes ?? "")
