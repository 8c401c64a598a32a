/**
 * Decides whether a token or a signature may be handed out, in the statement that records it in the audit log. The proof
 * is signed first. The statement locks the rows that a stop, a deletion and a revocation change, so nothing is handed
 * out after one of these has been confirmed; what was signed for a refused request is discarded.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { notReady } from "@svc/domain/identity/NotReady"
import { MailPaused, NotFound, Unauthenticated } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import type { AuditNote } from "../actor/Write.ts"
import { auditWrite } from "../audit/AuditWrite.ts"
import { lockOf } from "../credentials/CredentialLock.ts"
import { orUnavailable, type Sql } from "../store/Database.ts"

export interface ProofSubject {
  readonly id: string
  readonly orgId: string
  readonly handle: string
}

/** The scope that a credential needs for every token and signature of this module. */
const scope = "proof:token"

export type Credential = Pick<CallerInfo, "kind" | "credentialId" | "expiresAt" | "grant">

/** Returns when something ends that must not outlive its credential, in seconds. */
export const endOf = (issuedAt: number, seconds: number, { expiresAt }: Credential): number =>
  Math.min(issuedAt + seconds, Math.floor((expiresAt?.getTime() ?? Infinity) / 1000))

/** CTEs of the caller's own. */
interface Statements {
  /** Can select from `standing`, and `condition` can select from it. It ends with a comma. */
  readonly before?: Statement.Fragment
  /** Changes that are made if the proof is allowed, by a select from `allowed`. It begins with a comma. */
  readonly after?: Statement.Fragment
}

interface Standing {
  readonly status: string
  readonly stopped: boolean
  readonly met: boolean
  readonly valid: boolean
  readonly issued: boolean
}

/**
 * Records the proof and returns true; returns false if only `condition` is not met. Fails if the Identity or the
 * credential gets none.
 */
export const permitted = Effect.fnUntraced(function* (
  sql: Sql,
  subject: ProofSubject,
  caller: Credential,
  note: AuditNote,
  at: number,
  condition: Statement.Fragment,
  { before = sql``, after = sql`` }: Statements = {},
) {
  const [row] = yield* orUnavailable(sql<Standing>`
    with credential as (${lockOf(sql, caller, new Date(at), { identityId: subject.id, scope })}),
    standing as materialized (
      select i.status, m.stopped_at is not null as stopped
      from identity i join org o on o.id = i.org_id join mailbox m on m.identity_id = i.id
      where i.id = ${subject.id}::uuid and i.org_id = ${subject.orgId}::uuid and o.status = 'active'
      for share of i, o, m
    ),
    ${before}
    judged as materialized (
      select s.status, s.stopped, exists (select from credential) as valid, ${condition} as met from standing s
    ),
    allowed as (select from judged where status = 'ready' and not stopped and valid and met),
    ${auditWrite(sql, note, "allowed")}
    ${after}
    select judged.*, exists (select from on_record) as issued from judged`)
  if (row === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
  if (row.status !== "ready") return yield* notReady(row.status)
  if (!row.valid) return yield* new Unauthenticated({ detail: "The credential was revoked or narrowed." })
  if (row.stopped) return yield* new MailPaused({ detail: "The Identity is stopped, so nothing is signed for it." })
  if (!row.met) return false
  if (!row.issued) return yield* Effect.die("a proof was not recorded")
  return true
})
