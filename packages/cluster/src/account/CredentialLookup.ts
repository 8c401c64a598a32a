/**
 * Resolves credentials. Every call looks its credential up by SHA-256, so a revocation applies immediately in every
 * process and there is no cache to invalidate. The same statement looks up the Identity that the call names, within the
 * credential's Org. Concurrent calls share one select.
 */
import type { Language, Org } from "@svc/domain/account/Account"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { networksOf } from "@svc/domain/account/Networks"
import { scopesOf, unlimited } from "@svc/domain/account/Scope"
import { kindOf } from "@svc/domain/account/Token"
import type { IdentityId, IdentityRef, IdentityStatus } from "@svc/domain/IdentityRef"
import { AccountDeleting, GrantRevoked, KeyExpired, Unauthenticated } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, FiberSet, Layer, Redacted } from "effect"
import { sha256Hex } from "../credentials/CredentialMint.ts"
import * as Batcher from "../store/Batcher.ts"
import { Reads, together, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

interface OrgColumns {
  readonly org_id: string
  readonly email: string
  readonly language: Language
  readonly api_version: string
  readonly org_status: "active" | "deleting"
  readonly tos_version: string
  readonly tos_accepted_at: Date
  readonly email_verified_at: Date | null
  readonly org_created_at: Date
}

/** The Identity of the Org that the call names; null if it names none or an unknown one. */
interface NamedColumns {
  readonly named_id: IdentityId | null
  readonly named_handle: string
  readonly named_status: IdentityStatus
}

interface KeyRow extends OrgColumns, NamedColumns {
  readonly requested: number
  readonly id: string
  readonly name: string
  readonly last_used_at: Date | null
  readonly scopes: string
  readonly expires_at: Date | null
  readonly networks: string | null
  readonly identity_id: IdentityId | null
  readonly handle: string | null
  readonly canonical: string | null
  readonly status: IdentityStatus
}

interface SessionRow extends OrgColumns, NamedColumns {
  readonly requested: number
  readonly id: string
  readonly last_used_at: Date
  readonly expires_at: Date
  readonly created_at: Date
}

interface GrantRow extends OrgColumns, NamedColumns {
  readonly requested: number
  readonly id: string
  readonly client_name: string
  readonly scopes: string
  readonly networks: string | null
  readonly last_used_at: Date | null
  readonly expires_at: Date
  readonly ended: boolean
  readonly first_used_at: Date | null
  /** The Identities that the credential may act on; null for the whole account. */
  readonly identities: ReadonlyArray<IdentityRef> | null
}

export const orgOf = (row: OrgColumns): Org => ({
  id: row.org_id,
  email: row.email,
  language: row.language,
  api_version: row.api_version,
  tos_version: row.tos_version,
  tos_accepted_at: row.tos_accepted_at,
  email_verified_at: row.email_verified_at,
  created_at: row.org_created_at,
})

/** A token's hash in hexadecimal, and the canonical Handle that the call names ("" for none). */
interface Asked {
  readonly hash: string
  readonly canonical: string
}

/** The origin of a call. */
interface From {
  readonly address: string
  /**
   * The resource that the call goes to. Access tokens of Grants are only valid for the tools, for which they were
   * issued (RFC 8707).
   */
  readonly via?: string
}

/** The caller, and the Identity of its Org that the call names. */
export interface Resolved {
  readonly caller: CallerInfo
  readonly named: IdentityRef | undefined
}

const namedOf = (row: NamedColumns, canonical: string): IdentityRef | undefined =>
  row.named_id === null
    ? undefined
    : { id: row.named_id, handle: row.named_handle, canonical, status: row.named_status }

const refused = Effect.fail(new Unauthenticated({ detail: "The credential is missing, unknown, revoked or expired." }))
const onlyForTools = Effect.fail(new Unauthenticated({ detail: "This credential is for the MCP server only." }))
const ended = Effect.fail(new KeyExpired({ detail: "The key has expired." }))
const revoked = Effect.fail(new GrantRevoked({ detail: "The access of this app was revoked or has expired." }))
const deleting = Effect.fail(new AccountDeleting({ detail: "The account is being deleted." }))

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const runUse = yield* FiberSet.makeRuntime()

  /** Records the use of a credential at most once a minute, without delaying the caller. */
  const noteUse = (statement: () => Effect.Effect<unknown, unknown>, lastUsed: Date | null, now: number) => {
    if (lastUsed === null || now - lastUsed.getTime() > Timing.lastUsedMillis) runUse(Effect.ignore(statement()))
  }

  const orgColumns = reads`o.id as org_id, o.email, o.language, o.api_version, o.status as org_status, o.tos_version,
    o.tos_accepted_at, o.email_verified_at, o.created_at as org_created_at`

  /** CTE `requested`: the hashes and names with their position, from 1. */
  const requested = (calls: ReadonlyArray<Asked>) =>
    reads`requested as (select decode(hash, 'hex') as token_hash, name, n::int as requested
      from unnest(${calls.map(({ hash }) => hash)}::text[], ${calls.map(({ canonical }) => canonical)}::text[])
        with ordinality as a (hash, name, n))`
  // `offset 0` forces a lookup by name: a plan made when the Org had few Identities would read all of them.
  const named = reads`left join lateral (
      select id, handle, status, org_id from identity where canonical = requested.name offset 0) t on t.org_id = o.id`
  const namedColumns = reads`t.id as named_id, t.handle as named_handle, t.status as named_status`

  const keyRow = yield* together((calls: ReadonlyArray<Asked>) =>
    Effect.map(
      reads<KeyRow>`
        with ${requested(calls)}
        select requested.requested, k.id, k.name, k.last_used_at, k.scopes, k.expires_at, k.networks, k.identity_id, i.handle, i.canonical, i.status,
               ${namedColumns}, ${orgColumns}
        from requested join api_key k on k.token_hash = requested.token_hash
        join org o on o.id = k.org_id left join identity i on i.id = k.identity_id ${named}
        -- Deleting an account revokes keys one Identity after the other. Until it ends, each key gets the reason.
        where k.revoked_at is null or o.status = 'deleting'`,
      Batcher.inOrder(calls),
    ),
  )

  const sessionRow = yield* together((calls: ReadonlyArray<Asked>) =>
    Effect.map(
      reads<SessionRow>`
        with ${requested(calls)}
        select requested.requested, s.id, s.last_used_at, s.expires_at, s.created_at, ${namedColumns}, ${orgColumns}
        from requested join session s on s.token_hash = requested.token_hash join org o on o.id = s.org_id ${named}`,
      Batcher.inOrder(calls),
    ),
  )

  /** Tokens expire by the store's clock, which is the same for all processes. */
  const grantRow = yield* together((calls: ReadonlyArray<Asked>) =>
    Effect.map(
      reads<GrantRow>`
        with ${requested(calls)}
        select requested.requested, g.id, g.client_name, array_to_string(g.scopes, ' ') as scopes, g.networks, g.last_used_at, g.expires_at,
               g.revoked_at is not null or g.expires_at <= now() as ended, a.first_used_at,
               case when g.identities is null then null else (
                 select coalesce(json_agg(json_build_object(
                   'id', i.id, 'handle', i.handle, 'canonical', i.canonical, 'status', i.status) order by i.id), '[]')
                 from identity i where i.id = any(g.identities) and i.org_id = g.org_id) end as identities,
               ${namedColumns}, ${orgColumns}
        from requested join oauth_token a on a.hash = requested.token_hash and a.kind = 'access' and a.expires_at > now()
        join client_grant g on g.id = a.grant_id join org o on o.id = g.org_id ${named}`,
      Batcher.inOrder(calls),
    ),
  )

  const key = Effect.fnUntraced(function* (
    token: string,
    canonical: string,
    kind: "admin_key" | "identity_key",
    now: number,
    from: From | undefined,
  ) {
    const row = yield* keyRow({ hash: sha256Hex(token), canonical })
    if (row === undefined) return yield* refused
    if (row.org_status === "deleting") return yield* deleting
    if (row.expires_at !== null && row.expires_at.getTime() <= now) return yield* ended
    noteUse(
      () =>
        writes`update api_key set last_used_at = ${new Date(now)},
          last_used_address = coalesce(${from?.address ?? null}, last_used_address) where id = ${row.id}`,
      row.last_used_at,
      now,
    )
    const caller: CallerInfo = {
      kind,
      org: orgOf(row),
      credentialId: row.id,
      keyName: row.name,
      scopes: scopesOf(row.scopes),
      identities:
        row.identity_id === null || row.handle === null || row.canonical === null
          ? null
          : [{ id: row.identity_id, handle: row.handle, canonical: row.canonical, status: row.status }],
      networks: networksOf(row.networks),
      expiresAt: row.expires_at,
      grant: null,
      session: null,
    }
    return { caller, named: namedOf(row, canonical) } satisfies Resolved
  })

  const session = Effect.fnUntraced(function* (token: string, canonical: string, now: number) {
    const row = yield* sessionRow({ hash: sha256Hex(token), canonical })
    if (row === undefined || row.expires_at.getTime() <= now) return yield* refused
    if (row.org_status === "deleting") return yield* deleting
    noteUse(
      () =>
        writes`update session set last_used_at = ${new Date(now)}, expires_at = ${new Date(now + Timing.sessionMillis)} where id = ${row.id}`,
      row.last_used_at,
      now,
    )
    const caller: CallerInfo = {
      kind: "session",
      org: orgOf(row),
      credentialId: row.id,
      keyName: null,
      scopes: unlimited,
      identities: null,
      networks: null,
      expiresAt: null,
      grant: null,
      session: { expiresAt: row.expires_at, createdAt: row.created_at },
    }
    return { caller, named: namedOf(row, canonical) } satisfies Resolved
  })

  const grant = Effect.fnUntraced(function* (token: string, canonical: string, now: number, from: From) {
    const hash = sha256Hex(token)
    const row = yield* grantRow({ hash, canonical })
    if (row === undefined) return yield* refused
    if (row.org_status === "deleting") return yield* deleting
    if (row.ended) return yield* revoked
    // The first use of a token proves that its client received it.
    noteUse(
      () => writes`
        with presented as (
          update oauth_token set first_used_at = now() where hash = decode(${hash}, 'hex') and first_used_at is null
        )
        update client_grant set last_used_at = ${new Date(now)}, last_used_address = ${from.address} where id = ${row.id}`,
      row.first_used_at === null ? null : row.last_used_at,
      now,
    )
    const caller: CallerInfo = {
      kind: "grant",
      org: orgOf(row),
      credentialId: row.id,
      keyName: null,
      scopes: scopesOf(row.scopes),
      identities: row.identities,
      networks: networksOf(row.networks),
      expiresAt: row.expires_at,
      grant: { id: row.id, client: row.client_name },
      session: null,
    }
    return { caller, named: namedOf(row, canonical) } satisfies Resolved
  })

  /**
   * Resolves a credential. `canonical` is the Handle that the call names ("" for none). `from` is recorded with the use
   * of a key.
   */
  const resolveNaming = Effect.fnUntraced(function* (
    credential: Redacted.Redacted<string>,
    canonical: string,
    from?: From,
  ) {
    const token = Redacted.value(credential)
    const kind = kindOf(token)
    if (kind === undefined) return yield* refused
    const now = yield* Clock.currentTimeMillis
    if (kind === "grant") {
      return yield* from?.via === "mcp" ? grant(token, canonical, now, from) : onlyForTools
    }
    return yield* kind === "session" ? session(token, canonical, now) : key(token, canonical, kind, now, from)
  })

  return {
    resolveNaming,
    resolve: (credential: Redacted.Redacted<string>, from?: From) =>
      Effect.map(resolveNaming(credential, "", from), ({ caller }) => caller),
  }
})

export class CredentialLookup extends Context.Service<CredentialLookup, Effect.Success<typeof make>>()(
  "@svc/cluster/account/CredentialLookup",
) {
  static readonly layer = Layer.effect(CredentialLookup, make)
}
