/**
 * Refreshes of a credential: one at a time over all processes, each begun by a commit that says so. A refresh token may be
 * good once, so a process that was overtaken between the platform's answer and its commit holds the only one that works:
 * it leaves it to whoever owns the Connector by then, who waits a while for that before it tries the former one.
 */
import { system } from "@svc/domain/account/Initiator"
import type { Moved } from "@svc/domain/actor/Moved"
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

/** What says for certain that no token was spent. */
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
    /** When the refresh under way began, as the store has it. */
    let began: Date | null = null

    /** A commit under the fence: it begins, unless one began before whose outcome nobody knows. */
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

    /** The credential as the store has it: a process that was overtaken may have left another there. */
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

    /** The token is what the store has: nothing was spent, or nothing had to be. */
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

    /** The new credential, for whoever owns the Connector now: unless somebody has refreshed it after all. */
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
      // Whoever asked may be cut off; the platform's answer is not to be lost with them.
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
                  message: "The credential was being refreshed when its process went away.",
                })
              }
              const refreshed = yield* Effect.tapError(refresh, (error) =>
                isFailure(error) && isDefinite.has(error._tag) ? settled : Effect.void,
              )
              // It was fresh already.
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
