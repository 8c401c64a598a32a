/**
 * Revokes unused credentials at their platforms. An unreachable platform is retried with increasing delays; after the
 * last attempt the credential is erased and the row records the error. Revocations outlive their Identity and are
 * removed with their Org.
 */
import { system } from "@svc/domain/account/Initiator"
import type { ConnectedVia } from "@svc/domain/connectors/Connector"
import { Clock, Effect, Redacted, Semaphore } from "effect"
import { commit, type OwnIdentity } from "../../actor/Write.ts"
import type { Sealing } from "../../sealing/Sealing.ts"
import type { SqlError } from "effect/sql"
import { Timing } from "../../Timing.ts"
import * as SingleRun from "../../work/SingleRun.ts"
import type { Running, Source } from "../../work/Source.ts"
import { withTimeout } from "../PlatformCalls.ts"
import { bytesOf, type ConnectorState, sealedPlace, textOf } from "../ConnectorState.ts"
import { boundedWords } from "../platforms/ResponseBounds.ts"
import { Halted } from "../platforms/Failure.ts"
import type { Session } from "../platforms/Platform.ts"
import type { Parts } from "../work/DueWork.ts"

interface Row {
  readonly id: string
  readonly org_id: string
  readonly identity_id: string
  readonly account: string
  readonly account_id: string
  readonly service: string
  readonly connected_via: ConnectedVia
  readonly credential: Uint8Array
  readonly disclosure: string | null
  readonly attempts: number
  readonly data_key: Uint8Array
}

export const overdue: Source<ConnectorState>["overdue"] = (sql, late, atMost) =>
  Effect.map(
    sql<{ id: string }>`
      select distinct canonical || '/' || platform as id from (
        select canonical, platform from connector_revocation where due_at <= ${late} order by due_at limit ${atMost}
      ) r`,
    (rows) => rows.map(({ id }) => id),
  )

export interface Revocations {
  /** Attempts all due revocations, or all pending ones if `early` is set. */
  readonly attemptAll: (early: boolean) => Effect.Effect<void, unknown>
  /** Returns the lowest number of attempts among pending revocations, or undefined without pending ones. */
  readonly fewestAttempts: Effect.Effect<number | undefined, SqlError.SqlError>
  readonly source: Running<ConnectorState>
}

export const make = Effect.fnUntraced(function* (
  { ownership, calls, sql }: Parts,
  of: Pick<ConnectorState, "canonical" | "platform">,
  sealing: Sealing["Service"],
) {
  const { platform } = calls
  const one = yield* SingleRun.make
  const oneByOne = yield* Semaphore.make(1)

  const waiting = Effect.fnUntraced(function* (early: boolean) {
    const at = new Date(yield* Clock.currentTimeMillis)
    return yield* sql<Row>`
      select r.id, r.org_id, r.identity_id, r.account, r.account_id, r.service, r.connected_via, r.credential, r.disclosure,
        r.attempts, o.data_key
      from connector_revocation r join org o on o.id = r.org_id
      where r.canonical = ${of.canonical} and r.platform = ${of.platform} and (r.due_at <= ${at} or ${early}::boolean)
        and r.credential is not null
      order by r.due_at limit 20`
  })

  const end = (row: Row) =>
    ownership.write(system, (write) =>
      commit(
        write,
        write.sql`ended as (delete from connector_revocation where id = ${row.id}::uuid and exists (select from fence))`,
      ),
    )

  /** Schedules the next attempt, or erases the credential after the last one. */
  const postpone = Effect.fnUntraced(function* (row: Row, error: string) {
    const wait = Timing.revocationWaitsMillis[row.attempts]
    yield* ownership.write(system, (write) => {
      const dueAt = wait === undefined ? null : new Date(write.at.getTime() + wait)
      return commit(
        write,
        write.sql`postponed as (
          update connector_revocation set attempts = attempts + 1, due_at = ${dueAt}::timestamptz, last_error = ${error}::text,
            credential = ${dueAt === null ? write.sql`null` : write.sql`credential`}
          where id = ${row.id}::uuid and exists (select from fence)
        )`,
      )
    })
    if (wait === undefined) {
      yield* Effect.logWarning("A credential was not revoked because its platform stayed unreachable", {
        platform: of.platform,
        service: row.service,
        account: row.account,
        error,
      })
    }
  })

  const revoke = Effect.fn("Revocations.revoke")(function* (row: Row) {
    const dataKey = yield* Effect.orDie(sealing.openDataKey(row.org_id, row.data_key))
    const identity: OwnIdentity = { id: row.identity_id, orgId: row.org_id, handle: of.canonical, dataKey }
    const place = sealedPlace(
      { identityId: row.identity_id, orgId: row.org_id, platform: of.platform },
      row.id,
      "credential",
    )
    const text = textOf(yield* Effect.orDie(sealing.open(dataKey, place, row.credential)))
    const halted = Effect.mapError(() => new Halted({ reason: "moved" }))
    const session: Session = calls.revocationSession(
      identity,
      {
        account: { name: row.account, id: row.account_id, service: row.service },
        via: row.connected_via,
        credential: Redacted.make(text),
      },
      (anew) =>
        ownership
          .write(system, (write) =>
            Effect.gen(function* () {
              const sealed = yield* sealing.seal(dataKey, place, bytesOf(Redacted.value(anew)))
              yield* commit(
                write,
                write.sql`kept as (
                  update connector_revocation set credential = ${sealed}::bytea where id = ${row.id}::uuid and exists (select from fence))`,
              )
            }),
          )
          .pipe(halted),
    )
    if (row.disclosure !== null) {
      yield* withTimeout(platform.undisclose(session, row.disclosure)).pipe(
        // The platform would refuse a further attempt too. The credential is revoked nevertheless.
        Effect.catchTags({
          CredentialRefused: () => Effect.void,
          PlatformRefused: () => Effect.void,
          InputRefused: () => Effect.void,
          Unsupported: () => Effect.void,
        }),
      )
      yield* ownership.write(system, (write) =>
        commit(
          write,
          write.sql`reverted as (
            update connector_revocation set disclosure = null where id = ${row.id}::uuid and exists (select from fence))`,
        ),
      )
    }
    yield* withTimeout(platform.revoke(session))
  })

  const attempt = (row: Row) =>
    revoke(row).pipe(
      Effect.andThen(end(row)),
      Effect.catchTags({
        // The credential is no longer valid at the platform.
        CredentialRefused: () => end(row),
        PlatformRefused: ({ message }) => postpone(row, boundedWords(message)),
        PlatformUnreachable: ({ message }) => postpone(row, boundedWords(message)),
        PlatformRateLimited: ({ message }) => postpone(row, boundedWords(message)),
        // The server cannot revoke credentials. An operator can do it by hand after reading the log.
        Unsupported: ({ message }) =>
          Effect.andThen(
            Effect.logWarning("A credential was not revoked at its platform", {
              platform: of.platform,
              service: row.service,
              account: row.account,
              error: boundedWords(message),
            }),
            end(row),
          ),
        InputRefused: ({ message }) => postpone(row, boundedWords(message)),
        Halted: () => Effect.void,
      }),
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("A revocation failed with a defect", defect),
          postpone(row, "The revocation failed because of an error in this service."),
        ),
      ),
    )

  const attemptAll = (early: boolean) =>
    oneByOne.withPermits(1)(Effect.flatMap(waiting(early), (rows) => Effect.forEach(rows, attempt, { discard: true })))

  const earliest = Effect.map(
    sql<{ due: Date | null }>`
      select min(due_at) as due from connector_revocation
      where canonical = ${of.canonical} and platform = ${of.platform} and due_at is not null`,
    ([row]) => row?.due ?? null,
  )

  const source: Running<ConnectorState> = {
    dispatch: Effect.fnUntraced(function* (_state, changed) {
      const now = yield* Clock.currentTimeMillis
      if (!one.isFree(now)) return false
      const next = yield* earliest
      if (next === null || next.getTime() > now) return false
      return yield* one.start(attemptAll(false), "A revocation was interrupted", changed)
    }),
    nextDue: () => Effect.flatMap(earliest, one.from),
    isBusy: one.isBusy,
    settle: one.settle,
  }

  return {
    attemptAll,
    fewestAttempts: Effect.map(
      sql<{ tries: number | null }>`
        select min(attempts) as tries from connector_revocation
        where canonical = ${of.canonical} and platform = ${of.platform} and due_at is not null`,
      ([row]) => row?.tries ?? undefined,
    ),
    source,
  } satisfies Revocations
})
