/**
 * Issues identity tokens (JWT, RFC 7519). A token is signed first; then `IssuePermission` decides
 * whether it may be handed out.
 */
import { type AddressBook, Addresses, email } from "@svc/domain/Addresses"
import type { Initiator } from "@svc/domain/account/Initiator"
import { AudienceNotAllowed, NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import type { ProofPatch, ProofSettings } from "@svc/domain/proof/IdentityToken"
import { Clock, Context, Effect, Layer } from "effect"
import type { AuditNote } from "../actor/Write.ts"
import { orClosed } from "../audit/Audit.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { raise } from "../events/Raise.ts"
import { orUnavailable, Reads, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { type Credential, endOf, permitted, type ProofSubject } from "./IssuePermission.ts"
import { type IssuerAlgorithm, IssuerKeys } from "./IssuerKeys.ts"
import * as Jws from "./Jws.ts"

/** Events about refusals per Identity and hour, since an agent chooses the audiences for which it asks. */
const refusalsAtMost = 10

export interface TokenRequest {
  readonly id: string
  readonly audience: string
  readonly seconds: number
  readonly nonce: string | undefined
  readonly algorithm: IssuerAlgorithm
  /** Whether the caller may use every audience, because it may change the list. */
  readonly isFree: boolean
}

const claimsOf = (book: AddressBook, subject: ProofSubject, { grant }: Credential, { id, nonce }: TokenRequest) => ({
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

  /** Raises `proof.token_refused`, unless the last hour has an Event for this audience, or ten. */
  const raiseRefusal = (subject: ProofSubject, audience: string, at: Date, by: Initiator) => {
    const identity = { id: subject.id, handle: subject.handle, orgId: subject.orgId }
    return orUnavailable(sql`
      with recent as (
        select e.data->>'audience' as audience from event e
        where e.org_id = ${subject.orgId}::uuid and e.type = 'proof.token_refused' and e.identity_id = ${subject.id}::uuid
          and e.created_at > ${at}::timestamptz - ${Timing.refusalWindow}::interval
      ),
      news as (
        select i.id from identity i where i.id = ${subject.id}::uuid and i.status <> 'deleting'
          and (select count(*) < ${refusalsAtMost} from recent)
          and not exists (select from recent where audience = ${audience}::text)
        for share
      ),
      ${raise({ sql, identity, at, by }, "news", "proof.token_refused", { audience })}
      select 1`)
  }

  const issue = Effect.fnUntraced(function* (
    subject: ProofSubject,
    caller: Credential,
    request: TokenRequest,
    note: AuditNote,
    by: Initiator,
  ) {
    const now = yield* Clock.currentTimeMillis
    const issuedAt = Math.floor(now / 1000)
    const end = endOf(issuedAt, request.seconds, caller)
    const token = yield* Jws.jwt(request.algorithm, yield* keys.signing(request.algorithm), {
      ...claimsOf(book, subject, caller, request),
      iss: book.baseUrl,
      sub: `agent:${subject.id}`,
      aud: request.audience,
      iat: issuedAt,
      nbf: issuedAt,
      exp: end,
    })
    const isListed = sql`(${request.isFree}::boolean or exists (
      select from proof_setting p where p.identity_id = ${subject.id}::uuid
        and (p.audiences = '"any"'::jsonb or (jsonb_typeof(p.audiences) = 'array' and p.audiences ? ${request.audience}::text))))`
    if (!(yield* permitted(sql, subject, caller, note, now, isListed))) {
      yield* raiseRefusal(subject, request.audience, new Date(now), by)
      return yield* new AudienceNotAllowed({
        detail: `The Identity may not get tokens for ${request.audience}. The account holder allows audiences with \`PATCH /api/identities/${subject.handle}/proof\`.`,
      })
    }
    return { token, expires_at: new Date(end * 1000) }
  })

  const settings = Effect.fnUntraced(function* (id: string) {
    const [row] = yield* reads<ProofSettings>`select audiences, sites from proof_setting where identity_id = ${id}`
    const found: ProofSettings = { audiences: row?.audiences ?? [], sites: row?.sites ?? [] }
    return found
  }, orUnavailable)

  return {
    /** Issues a token. It is recorded in the audit log, or not issued. */
    issue: (...parameters: Parameters<typeof issue>) => orClosed(issue(...parameters)),

    settings,

    /**
     * Sets the audiences for which the Identity may get tokens, and the sites at which it may sign in. Fails if `seen` is given
     * and the settings are others.
     */
    set: Effect.fn("IdentityTokens.set")(function* (
      subject: ProofSubject,
      { audiences, sites }: ProofPatch,
      seen: ProofSettings | undefined,
      note: AuditNote | undefined,
    ) {
      /** The new value, or null for an unchanged one. */
      const value = (list: ProofPatch["sites"]) => sql`${list === undefined ? null : JSON.stringify(list)}::jsonb`
      const asSeen =
        seen === undefined
          ? sql``
          : sql`where p.audiences = ${JSON.stringify(seen.audiences)}::jsonb and p.sites = ${JSON.stringify(seen.sites)}::jsonb`
      const [row] = yield* sql<{ changed: boolean }>`
        with owner as (
          select i.id from identity i join org o on o.id = i.org_id
          where i.id = ${subject.id}::uuid and i.status <> 'deleting' and o.status = 'active' for share of i, o
        ),
        changed as (
          insert into proof_setting as p (identity_id, audiences, sites)
          select id, coalesce(${value(audiences)}, '[]'), coalesce(${value(sites)}, '[]') from owner
          on conflict (identity_id) do update
          set audiences = coalesce(${value(audiences)}, p.audiences), sites = coalesce(${value(sites)}, p.sites) ${asSeen}
          returning 1
        ) ${auditWriteWith(sql, note, "changed")}
        select exists (select from changed) as changed`
      if (row?.changed === true) return
      if (seen === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
      return yield* new PreconditionFailed({
        detail: "The settings were changed since you read them. Read them again, and repeat the change.",
      })
    }, orUnavailable),
  }
})

export class IdentityTokens extends Context.Service<IdentityTokens, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/IdentityTokens",
) {
  static readonly layer = Layer.effect(IdentityTokens, make).pipe(Layer.provide(IssuerKeys.layer))
}
