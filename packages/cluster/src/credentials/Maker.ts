/**
 * The credential that made something which acts on its own afterwards: a Webhook, or the approval of a device login. What was
 * made ends with its maker. A key that was rotated is replaced by its successor, which has the same rights, so only the end of
 * the last successor counts. What a session made has no end: a session is the account holder, whatever becomes of it.
 */
import { scopesOf, type Scopes, unlimited } from "@svc/domain/account/Scope"
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** Why a maker allows nothing any more. */
export type MakerEnd = "maker_revoked" | "maker_expired" | "maker_narrowed"

/** The columns of {@link makerColumns}. */
export interface MakerRow {
  /** The kind of the credential; null if the account holder or the service itself is the maker. */
  readonly maker_kind: string | null
  readonly maker_end: MakerEnd | null
  /** Null if the credential is unknown. */
  readonly maker_scopes: string | null
}

export const makerColumns = (sql: Sql) =>
  sql`maker.kind as maker_kind, maker.ended as maker_end, maker.scopes as maker_scopes`

/**
 * Returns the lateral join `maker`: the state of the maker at a time. A Grant that does not include `identity` any more is
 * narrowed.
 */
export const joinMaker = (
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
      select case when revoked_at is not null then 'maker_revoked' when expires_at <= ${at} then 'maker_expired' end as ended, scopes
      from successor where replaced_by is null
      union all
      select case when g.reason = 'expired' or (g.revoked_at is null and g.expires_at <= ${at}) then 'maker_expired'
                  when g.revoked_at is not null then 'maker_revoked'
                  when not (${made.identity} = any(g.identities)) then 'maker_narrowed' end,
             array_to_string(g.scopes, ' ')
      from client_grant g where g.id = ${made.id} and made.kind = 'grant'
    ) found on true
  ) maker on true`

/** Returns why the maker allows nothing any more; null if it is valid. */
export const endOf = ({ maker_kind, maker_end, maker_scopes }: MakerRow): MakerEnd | null =>
  maker_kind !== null && maker_scopes === null ? "maker_revoked" : maker_end

/** Returns the scopes that a valid maker has now. */
export const makerScopes = ({ maker_kind, maker_scopes }: MakerRow): Scopes =>
  maker_kind === null ? unlimited : scopesOf(maker_scopes ?? "")
