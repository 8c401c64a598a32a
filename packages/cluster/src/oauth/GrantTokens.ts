/**
 * The tokens of Grants: a code is exchanged for a pair, and the refresh token of a pair for the next one. Only hashes
 * are stored. Ages are measured by the store's clock alone, so that processes whose clocks differ agree.
 *
 * A refresh token is used once, but responses get lost and programs run twice. A used token is therefore accepted again
 * while none of the tokens issued for it has been presented, and for a minute in any case. A later use means that the
 * token was stolen, and the Grant ends (RFC 9700 section 4.14.2).
 */
import { randomBytes } from "node:crypto"
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { GrantEnd } from "@svc/domain/oauth/Grant"
import { isOAuthToken, makeOAuthToken } from "@svc/domain/account/Token"
import { withoutPort } from "@svc/domain/oauth/Redirect"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { sha256 } from "../credentials/CredentialMint.ts"
import { verifierFits } from "../credentials/Pkce.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { endGrants } from "../credentials/GrantRevocation.ts"

/** Maximum number of pairs issued for one refresh token. */
const pairsAtMost = 5

/** The code or the refresh token is invalid (`invalid_grant` of RFC 6749 section 5.2). */
export class GrantInvalid extends Schema.TaggedError<GrantInvalid>()("GrantInvalid", {
  description: Schema.String,
  /** The owner of the token for the audit log; null for a token that never existed. */
  whose: Schema.NullOr(
    Schema.Struct({
      grantId: Schema.String,
      orgId: Schema.String,
      client: Schema.String,
      /** The reason if this use ended the Grant. */
      ended: Schema.NullOr(Schema.String),
    }),
  ),
}) {}

export interface TokenPair {
  readonly grantId: string
  readonly orgId: string
  /** The client's own name. */
  readonly client: string
  readonly access: string
  readonly refresh: string
  readonly expiresInSeconds: number
  readonly scopes: ReadonlyArray<string>
}

interface Row {
  readonly grant_id: string
  readonly org_id: string
  readonly client_id: string
  readonly client_name: string
  readonly redirect_host: string
  readonly scopes: ReadonlyArray<string>
  readonly redirect: string | null
  readonly challenge: string | null
  readonly live: boolean
  readonly fresh: boolean
  readonly used: boolean
  readonly pairs: number
  /** Whether the first use was recent enough to come from a parallel program. */
  readonly recent: boolean
  /** Whether one of the tokens issued for it was presented. */
  readonly succeeded: boolean
}

interface CodeExchange {
  readonly code: string
  readonly clientId: string
  readonly redirect: string
  readonly verifier: string
}

const refused = (description: string, row?: Row, ended: GrantEnd | null = null) =>
  new GrantInvalid({
    description,
    whose: row === undefined ? null : { grantId: row.grant_id, orgId: row.org_id, client: row.client_name, ended },
  })

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const feed = yield* ChangeFeed

  /**
   * Reads and locks a token with its Grant until the transaction ends; of two concurrent uses the second sees the
   * outcome of the first. The kind of a token is part of its text, and so of its hash.
   */
  const held = (token: string) =>
    Effect.map(
      sql<Row>`
        select g.id as grant_id, g.org_id, g.client_id, g.client_name, g.redirect_host, g.scopes, t.redirect, t.challenge,
               g.revoked_at is null and g.expires_at > now() and o.status = 'active' as live,
               t.expires_at > clock_timestamp() as fresh, t.first_used_at is not null as used, t.pairs,
               coalesce(t.first_used_at > clock_timestamp() - ${`${Timing.refreshReplayMillis} milliseconds`}::interval, false) as recent,
               exists (select from oauth_token s where s.successor_of = t.hash and s.first_used_at is not null) as succeeded
        from oauth_token t join client_grant g on g.id = t.grant_id join org o on o.id = g.org_id
        where t.hash = ${sha256(token)} for update of t`,
      ([row]) => row,
    )

  const issue = Effect.fnUntraced(function* (token: string, { grant_id, org_id, client_name, scopes }: Row) {
    const made = {
      access: makeOAuthToken("access", randomBytes(32)),
      refresh: makeOAuthToken("refresh", randomBytes(32)),
    }
    const life = {
      access: `${Timing.accessTokenMillis} milliseconds`,
      refresh: `${Timing.refreshTokenMillis} milliseconds`,
    }
    const [row] = yield* sql<{ seconds: number }>`
      with used as (
        update oauth_token set first_used_at = coalesce(first_used_at, clock_timestamp()), pairs = pairs + 1
        where hash = ${sha256(token)} returning grant_id
      ),
      given as (
        insert into oauth_token (hash, grant_id, kind, successor_of, expires_at)
        select n.hash, g.id, n.kind, ${sha256(token)}::bytea, least(clock_timestamp() + n.life, g.expires_at)
        from used join client_grant g on g.id = used.grant_id,
             (values (${sha256(made.access)}::bytea, 'access', ${life.access}::interval),
                     (${sha256(made.refresh)}::bytea, 'refresh', ${life.refresh}::interval)) as n (hash, kind, life)
        returning kind, expires_at
      )
      select greatest(1, floor(extract(epoch from expires_at - clock_timestamp())))::int as seconds from given where kind = 'access'`
    const whose = { grantId: grant_id, orgId: org_id, client: client_name }
    const pair: TokenPair = { ...made, ...whose, expiresInSeconds: row!.seconds, scopes }
    return pair
  })

  /** Ends the Grant in the same transaction. Its holder is notified if the use looks like theft. */
  const end = Effect.fnUntraced(function* (row: Row, reason: GrantEnd) {
    const at = new Date(yield* Clock.currentTimeMillis)
    const notice =
      reason === "refresh_reuse"
        ? sql`, told as (
            insert into grant_notice (id, org_id, kind, client_name, redirect_host, created_at)
            select ${yield* makeUuidV7}::uuid, org_id, 'refresh_reuse', client_name, redirect_host, ${at}::timestamptz from ended)`
        : sql``
    yield* sql`with ${endGrants({ sql, at, by: system }, sql`id = ${row.grant_id}::uuid`, reason)} ${notice} select 1`
    return reason
  })

  /** Runs the transaction. A rejection commits too, since it may have ended the Grant. */
  const settled = <A extends TokenPair | GrantInvalid, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.flatMap(sql.withTransaction(work), (found) => {
      if (!(found instanceof GrantInvalid)) return Effect.succeed(found as Exclude<A, GrantInvalid>)
      if (found.whose !== null && found.whose.ended !== null) feed.announce({ org: found.whose.orgId })
      return Effect.fail(found)
    })

  return {
    /** Exchanges a code for a pair, once (RFC 6749 section 4.1.3). A second use revokes the pair of the first. */
    exchange: Effect.fn("GrantTokens.exchange")(function* ({ code, clientId, redirect, verifier }: CodeExchange) {
      if (!isOAuthToken("code", code)) return yield* refused("The code is invalid.")
      return yield* settled(
        Effect.gen(function* () {
          const row = yield* held(code)
          if (row === undefined) return refused("The code is unknown or has expired.")
          if (row.client_id !== clientId) return refused("The code was issued to another client.", row)
          if (row.used) {
            const ended = row.live ? yield* end(row, "code_reuse") : null
            return refused("The code was already used. The tokens that were issued for it are revoked.", row, ended)
          }
          if (!row.live || !row.fresh) return refused("The code has expired.", row)
          if (row.redirect !== redirect) return refused("The code was issued for another redirect_uri.", row)
          if (row.challenge === null || !verifierFits(verifier, row.challenge)) {
            return refused("The code_verifier does not match the code.", row)
          }
          return yield* issue(code, row)
        }),
      )
    }, orUnavailable),

    /** Returns whether a refresh token of that client may still be usable. */
    isAlive: (token: string, clientId: string) =>
      isOAuthToken("refresh", token)
        ? orUnavailable(
            Effect.map(
              sql`select 1 from oauth_token t join client_grant g on g.id = t.grant_id
                  where t.hash = ${sha256(token)} and t.expires_at > now()
                    and g.client_id = ${clientId} and g.revoked_at is null and g.expires_at > now()`,
              (rows) => rows.length > 0,
            ),
          )
        : Effect.succeed(false),

    /** Issues the next pair (RFC 6749 section 6). */
    refresh: Effect.fn("GrantTokens.refresh")(function* (token: string, clientId: string) {
      if (!isOAuthToken("refresh", token)) return yield* refused("The refresh token is invalid.")
      return yield* settled(
        Effect.gen(function* () {
          const row = yield* held(token)
          if (row === undefined) return refused("The refresh token is unknown or has expired.")
          if (row.client_id !== clientId) return refused("The refresh token was issued to another client.", row)
          if (!row.live || !row.fresh) return refused("The access was revoked or has expired.", row)
          const exhausted = row.pairs >= pairsAtMost
          // Programs that share a token refresh it at the same time. Only a use after that minute looks like theft.
          if (exhausted && row.recent) {
            return refused("The refresh token was used too often within a minute. Use the newest one.", row)
          }
          if (row.used && (row.succeeded || exhausted) && !row.recent) {
            const ended = yield* end(row, "refresh_reuse")
            return refused("The refresh token was already used. The access is revoked.", row, ended)
          }
          return yield* issue(token, row)
        }),
      )
    }, orUnavailable),

    /** Ends the Grant of an access or refresh token of that client (RFC 7009); an unknown token changes nothing. */
    revoke: Effect.fn("GrantTokens.revoke")(function* (token: string, clientId: string) {
      if (!isOAuthToken("access", token) && !isOAuthToken("refresh", token)) return undefined
      const at = new Date(yield* Clock.currentTimeMillis)
      const [row] = yield* sql<{ id: string; org_id: string; client_name: string }>`
        with named as (
          select t.grant_id from oauth_token t join client_grant g on g.id = t.grant_id
          where t.hash = ${sha256(token)} and g.client_id = ${clientId}
        ),
        ${endGrants({ sql, at, by: system }, sql`id in (select grant_id from named)`, "client")}
        select id, org_id, client_name from ended`
      if (row !== undefined) feed.announce({ org: row.org_id })
      return row
    }, orUnavailable),
  }
})

export class GrantTokens extends Context.Service<GrantTokens, Effect.Success<typeof make>>()(
  "@svc/cluster/oauth/GrantTokens",
) {
  static readonly layer = Layer.effect(GrantTokens, make)
}

/** Returns a hash that identifies a client's redirect, whatever port its program listens on. */
export const redirectHash = (redirect: string): Uint8Array => sha256(withoutPort(redirect))
