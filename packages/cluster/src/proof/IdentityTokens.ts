/**
 * Issues identity tokens (JWT, RFC 7519). A token is signed first, on the thread pool. Then one statement decides
 * whether it may be issued, and records it in the audit log: it locks the rows that a stop, a deletion and a revocation
 * change, so no token is issued after one of these has been confirmed. A refused token is discarded.
 */
import { type AddressBook, Addresses, email } from "@svc/domain/Addresses"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import {
  AudienceNotAllowed,
  IdentityNotReady,
  MailPaused,
  NotFound,
  Unauthenticated,
} from "@svc/domain/problems/Problem"
import type { ProofSettings } from "@svc/domain/proof/IdentityToken"
import { Clock, Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import type { AuditNote } from "../actor/Write.ts"
import { orClosed } from "../audit/Audit.ts"
import { auditWrite, auditWriteWith } from "../audit/AuditWrite.ts"
import { orUnavailable, Reads, type Sql, Writes } from "../store/Database.ts"
import { type IssuerAlgorithm, IssuerKeys } from "./IssuerKeys.ts"
import { jose } from "./Jose.ts"

interface TokenSubject {
  readonly id: string
  readonly orgId: string
  readonly handle: string
}

export interface TokenRequest {
  readonly id: string
  readonly audience: string
  readonly seconds: number
  readonly nonce: string | undefined
  readonly algorithm: IssuerAlgorithm
  /** Whether the caller may use every audience, because it may change the list. */
  readonly isFree: boolean
}

type Credential = Pick<CallerInfo, "kind" | "credentialId" | "expiresAt" | "grant">

/** Returns the CTE `credential`: has a row, locked for the statement, while the credential is valid. */
const credentialOf = (sql: Sql, { kind, credentialId }: Credential, at: Date): Statement.Fragment =>
  kind === "session"
    ? sql`credential as (select from session where id = ${credentialId}::uuid for share)`
    : kind === "grant"
      ? sql`credential as (
          select from client_grant where id = ${credentialId}::uuid and revoked_at is null and expires_at > ${at}::timestamptz
          for share)`
      : sql`credential as (
          select from api_key where id = ${credentialId}::uuid and revoked_at is null
            and (expires_at is null or expires_at > ${at}::timestamptz) for share)`

interface Standing {
  readonly status: string
  readonly stopped: boolean
  readonly listed: boolean
  readonly valid: boolean
  readonly issued: boolean
}

const claimsOf = (book: AddressBook, subject: TokenSubject, { grant }: Credential, { id, nonce }: TokenRequest) => ({
  jti: id,
  handle: subject.handle,
  email: email(book, subject.handle),
  email_verified: true,
  org: subject.orgId,
  ...(nonce === undefined ? {} : { nonce }),
  // The app that asked for the agent (RFC 8693 section 4.1).
  ...(grant === null ? {} : { act: { sub: grant.id } }),
})

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const sql = yield* Writes
  const book = yield* Addresses
  const keys = yield* IssuerKeys

  const issue = Effect.fnUntraced(function* (
    subject: TokenSubject,
    caller: Credential,
    request: TokenRequest,
    note: AuditNote,
  ) {
    const { SignJWT } = yield* Effect.promise(jose)
    const now = yield* Clock.currentTimeMillis
    const issuedAt = Math.floor(now / 1000)
    // A token does not outlive its credential.
    const end = Math.min(issuedAt + request.seconds, Math.floor((caller.expiresAt?.getTime() ?? Infinity) / 1000))
    const { kid, key } = yield* keys.signing(request.algorithm)
    const token = yield* Effect.promise(() =>
      new SignJWT(claimsOf(book, subject, caller, request))
        .setProtectedHeader({ alg: request.algorithm, kid, typ: "JWT" })
        .setIssuer(book.baseUrl)
        .setSubject(`agent:${subject.id}`)
        .setAudience(request.audience)
        .setIssuedAt(issuedAt)
        .setNotBefore(issuedAt)
        .setExpirationTime(end)
        .sign(key),
    )
    const [row] = yield* orUnavailable(sql<Standing>`
      with ${credentialOf(sql, caller, new Date(now))},
      standing as materialized (
        select i.status, m.stopped_at is not null as stopped
        from identity i join org o on o.id = i.org_id join mailbox m on m.identity_id = i.id
        where i.id = ${subject.id}::uuid and i.org_id = ${subject.orgId}::uuid and o.status = 'active'
        for share of i, o, m
      ),
      judged as materialized (
        select s.status, s.stopped, exists (select from credential) as valid,
          ${request.isFree}::boolean or exists (
            select from proof_setting p where p.identity_id = ${subject.id}::uuid
              and (p.audiences = '"any"'::jsonb or (jsonb_typeof(p.audiences) = 'array' and p.audiences ? ${request.audience}::text))
          ) as listed
        from standing s
      ),
      allowed as (select from judged where status = 'ready' and not stopped and valid and listed),
      ${auditWrite(sql, note, "allowed")}
      select judged.*, exists (select from on_record) as issued from judged`)
    if (row === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
    if (row.status !== "ready") return yield* new IdentityNotReady({ detail: `The Identity is ${row.status}.` })
    if (!row.valid) return yield* new Unauthenticated({ detail: "The credential is not valid any more." })
    if (row.stopped) return yield* new MailPaused({ detail: "The Identity is stopped, so it gets no tokens." })
    if (!row.listed) {
      return yield* new AudienceNotAllowed({
        detail: `The Identity may not get tokens for ${request.audience}. The account holder allows audiences with \`PATCH /api/identities/${subject.handle}/proof\`.`,
      })
    }
    if (!row.issued) return yield* Effect.die("a token was not recorded")
    return { token, expires_at: new Date(end * 1000) }
  })

  const settings = Effect.fnUntraced(function* (id: string) {
    const [row] = yield* reads<ProofSettings>`select audiences from proof_setting where identity_id = ${id}`
    const found: ProofSettings = { audiences: row?.audiences ?? [] }
    return found
  }, orUnavailable)

  return {
    /** Issues a token. It is recorded in the audit log, or not issued. */
    issue: (...parameters: Parameters<typeof issue>) => orClosed(issue(...parameters)),

    settings,

    /** Sets the audiences for which the Identity may get tokens. */
    setAudiences: Effect.fn("IdentityTokens.setAudiences")(function* (
      subject: TokenSubject,
      audiences: ProofSettings["audiences"],
      note: AuditNote | undefined,
    ) {
      const [row] = yield* sql<{ changed: boolean }>`
        with owner as (
          select i.id from identity i join org o on o.id = i.org_id
          where i.id = ${subject.id}::uuid and i.status <> 'deleting' and o.status = 'active' for share of i, o
        ),
        changed as (
          insert into proof_setting (identity_id, audiences)
          select id, ${JSON.stringify(audiences)}::jsonb from owner
          on conflict (identity_id) do update set audiences = excluded.audiences
          returning 1
        ) ${auditWriteWith(sql, note, "changed")}
        select exists (select from changed) as changed`
      if (row?.changed !== true) return yield* new NotFound({ detail: "The Identity does not exist." })
    }, orUnavailable),
  }
})

export class IdentityTokens extends Context.Service<IdentityTokens, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/IdentityTokens",
) {
  static readonly layer = Layer.effect(IdentityTokens, make).pipe(Layer.provide(IssuerKeys.layer))
}
