/**
 * Refreshes credentials, one at a time across all processes; each refresh starts with a commit. A refresh token may be
 * valid only once, so a process that loses ownership between the platform's response and its commit holds the only
 * valid token. It stores that token for the new owner, which waits for it before it tries the previous token.
 */
import { system } from "@svc/domain/account/Initiator"
import type { Moved } from "@svc/domain/actor/Protocol"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Effect, Fiber, Redacted, Schedule, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import type { Changed, Ownership } from "../../actor/Ownership.ts"
import { commit, type Fenced, type FenceLost, type OwnIdentity } from "../../actor/Write.ts"
import type { Sealing } from "../../sealing/Sealing.ts"
import type { Sql } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"
import { bytesOf, type Connection, type ConnectorState, sealedPlace, textOf } from "../ConnectorState.ts"
import { Halted, isFailure, PlatformUnreachable } from "../platforms/Failure.ts"
import type { Credential, Session } from "../platforms/Platform.ts"

/** Writes that replace the actor's state. They run one at a time, since each builds on the previous state. */
export type Change = <A, E>(
  run: (write: Fenced, state: ConnectorState) => Effect.Effect<Changed<A, ConnectorState>, E>,
  by?: Fenced["by"],
) => Effect.Effect<A, Exclude<E, SqlError.SqlError | FenceLost> | Moved | Unavailable>

/** Failures that prove that no token was spent. */
const isDefinite: ReadonlySet<string> = new Set(["CredentialRefused", "PlatformRefused", "PlatformRateLimited"])

const moved = () => new Halted({ reason: "moved" })

export const make = Effect.fnUntraced(function* (parts: {
  readonly ownership: Ownership<ConnectorState>
  readonly change: Change
  readonly sealing: Sealing["Service"]
  readonly sql: Sql
}) {
  const { ownership, change, sealing, sql } = parts
  const refreshing = yield* Semaphore.make(1)

  const of = (
    identity: OwnIdentity,
    connection: Connection,
    platform: string,
  ): Pick<Session, "exclusively" | "storeCredential"> => {
    const place = sealedPlace({ identityId: identity.id, orgId: identity.orgId, platform }, connection.id, "credential")
    /** Start time of the current refresh in the store. */
    let began: Date | null = null

    /** Commits the start of a refresh, unless an earlier refresh with an unknown outcome is recorded. */
    const claim = ownership
      .write(system, (write) =>
        commit<{ began: Date | null; before: boolean | null; credential: Uint8Array | null }>(
          write,
          write.sql`former as (
            select refresh_began_at is not null as before from fence, connector
            where connection_id = ${connection.id}::uuid
          ),
          claimed as (
            update connector set refresh_began_at = coalesce(refresh_began_at, ${write.at}::timestamptz)
            where connection_id = ${connection.id}::uuid and exists (select from fence)
            returning refresh_began_at, credential
          )`,
          {
            columns: write.sql`(select refresh_began_at from claimed) as began, (select before from former) as before,
              (select credential from claimed) as credential`,
          },
        ),
      )
      .pipe(Effect.mapError(moved))

    /** Loads the credential from the store, where a previous owner may have left a newer one. */
    const learn = (sealed: Uint8Array) =>
      Effect.gen(function* () {
        const credential = Redacted.make(textOf(yield* Effect.orDie(sealing.open(identity.dataKey, place, sealed))))
        yield* change((_, state) =>
          Effect.succeed(
            state.connection?.id === connection.id
              ? { value: undefined, state: { ...state, connection: { ...state.connection, credential } } }
              : { value: undefined },
          ),
        )
      }).pipe(Effect.mapError(moved))

    /** Records that no token was spent. */
    const settled = ownership
      .write(system, (write) =>
        commit(
          write,
          write.sql`settled as (
            update connector set refresh_began_at = null
            where connection_id = ${connection.id}::uuid and exists (select from fence)
          )`,
        ),
      )
      .pipe(Effect.mapError(moved))

    /** Stores the new credential for the current owner, unless another refresh has completed. */
    const leave = (credential: Credential) =>
      Effect.gen(function* () {
        const sealed = yield* sealing.seal(identity.dataKey, place, bytesOf(Redacted.value(credential)))
        yield* sql`update connector set credential = ${sealed}, refresh_began_at = null
          where connection_id = ${connection.id} and refresh_began_at = ${began}`
      }).pipe(
        Effect.retry({ times: 5, schedule: Schedule.spaced("1 second") }),
        Effect.catch((error) => Effect.logWarning("A refreshed credential was lost", error)),
      )

    return {
      // Detached, so that the platform's response is not lost if the caller is interrupted.
      exclusively: (refresh) =>
        refreshing
          .withPermits(1)(
            Effect.gen(function* () {
              const { before, credential, ...claimed } = yield* claim
              if (credential === null) return yield* moved()
              began = claimed.began
              yield* learn(credential)
              const now = yield* Clock.currentTimeMillis
              if (before === true && began !== null && now - began.getTime() < Timing.refreshDoubtMillis) {
                return yield* new PlatformUnreachable({
                  message: "Another process stopped while it was refreshing the credential.",
                })
              }
              const refreshed = yield* Effect.tapError(refresh, (error) =>
                isFailure(error) && isDefinite.has(error._tag) ? settled : Effect.void,
              )
              // The credential did not need a refresh.
              if (began !== null) yield* settled
              return refreshed
            }),
          )
          .pipe(Effect.forkDetach, Effect.flatMap(Fiber.join)),

      storeCredential: (credential) =>
        change((write, state) =>
          Effect.gen(function* () {
            const present = state.connection
            if (present?.id !== connection.id) return yield* moved()
            const sealed = yield* sealing.seal(identity.dataKey, place, bytesOf(Redacted.value(credential)))
            yield* commit(
              write,
              write.sql`kept as (
                update connector set credential = ${sealed}, refresh_began_at = null
                where connection_id = ${connection.id}::uuid and exists (select from fence)
              )`,
            )
            return { value: undefined, state: { ...state, connection: { ...present, credential } } }
          }),
        ).pipe(
          Effect.tap(() => Effect.sync(() => (began = null))),
          Effect.tapError(() => (began === null ? Effect.void : leave(credential))),
          Effect.mapError((error) => (error instanceof Halted ? error : moved())),
        ),
    }
  }

  return { of }
})
