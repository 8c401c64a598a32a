/**
 * Stores the first response to an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header) for a day. A record
 * also holds the command id of the first request: a request that resumes after a crash repeats the same command, which
 * is carried out once (traps.md 4, 18).
 */
import { createHmac } from "node:crypto"
import { makeUuidV7 } from "@svc/domain/Ids"
import { IdempotencyKeyInProgress, IdempotencyKeyReused } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import { sha256 } from "../credentials/CredentialMint.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** The scope in which a key is unique. */
export interface Scope {
  readonly credentialId: string
  /** Method and path of the request. */
  readonly operation: string
  readonly key: string
}

export interface StoredAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The response body; null if it carried a secret and was not stored. */
  readonly body: string | null
}

type Claim =
  | {
      readonly _tag: "Fresh"
      readonly commandId: string
      /** Whether an attempt of the same command was interrupted before, which may have carried it out. */
      readonly interrupted: boolean
    }
  | { readonly _tag: "Answered"; readonly answer: StoredAnswer }

interface Row {
  readonly mine: boolean
  readonly same: boolean
  readonly command_id: string
  readonly status: number | null
  readonly headers: Readonly<Record<string, string>> | null
  readonly body: string | null
}

/** Shortens long paths, which may exceed what an index can hold (2,704 bytes with the key). */
const named = (operation: string): string =>
  operation.length <= 1000 ? operation : `sha-256 ${Buffer.from(sha256(operation)).toString("base64url")}`

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const keys = [...(yield* Sealing).derived("idempotency").values()]
  /**
   * Returns what identifies a request's body: first what is stored, then what other master keys and earlier versions store.
   * A keyed hash, since the body may carry a secret that is short enough to be guessed.
   */
  const fingerprints = (request: string) => [
    ...keys.map((key): Uint8Array => createHmac("sha256", key).update(request).digest()),
    sha256(request),
  ]
  const where = ({ credentialId, operation, key }: Scope) =>
    sql`credential_id = ${credentialId}::uuid and operation = ${named(operation)} and key = ${key}`

  return {
    /** Claims the request for this caller, or returns the first response, which is stored for `keptMillis`. */
    claim: Effect.fn("IdempotencyRecords.claim")(function* (
      scope: Scope,
      request: string,
      keptMillis: number = Timing.idempotencyMillis,
    ) {
      const now = yield* Clock.currentTimeMillis
      const at = new Date(now)
      const expired = new Date(now - keptMillis)
      const known = fingerprints(request)
      const isSame = sql`fingerprint in ${sql.in(known)}`
      const commandId = yield* makeUuidV7
      // Expired records start over; an interrupted request resumes under its own command.
      const look = sql<Row>`
        with mine as (
          insert into idempotency_record as r (credential_id, operation, key, fingerprint, command_id, started_at)
          values (${scope.credentialId}, ${named(scope.operation)}, ${scope.key}, ${known[0]!}, ${commandId}, ${at})
          on conflict (credential_id, operation, key) do update
          set started_at = excluded.started_at, fingerprint = excluded.fingerprint, status = null, headers = null, body = null,
              command_id = case when r.started_at <= ${expired} then excluded.command_id else r.command_id end
          where r.started_at <= ${expired}
             or (r.status is null and r.started_at <= ${new Date(now - Timing.idempotencyAbandonedMillis)} and r.${isSame})
          returning command_id
        )
        select true as mine, true as same, command_id, null::int as status, null::jsonb as headers, null::text as body from mine
        union all
        select false, ${isSame}, command_id, status, headers, body
        from idempotency_record
        where ${where(scope)} and started_at > ${expired} and not exists (select from mine)`
      // If another transaction commits the record while this one waits, this insert does nothing and its snapshot does
      // not contain the record. The next statement sees it.
      let row: Row | undefined
      while (row === undefined) [row] = yield* look
      if (row.mine)
        return { _tag: "Fresh", commandId: row.command_id, interrupted: row.command_id !== commandId } as Claim
      if (!row.same)
        return yield* new IdempotencyKeyReused({ detail: "This key was already used with a different request." })
      if (row.status === null) {
        return yield* new IdempotencyKeyInProgress({
          detail: "The first request with this key is still running.",
          retry_after_seconds: 1,
        })
      }
      return { _tag: "Answered", answer: { status: row.status, headers: row.headers ?? {}, body: row.body } } as Claim
    }, orUnavailable),

    /** Stores the first response. */
    settle: (scope: Scope, answer: StoredAnswer) =>
      orUnavailable(sql`
        update idempotency_record
        set status = ${answer.status}, headers = ${JSON.stringify(answer.headers)}::jsonb, body = ${answer.body}::text
        where ${where(scope)} and status is null`),

    /** Deletes the record of a request that was rejected temporarily and changed nothing. */
    forget: (scope: Scope) =>
      orUnavailable(sql`delete from idempotency_record where ${where(scope)} and status is null`),

    /**
     * Releases the record because the outcome is unknown (store unreachable); a repeated request retries the same
     * command.
     */
    release: (scope: Scope) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        orUnavailable(
          // Twice the wait, so that a process whose clock is behind can claim it too.
          sql`update idempotency_record set started_at = ${new Date(now - 2 * Timing.idempotencyAbandonedMillis)}
              where ${where(scope)} and status is null`,
        ),
      ),
  }
})

export class IdempotencyRecords extends Context.Service<IdempotencyRecords, Effect.Success<typeof make>>()(
  "@svc/cluster/idempotency/IdempotencyRecords",
) {
  static readonly layer = Layer.effect(IdempotencyRecords, make)
}
