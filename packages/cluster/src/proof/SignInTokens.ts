/**
 * The tokens of sign-ins: a site exchanges its code for an ID token, and for an access token that is only good for the
 * claims of the Identity. Both are handed out by `IssuePermission`, once, and with a record in the audit log.
 */
import { hash, randomBytes } from "node:crypto"
import type { Initiator } from "@svc/domain/account/Initiator"
import { isOAuthToken, makeOAuthToken } from "@svc/domain/account/Token"
import { type AddressBook, Addresses, email, profileUrl } from "@svc/domain/Addresses"
import type { IdTokenAlgorithm } from "@svc/domain/proof/SignIn"
import { Clock, Context, Data, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import type { AuditNote } from "../actor/Write.ts"
import { sha256 } from "../credentials/CredentialMint.ts"
import { verifierFits } from "../credentials/Pkce.ts"
import { raise } from "../events/Raise.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { type Credential, endOf, permitted, type ProofSubject } from "./IssuePermission.ts"
import { IssuerKeys } from "./IssuerKeys.ts"
import * as Jws from "./Jws.ts"
import { aboutEvent, after, changeBy } from "./SignIns.ts"

/** What a site presents with a code. */
interface CodeExchange {
  readonly code: string
  readonly clientId: string
  readonly redirect: string
  readonly verifier: string
}

/** The sign-in of a code or token, for audit records. */
export interface KnownSignIn {
  readonly id: string
  readonly site: string
  readonly clientName: string
  readonly subject: ProofSubject
  /** The credential that asked for it. */
  readonly credential: Pick<Credential, "kind" | "credentialId">
}

/** The code is invalid (`invalid_grant` of RFC 6749 section 5.2). */
export class SignInRefused extends Data.TaggedError("SignInRefused")<{
  readonly description: string
  /** The sign-in that the code belongs to; undefined for a code that never existed. */
  readonly known: KnownSignIn | undefined
  /** Whether this use ended the sign-in. */
  readonly hasEnded: boolean
}> {}

interface Row {
  readonly id: string
  readonly site: string
  readonly client_id: string
  readonly client_name: string
  readonly redirect: string
  readonly scopes: ReadonlyArray<string>
  readonly status: string
  readonly fresh: boolean
  readonly nonce: string | null
  readonly challenge: string
  readonly algorithm: IdTokenAlgorithm
  readonly credential_kind: Credential["kind"]
  readonly credential_id: string
  /** When the credential expires; null if it does not, or is a session. */
  readonly credential_end: Date | null
  readonly created_at: Date
  readonly identity_id: string
  readonly org_id: string
  readonly handle: string
  readonly name: string | null
}

const knownOf = (row: Row): KnownSignIn => ({
  id: row.id,
  site: row.site,
  clientName: row.client_name,
  subject: { id: row.identity_id, orgId: row.org_id, handle: row.handle },
  credential: { kind: row.credential_kind, credentialId: row.credential_id },
})

const refused = (description: string, row?: Row, hasEnded = false) =>
  new SignInRefused({ description, known: row && knownOf(row), hasEnded })

/** Returns the claims that the scopes allow (Core 1.0 section 5.4). */
const claimsOf = (book: AddressBook, { handle, name, scopes }: Pick<Row, "handle" | "name" | "scopes">) => ({
  ...(scopes.includes("profile")
    ? { name: name ?? handle, preferred_username: handle, profile: profileUrl(book, handle) }
    : {}),
  ...(scopes.includes("email") ? { email: email(book, handle), email_verified: true } : {}),
})

const subjectOf = (identityId: string) => `agent:${identityId}`

/** Returns the hash that binds an ID token to its access token (Core 1.0 section 3.1.3.6), for algorithms with SHA-256. */
const accessHash = (token: string) => hash("sha256", token, "buffer").subarray(0, 16).toString("base64url")

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const book = yield* Addresses
  const keys = yield* IssuerKeys
  const feed = yield* ChangeFeed

  const heldBy = (where: Statement.Fragment) =>
    Effect.map(
      sql<Row>`
        select s.*, s.expires_at > clock_timestamp() as fresh, i.org_id, i.handle, c.fields ->> 'name' as name,
               (select expires_at from api_key where id = s.credential_id
                union all select expires_at from client_grant where id = s.credential_id) as credential_end
        from agent_sign_in s join identity i on i.id = s.identity_id left join card c on c.identity_id = i.id
        where ${where}`,
      ([row]) => row,
    )

  /** Ends a sign-in whose code was used twice (RFC 6749 section 4.1.2). */
  const endReused = (id: string) =>
    sql`update agent_sign_in set status = 'ended', ended_at = clock_timestamp() where id = ${id} and status = 'signed_in'`

  const exchange = Effect.fnUntraced(function* (
    { code, clientId, redirect, verifier }: CodeExchange,
    noteOf: (known: KnownSignIn) => Effect.Effect<AuditNote>,
  ) {
    if (!isOAuthToken("signInCode", code)) return yield* refused("The code is invalid.")
    const codeHash = sha256(code)
    const row = yield* orUnavailable(heldBy(sql`s.code_hash = ${codeHash}::bytea`))
    if (row === undefined) return yield* refused("The code is unknown or has expired.")
    if (row.client_id !== clientId) return yield* refused("The code was issued to another client.", row)
    const reuse = Effect.gen(function* () {
      yield* orUnavailable(endReused(row.id))
      return yield* refused("The code was already used. The tokens that were issued for it are revoked.", row, true)
    })
    if (row.status === "signed_in") return yield* reuse
    if (row.status !== "started" || !row.fresh) return yield* refused("The code has expired.", row)
    if (row.redirect !== redirect) return yield* refused("The code was issued for another redirect_uri.", row)
    if (!verifierFits(verifier, row.challenge)) {
      return yield* refused("The code_verifier does not match the code.", row)
    }
    const access = makeOAuthToken("userinfo", randomBytes(32))
    const now = yield* Clock.currentTimeMillis
    const issuedAt = Math.floor(now / 1000)
    const known = knownOf(row)
    const { subject } = known
    const credential: Credential = { ...known.credential, expiresAt: row.credential_end, grant: null }
    const end = endOf(issuedAt, Timing.idTokenMillis / 1000, credential)
    const idToken = yield* Jws.jwt(row.algorithm, yield* keys.signing(row.algorithm), {
      ...claimsOf(book, row),
      jti: row.id,
      auth_time: Math.floor(row.created_at.getTime() / 1000),
      at_hash: accessHash(access),
      ...(row.nonce === null ? {} : { nonce: row.nonce }),
      iss: book.baseUrl,
      sub: subjectOf(row.identity_id),
      aud: row.client_id,
      iat: issuedAt,
      exp: end,
    })
    const by: Initiator = { ...known.credential, requestId: null }
    const isFirst = yield* permitted(
      sql,
      subject,
      credential,
      yield* noteOf(known),
      now,
      sql`exists (select from held)`,
      {
        // The lock makes the code good for one exchange.
        before: sql`held as materialized (
        select s.id from agent_sign_in s, standing
        where s.id = ${row.id}::uuid and s.code_hash = ${codeHash}::bytea and s.status = 'started'
          and s.expires_at > clock_timestamp()
        for update of s
      ),`,
        after: sql`,
        used as (
          update agent_sign_in s set status = 'signed_in', signed_in_at = clock_timestamp(),
            access_hash = ${sha256(access)}::bytea, expires_at = least(${after(sql, Timing.idTokenMillis)}, ${row.credential_end}::timestamptz)
          from held, allowed where s.id = held.id returning s.id, s.site, s.client_name, s.scopes
        ),
        ${raise(changeBy(sql, subject, by, now), "used", "identity.signed_in", { ...aboutEvent(sql), scopes: sql`to_jsonb(scopes)` })}`,
      },
    ).pipe(
      // The Identity was stopped or deleted, or the credential was revoked, since the code was issued.
      Effect.catchIf(
        ({ _tag }) => _tag !== "unavailable",
        () => Effect.fail(refused("The code is no longer valid.", row)),
      ),
    )
    if (!isFirst) {
      const meanwhile = yield* orUnavailable(heldBy(sql`s.id = ${row.id}::uuid`))
      return yield* meanwhile?.status === "signed_in" ? reuse : Effect.fail(refused("The code has expired.", row))
    }
    feed.announce({ org: subject.orgId, identity: subject.id })
    return { access, idToken, scopes: row.scopes, expiresInSeconds: end - issuedAt }
  })

  return {
    /** Exchanges a code for an ID token and an access token, once. Both are on record, or not handed out. */
    exchange,

    /** Returns the claims of the Identity that signed in, or undefined if the access token is not valid. */
    claims: Effect.fn("SignIns.claims")(function* (token: string) {
      if (!isOAuthToken("userinfo", token)) return undefined
      const row = yield* heldBy(sql`
        s.access_hash = ${sha256(token)}::bytea and s.status = 'signed_in' and s.expires_at > clock_timestamp()
        and i.status = 'ready' and exists (
          select from mailbox m join org o on o.id = i.org_id
          where m.identity_id = i.id and m.stopped_at is null and o.status = 'active')
        and case s.credential_kind
          when 'session' then exists (
            select from session c where c.id = s.credential_id and c.expires_at > clock_timestamp())
          when 'grant' then exists (
            select from client_grant g where g.id = s.credential_id and g.revoked_at is null
              and g.expires_at > clock_timestamp() and (g.identities is null or i.id = any(g.identities)))
          else exists (select from api_key k where k.id = s.credential_id and k.revoked_at is null) end`)
      return row === undefined ? undefined : { sub: subjectOf(row.identity_id), ...claimsOf(book, row) }
    }, orUnavailable),
  }
})

export class SignInTokens extends Context.Service<SignInTokens, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/SignInTokens",
) {
  static readonly layer = Layer.effect(SignInTokens, make).pipe(Layer.provide(IssuerKeys.layer))
}
