/**
 * The Grants of an account: created by consent, read and changed by the account holder. Every call checks what its
 * Grant allows, so a change applies to the next call.
 */
import { randomBytes } from "node:crypto"
import type { Initiator } from "@svc/domain/account/Initiator"
import { networksText } from "@svc/domain/account/KeyRights"
import { canonical } from "@svc/domain/handles/Handle"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Uuid } from "@svc/domain/IdSchemas"
import type { Grant, GrantPatch } from "@svc/domain/oauth/Grant"
import { makeOAuthToken } from "@svc/domain/account/Token"
import { hostOf } from "@svc/domain/oauth/Redirect"
import type { PageRequest } from "@svc/domain/Paging"
import { NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { Statement } from "effect/sql"
import type { AuditNote } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { sha256 } from "../credentials/CredentialMint.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { endGrants } from "../credentials/GrantRevocation.ts"
import { redirectHash } from "./GrantTokens.ts"
import type { OAuthClient } from "./OAuthClients.ts"

const isUuid = Schema.is(Uuid)

/** Maximum number of active Grants of an account. */
const grantsAtMost = 50
/** The first half of the advisory locks that make an Org's consents sequential: "grnt" in ASCII. */
const grantLock = 0x67_72_6e_74

const dayMillis = 24 * 60 * 60 * 1000

/** The consent failed: its request has expired, the account has too many Grants, or an Identity does not exist. */
class ConsentRefused extends Schema.TaggedError<ConsentRefused>()("ConsentRefused", {
  reason: Schema.Literals(["gone", "full", "identities"]),
}) {}

/** A client's validated request. */
export interface RequestedGrant {
  readonly client: OAuthClient
  readonly redirect: string
  /** The S256 challenge of the client's verifier (RFC 7636). */
  readonly challenge: string
  readonly resource: string
}

/** The rights that the holder allows. */
export interface Choice {
  readonly scopes: ReadonlyArray<string>
  /** Ids of the allowed Identities; null for the whole account. */
  readonly identities: ReadonlyArray<string> | null
  readonly days: number
}

/** The active Grant of the same client and redirect. */
export interface PresentGrant {
  readonly id: string
  readonly scopes: ReadonlyArray<string>
  readonly identities: ReadonlyArray<string> | null
}

const handlesOf = (sql: Sql) =>
  sql`case when identities is null then null else
    (select coalesce(array_agg(i.handle order by i.handle), '{}') from identity i where i.id = any(identities)) end`

/** Returns the SQL condition that a Grant has the rights that the caller has seen. */
const asSeen = (sql: Sql, { scopes, handles, networks, expires_at }: Grant) => sql`
  and scopes = ${scopes}::text[] and networks is not distinct from ${networks === null ? null : networks.join(" ")}::text
  and ${handlesOf(sql)} is not distinct from ${handles}::text[]
  and date_trunc('milliseconds', expires_at) = ${expires_at}::timestamptz`

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const feed = yield* ChangeFeed
  const sealing = yield* Sealing
  const columns = reads`g.id, g.client_id, g.client_name, g.redirect_host, g.scopes, g.created_at, g.expires_at,
    g.last_used_at, g.last_used_address, string_to_array(g.networks, ' ') as networks, ${handlesOf(reads)} as handles`
  const missing = Effect.fail(new NotFound({ detail: "The Grant does not exist." }))
  const changedMeanwhile = Effect.fail(
    new PreconditionFailed({
      detail: "The Grant was changed since you read it. Read it again, and repeat the change.",
    }),
  )

  const told = (
    change: { readonly sql: Sql; readonly org: string; readonly at: Date; readonly by: Initiator },
    gate: string,
    type: "grant.created" | "grant.changed",
    as: string,
  ): Statement.Fragment => {
    const { sql } = change
    return raiseForOrg(
      change,
      gate,
      type,
      {
        grant_id: sql`id`,
        client_id: sql`client_id`,
        client_name: sql`client_name`,
        redirect_host: sql`redirect_host`,
        scopes: sql`to_jsonb(scopes)`,
        handles: sql`to_jsonb(${handlesOf(sql)})`,
        networks: sql`to_jsonb(string_to_array(networks, ' '))`,
        expires_at: sql`to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
      },
      { as },
    )
  }

  return {
    /** Returns the active Grants, newest first. */
    list: (org: string, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `grants/${org}`,
          request,
          (behind, atMost) => reads<Grant>`
            select ${columns} from client_grant g
            where g.org_id = ${org} and g.revoked_at is null and g.expires_at > now()
              ${behind === undefined ? reads`` : reads`and g.id < ${behind}::uuid`}
            order by g.id desc limit ${atMost}`,
          ({ id }) => id,
          (row) => row,
        ),
      ),

    read: (org: string, id: string) =>
      orUnavailable(
        Effect.flatMap(
          writes<Grant>`
            select ${columns} from client_grant g
            where g.id = ${id} and g.org_id = ${org} and g.revoked_at is null and g.expires_at > now()`,
          ([row]) => (row === undefined ? missing : Effect.succeed(row)),
        ),
      ),

    /** Returns what the account allowed this client before, if it is still valid. */
    present: (org: string, clientId: string, redirect: string) =>
      orUnavailable(
        Effect.map(
          reads<PresentGrant>`
            select id, scopes, identities from client_grant
            where org_id = ${org} and client_id = ${clientId} and redirect_hash = ${redirectHash(redirect)}
              and revoked_at is null and expires_at > now()`,
          ([row]) => row,
        ),
      ),

    /**
     * Records the holder's consent: ends the request, creates the Grant as chosen, and issues a code for the client. A
     * repeated consent renews the client's Grant, so that a lost response leaves no second one.
     */
    consent: Effect.fn("Grants.consent")(function* (
      org: string,
      request: { readonly id: string; readonly session: string },
      { client, redirect, challenge, resource }: RequestedGrant,
      choice: Choice,
      by: Initiator,
    ) {
      const sql = writes
      const at = new Date(yield* Clock.currentTimeMillis)
      const id = yield* makeUuidV7
      const change = { sql, org, at, by }
      const code = makeOAuthToken("code", randomBytes(32))
      const expiresAt = new Date(at.getTime() + choice.days * dayMillis)
      const ofClient = sql`org_id = ${org} and client_id = ${client.id} and redirect_hash = ${redirectHash(redirect)}`
      const refuse = (reason: ConsentRefused["reason"]) => Effect.fail(new ConsentRefused({ reason }))

      const granted = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_advisory_xact_lock(${grantLock}, hashtext(${org}::text))`
          const closed = yield* sql`
            delete from oauth_request where id = ${request.id} and session_id = ${request.session} and expires_at > now() returning 1`
          if (closed.length === 0) return yield* refuse("gone")
          const wanted = [...new Set(choice.identities ?? [])]
          if (!wanted.every(isUuid)) return yield* refuse("identities")
          const [found] = yield* sql<{ own: number; others: number }>`
            select (select count(*)::int from identity where org_id = ${org} and id = any(${wanted}::uuid[])) as own,
                   (select count(*)::int from client_grant where org_id = ${org} and revoked_at is null and expires_at > now()
                      and not (${ofClient})) as others`
          if (choice.identities !== null && (wanted.length === 0 || found!.own < wanted.length))
            return yield* refuse("identities")
          if (found!.others >= grantsAtMost) return yield* refuse("full")
          // An expired Grant makes room for the new one.
          yield* sql`with ${endGrants(change, sql`${ofClient} and expires_at <= now()`, "expired")} select 1`
          const [row] = yield* sql<{ id: string }>`
            with live as (select id from org where id = ${org} and status = 'active' for share),
            granted as (
              insert into client_grant as g (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes,
                                             identities, created_at, expires_at)
              select ${id}::uuid, id, ${client.id}::text, ${client.name}::text, ${hostOf(redirect)}::text,
                     ${redirectHash(redirect)}::bytea, ${resource}::text, ${choice.scopes}::text[],
                     ${choice.identities === null ? null : wanted}::uuid[], ${at}::timestamptz, ${expiresAt}::timestamptz
              from live
              on conflict (org_id, client_id, redirect_hash) where revoked_at is null do update
              set client_name = excluded.client_name, scopes = excluded.scopes, identities = excluded.identities,
                  resource = excluded.resource, expires_at = excluded.expires_at
              returning *
            ),
            made as (select * from granted where id = ${id}::uuid),
            renewed as (select * from granted where id <> ${id}::uuid),
            ${told(change, "made", "grant.created", "told_made")},
            ${told(change, "renewed", "grant.changed", "told_renewed")},
            noticed as (
              insert into grant_notice (id, org_id, kind, client_name, redirect_host, created_at)
              select id, org_id, 'created', client_name, redirect_host, ${at}::timestamptz from made
            ),
            coded as (
              insert into oauth_token (hash, grant_id, kind, redirect, challenge, expires_at)
              select ${sha256(code)}::bytea, id, 'code', ${redirect}::text, ${challenge}::text,
                     now() + ${`${Timing.codeMillis} milliseconds`}::interval
              from granted
            )
            select id from granted`
          return row === undefined ? yield* refuse("gone") : row
        }),
      )
      feed.announce({ org })
      return { code, grantId: granted.id }
    }, orUnavailable),

    /**
     * Changes the rights or the expiry of a Grant; fields that are not named stay. Fails if `seen` is given and the Grant has
     * other rights.
     */
    change: Effect.fn("Grants.change")(function* (
      org: string,
      id: string,
      patch: GrantPatch,
      seen: Grant | undefined,
      by: Initiator,
      note?: AuditNote,
    ) {
      const sql = writes
      const at = new Date(yield* Clock.currentTimeMillis)
      const names = patch.handles == null ? [] : [...new Set(patch.handles.map(canonical))]
      const own =
        names.length === 0
          ? []
          : yield* sql<{
              id: string
            }>`select id from identity where org_id = ${org} and canonical = any(${names}::text[])`
      if (own.length < names.length) return yield* new NotFound({ detail: "The Identity does not exist." })
      const identities =
        patch.handles === undefined
          ? sql`identities`
          : sql`${patch.handles === null ? null : own.map((one) => one.id)}::uuid[]`
      const [row] = yield* sql<{ id: string }>`
        with changed as (
          update client_grant set scopes = ${patch.scopes === undefined ? sql`scopes` : sql`${patch.scopes}::text[]`},
            identities = ${identities},
            networks = ${patch.networks === undefined ? sql`networks` : sql`${patch.networks && networksText(patch.networks)}::text`},
            expires_at = ${patch.expires_at === undefined ? sql`expires_at` : sql`${patch.expires_at}::timestamptz`}
          where id = ${id} and org_id = ${org} and revoked_at is null and expires_at > now()
            ${seen === undefined ? sql`` : asSeen(sql, seen)}
          returning *
        ),
        ${told({ sql, org, at, by }, "changed", "grant.changed", "told_changed")}
        ${auditWriteWith(sql, note, "changed")}
        select id from changed`
      if (row === undefined) return yield* seen === undefined ? missing : changedMeanwhile
      feed.announce({ org })
    }, orUnavailable),

    /** Ends a Grant: its next call is rejected. Repeating it changes nothing. */
    revoke: Effect.fn("Grants.revoke")(function* (org: string, id: string, by: Initiator, note?: AuditNote) {
      const at = new Date(yield* Clock.currentTimeMillis)
      const which = writes`id = ${id} and org_id = ${org}`
      const [row] = yield* writes<{ known: boolean }>`
        with known as (select 1 from client_grant where ${which}),
        ${endGrants({ sql: writes, at, by }, which, "holder")}
        ${auditWriteWith(writes, note, "known")}
        select exists (select from known) as known`
      if (row?.known !== true) return yield* missing
      feed.announce({ org })
    }, orUnavailable),

    /** Ends every Grant of the account. */
    revokeAll: Effect.fn("Grants.revokeAll")(function* (org: string, by: Initiator) {
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* writes`with ${endGrants({ sql: writes, at, by }, writes`org_id = ${org}`, "holder")} select 1`
      feed.announce({ org })
    }, orUnavailable),
  }
})

export class Grants extends Context.Service<Grants, Effect.Success<typeof make>>()("@svc/cluster/oauth/Grants") {
  static readonly layer = Layer.effect(Grants, make)
}
