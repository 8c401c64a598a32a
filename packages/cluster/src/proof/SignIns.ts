/**
 * Sign-ins of Identities at relying parties of OpenID Connect (Core 1.0, the code flow with PKCE). The agent posts the
 * authorization request of a site and gets the address of the site with a code, which `SignInTokens` exchanges. Codes are
 * handed out by `IssuePermission`, so none is after a stop, a deletion or a revocation has been confirmed. Ages are
 * measured by the database's clock.
 */
import { randomBytes } from "node:crypto"
import type { Initiator } from "@svc/domain/account/Initiator"
import { makeOAuthToken } from "@svc/domain/account/Token"
import type { ClientDetails } from "@svc/domain/oauth/Client"
import { hostOf } from "@svc/domain/oauth/Redirect"
import type { PageRequest } from "@svc/domain/Paging"
import { Conflict, NotFound } from "@svc/domain/problems/Problem"
import type { AgentSignIn } from "@svc/domain/proof/SignIn"
import { Clock, Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import type { AuditNote } from "../actor/Write.ts"
import { orClosed } from "../audit/Audit.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { sha256 } from "../credentials/CredentialMint.ts"
import { raise } from "../events/Raise.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, type Sql, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { type Credential, permitted, type ProofSubject } from "./IssuePermission.ts"

/** Sign-ins of an Identity that may await approval at a time. */
const awaitingAtMost = 20

/** A validated authorization request. */
export interface SignInRequest {
  /** The id of the sign-in, if it is a new one. */
  readonly id: string
  readonly client: ClientDetails & { readonly id: string }
  readonly redirect: string
  readonly scopes: ReadonlyArray<string>
  readonly nonce: string | null
  /** The S256 challenge of the client's verifier (RFC 7636). */
  readonly challenge: string
  /** Whether the caller may use every site, because it may change the list. */
  readonly isFree: boolean
}

/** Returns the time after so many milliseconds. */
export const after = (sql: Sql, millis: number) => sql`clock_timestamp() + ${`${millis} milliseconds`}::interval`

/** Returns the members of an Event, from the columns of a gate. */
export const aboutEvent = (sql: Sql) => ({ sign_in_id: sql`id::text`, site: sql`site`, client_name: sql`client_name` })

export const changeBy = (sql: Sql, subject: ProofSubject, by: Initiator, at: number) => ({
  sql,
  identity: subject,
  at: new Date(at),
  by,
})

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const sql = yield* Writes
  const sealing = yield* Sealing
  const feed = yield* ChangeFeed

  const columns = sql`
    s.id, s.site, s.client_id, s.client_name, s.redirect as redirect_uri, s.scopes, s.created_at, s.expires_at, s.decided_at,
    s.signed_in_at, s.ended_at,
    case when s.status in ('awaiting_approval', 'approved', 'started') and s.expires_at <= clock_timestamp() then 'expired'
      else s.status end as status`

  const find = (where: Statement.Fragment) =>
    Effect.map(
      sql<AgentSignIn>`select ${columns} from agent_sign_in s where ${where} order by s.id desc limit 1`,
      ([row]) => row,
    )

  const read = Effect.fnUntraced(function* (identity: string, id: string) {
    const found = yield* find(sql`s.identity_id = ${identity}::uuid and s.id = ${id}::uuid`)
    return found ?? (yield* new NotFound({ detail: "The sign-in does not exist." }))
  }, orUnavailable)

  const create = Effect.fnUntraced(function* (
    subject: ProofSubject,
    caller: Credential,
    { id, client, redirect, scopes, nonce, challenge, isFree }: SignInRequest,
    by: Initiator,
    note: AuditNote,
  ) {
    const site = hostOf(redirect)
    const code = makeOAuthToken("signInCode", randomBytes(32))
    const now = yield* Clock.currentTimeMillis
    const algorithm = client.idTokenAlgorithm ?? "RS256"
    /** A sign-in of the same client at the same site, for at least these scopes, that awaits approval or has it. */
    const open = sql`s.identity_id = ${subject.id}::uuid and s.client_id = ${client.id}::text and s.site = ${site}::text
      and s.scopes @> ${scopes}::text[] and s.status in ('awaiting_approval', 'approved') and s.expires_at > clock_timestamp()`
    const insert = (status: string, codeHash: Uint8Array | null, millis: number) => sql`
      insert into agent_sign_in (id, identity_id, client_id, client_name, redirect, site, scopes, status, created_at,
        expires_at, nonce, challenge, algorithm, credential_kind, credential_id, code_hash)
      select ${id}::uuid, ${subject.id}::uuid, ${client.id}::text, ${client.name}::text, ${redirect}::text, ${site}::text,
        ${scopes}::text[], ${status}::text, clock_timestamp(), ${after(sql, millis)}, ${nonce}::text, ${challenge}::text,
        ${algorithm}::text, ${caller.kind}::text, ${caller.credentialId}::uuid, ${codeHash}::bytea
      from allowed`
    const codeHash = sha256(code)
    const isAllowed = sql`(${isFree}::boolean or exists (select from taken where status = 'approved') or exists (
      select from proof_setting p where p.identity_id = ${subject.id}::uuid
        and (p.sites = '"any"'::jsonb or (jsonb_typeof(p.sites) = 'array' and p.sites ? ${site}::text))))`
    const isStarted = yield* permitted(sql, subject, caller, note, now, isAllowed, {
      // The lock makes an approval good for one code.
      before: sql`taken as materialized (
        select s.id, s.status from agent_sign_in s, standing where ${open} order by s.status, s.id limit 1 for update of s
      ),`,
      after: sql`,
        resumed as (
          update agent_sign_in s
          set status = 'started', code_hash = ${codeHash}::bytea, expires_at = ${after(sql, Timing.codeMillis)},
              redirect = ${redirect}::text, scopes = ${scopes}::text[], nonce = ${nonce}::text, challenge = ${challenge}::text,
              algorithm = ${algorithm}::text, credential_kind = ${caller.kind}::text,
              credential_id = ${caller.credentialId}::uuid
          from taken, allowed where s.id = taken.id
        ),
        made as (${insert("started", codeHash, Timing.codeMillis)} where not exists (select from taken))`,
    })
    if (isStarted) {
      feed.announce({ org: subject.orgId, identity: subject.id })
      const started = yield* orUnavailable(find(sql`s.code_hash = ${codeHash}::bytea`))
      return { code, signIn: started ?? (yield* new NotFound({ detail: "The Identity does not exist." })) }
    }
    const request = permitted(sql, subject, caller, note, now, sql`true`, {
      after: sql`,
        made as (
          ${insert("awaiting_approval", null, Timing.approvalMillis)}
          where not exists (select from agent_sign_in s where ${open}) and ${awaitingAtMost} > (
            select count(*) from agent_sign_in s where s.identity_id = ${subject.id}::uuid
              and s.status = 'awaiting_approval' and s.expires_at > clock_timestamp())
          returning id, site, client_name
        ),
        ${raise(changeBy(sql, subject, by, now), "made", "identity.sign_in_requested", aboutEvent(sql))}`,
    })
    // The requests of an Identity are made one after another, so that the count is exact and none is made twice.
    const lock = sql`select from identity where id = ${subject.id}::uuid for no key update`
    yield* orUnavailable(sql.withTransaction(Effect.andThen(lock, request)))
    const waiting = yield* orUnavailable(find(open))
    if (waiting === undefined) {
      return yield* new Conflict({
        detail: `${awaitingAtMost} sign-ins of the Identity await approval already. Wait for a decision, or end some of them.`,
      })
    }
    feed.announce({ org: subject.orgId, identity: subject.id })
    return { code: undefined, signIn: waiting }
  })

  /** Approves or refuses a sign-in. */
  const decide = Effect.fn("SignIns.decide")(function* (
    subject: ProofSubject,
    id: string,
    isApproved: boolean,
    by: Initiator,
    note: AuditNote | undefined,
  ) {
    const at = yield* Clock.currentTimeMillis
    const [done] = yield* sql`
      with owner as (
        select i.id from identity i join org o on o.id = i.org_id
        where i.id = ${subject.id}::uuid and i.status = 'ready' and o.status = 'active' for share of i, o
      ),
      decided as (
        update agent_sign_in s set status = ${isApproved ? "approved" : "refused"}::text, decided_at = clock_timestamp(),
          expires_at = ${after(sql, Timing.signInApprovedMillis)}
        from owner where s.id = ${id}::uuid and s.identity_id = owner.id and s.status = 'awaiting_approval'
          and s.expires_at > clock_timestamp()
        returning s.id, s.site, s.client_name
      ),
      ${raise(changeBy(sql, subject, by, at), "decided", isApproved ? "identity.sign_in_approved" : "identity.sign_in_refused", { ...aboutEvent(sql), by: by.kind })}
      ${auditWriteWith(sql, note, "decided")}
      select id from decided`
    const found = yield* read(subject.id, id)
    if (done === undefined) return yield* new Conflict({ detail: `The sign-in is ${found.status}.` })
    feed.announce({ org: subject.orgId, identity: subject.id })
    return found
  }, orUnavailable)

  return {
    /** Starts a sign-in and returns its code, or a sign-in without a code that awaits approval. */
    create: (...parameters: Parameters<typeof create>) => orClosed(create(...parameters)),

    decide,

    /** Ends a sign-in. Its code and its access token are no longer valid; the site is not notified. */
    end: Effect.fn("SignIns.end")(function* (subject: ProofSubject, id: string, note: AuditNote | undefined) {
      const [row] = yield* sql<{ known: boolean }>`
        with known as (
          select id from agent_sign_in where id = ${id}::uuid and identity_id = ${subject.id}::uuid for update
        ),
        ended as (
          update agent_sign_in s set status = 'ended', ended_at = clock_timestamp()
          from known where s.id = known.id and s.status not in ('ended', 'refused')
        )
        ${auditWriteWith(sql, note, "known")}
        select exists (select from known) as known`
      if (row?.known !== true) return yield* new NotFound({ detail: "The sign-in does not exist." })
    }, orUnavailable),

    read,

    /** Returns the sign-ins of an Identity, newest first. */
    list: (identity: string, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `sign-ins/${identity}`,
          request,
          (behind, atMost) => reads<AgentSignIn>`
            select ${columns} from agent_sign_in s
            where s.identity_id = ${identity}::uuid ${behind === undefined ? sql`` : sql`and s.id < ${behind}::uuid`}
            order by s.id desc limit ${atMost}`,
          ({ id }) => id,
          (row) => row,
        ),
      ),
  }
})

export class SignIns extends Context.Service<SignIns, Effect.Success<typeof make>>()("@svc/cluster/proof/SignIns") {
  static readonly layer = Layer.effect(SignIns, make)
}
