/**
 * Calls of the actor to its platform. Each call gets an HTTP client that stops working when the Connector is paused,
 * replaced or owned by another process, and access to sealed state through the actor's fence. Calls leave under a
 * permit of the actor's process (`actor/Permit.ts`), so that a pause can wait for previous owners. Credential refreshes
 * run one at a time, and each starts with a commit.
 */
import { system } from "@svc/domain/account/Initiator"
import { isProblem, type Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Semaphore } from "effect"
import type { Ownership } from "../actor/Ownership.ts"
import * as Permit from "../actor/Permit.ts"
import { commit, type Fenced, type OwnIdentity } from "../actor/Write.ts"
import type { GuardedClient } from "../net/GuardedClient.ts"
import type { SendPermission } from "../net/SendPermission.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, type Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { bytesOf, type Connection, type ConnectorState, isPaused, sealedPlace, textOf } from "./ConnectorState.ts"
import { Halted, type PlatformFailure, PlatformUnreachable } from "./platforms/Failure.ts"
import type { Credential, PlatformStore, Platform, Session, PlatformContext } from "./platforms/Platform.ts"
import * as PlatformHttp from "./platforms/PlatformHttp.ts"
import * as CredentialRefresh from "./credentials/CredentialRefresh.ts"
import * as Registrations from "./credentials/Registrations.ts"

export interface PlatformCalls {
  readonly platform: Platform
  /** The permit under which calls leave. It ends when the state no longer allows calls. */
  readonly permit: Permit.Permit
  readonly change: CredentialRefresh.Change
  readonly context: (identity: OwnIdentity) => PlatformContext
  /**
   * Returns the session of a connection. `evenPaused` allows calls in which the account holder connects, or undoes a
   * change.
   */
  readonly session: (identity: OwnIdentity, connection: Connection, evenPaused?: boolean) => Session
  /**
   * Returns a session for revoking a credential that no longer belongs to a connection; `keep` stores a refreshed
   * credential.
   */
  readonly revocationSession: (
    identity: OwnIdentity,
    left: Pick<Session, "account" | "via"> & { readonly credential: Credential },
    keep: (credential: Credential) => Effect.Effect<void, Halted>,
  ) => Session
}

/** Applies the time limit of a platform call. An unreachable store fails with `unavailable`. */
export const withTimeout = <A, E>(
  call: Effect.Effect<A, E | PlatformFailure>,
): Effect.Effect<A, E | PlatformFailure | Unavailable> =>
  call.pipe(
    Effect.timeoutOrElse({
      duration: Timing.platformCall,
      orElse: () => Effect.fail(new PlatformUnreachable({ message: "The server did not respond in time." })),
    }),
    Effect.catchDefect((defect) =>
      isProblem(defect) && defect.code === "unavailable" ? Effect.fail(defect) : Effect.die(defect),
    ),
  )

/** Limits for the notes of a connection: their number and length. */
const keptAtMost = 32
const keptLength = 8 * 1024

export const make = Effect.fnUntraced(function* (parts: {
  readonly platform: Platform
  readonly ownership: Ownership<ConnectorState>
  readonly client: GuardedClient["Service"]
  readonly sealing: Sealing["Service"]
  readonly sql: Sql
}) {
  const { platform, ownership, client, sealing, sql } = parts
  const changing = yield* Semaphore.make(1)
  const refreshing = yield* Semaphore.make(1)

  const change: PlatformCalls["change"] = (run, by = system) => changing.withPermits(1)(ownership.change(by, run))
  const refreshes = yield* CredentialRefresh.make({ ownership, change, sealing, sql })

  const moved = () => new Halted({ reason: "moved" })
  const paused = () => new Halted({ reason: "paused" })
  const halted = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.mapError(effect, (error) => (error instanceof Halted ? error : moved()))

  const permit = Permit.make()

  /** Renews the permit under the fence, after checking the state under the same fence. */
  const renewed = ownership.write(
    system,
    Effect.fnUntraced(function* (write: Fenced, state: ConnectorState) {
      if (isPaused(state)) return yield* paused()
      yield* permit.renewedBy(write, commit(write, Permit.permitted(write.sql, Permit.owner(write))), () => true)
    }),
  )

  /**
   * Allows a request only if the connection is current and not paused. Checks the actor's state before each request,
   * and the store if the permit is about to expire.
   */
  const whileCurrent = (holds: (state: ConnectorState) => boolean): SendPermission<Halted> => ({
    request: halted(
      Effect.flatMap(ownership.state, (state) => {
        if (isPaused(state)) return Effect.fail(paused())
        if (!holds(state)) return Effect.fail(moved())
        return permit.isShort() ? renewed : Effect.void
      }),
    ),
    isPermitted: permit.holds,
  })

  /** Allows requests despite a pause, for calls that do not act through the account. */
  const evenPaused = (holds: (state: ConnectorState) => boolean): SendPermission<Halted> => ({
    request: halted(Effect.flatMap(ownership.state, (state) => (holds(state) ? Effect.void : Effect.fail(moved())))),
    isPermitted: () => true,
  })

  const context: PlatformCalls["context"] = (identity) => ({
    http: PlatformHttp.make(
      client,
      evenPaused(() => true),
    ),
    registrations: Registrations.make(sql, sealing, identity, platform.name),
  })

  const session: PlatformCalls["session"] = (identity, connection, isEvenPaused = false) => {
    const isOurs = (state: ConnectorState) => state.connection?.id === connection.id
    const place = (column: string) =>
      sealedPlace({ identityId: identity.id, orgId: identity.orgId, platform: platform.name }, connection.id, column)
    const ours = halted(
      Effect.flatMap(ownership.state, (state) =>
        isOurs(state) ? Effect.succeed(state.connection!) : Effect.fail(moved()),
      ),
    )
    return {
      ...context(identity),
      http: PlatformHttp.make(client, isEvenPaused ? evenPaused(isOurs) : whileCurrent(isOurs)),
      account: connection.account,
      via: connection.via,
      credential: Effect.map(ours, ({ credential }) => credential),
      ...refreshes.of(identity, connection, platform.name),
      notes: keptBy(identity, connection.id, place),
    }
  }

  const keptBy = (
    identity: OwnIdentity,
    connection: string,
    place: (column: string) => ReturnType<typeof sealedPlace>,
  ): PlatformStore => ({
    read: (name) =>
      sql<{ sealed: Uint8Array }>`
        select sealed from connector_kept where connection_id = ${connection} and name = ${name}`.pipe(
        Effect.flatMap(([row]) =>
          row === undefined
            ? Effect.succeed(undefined)
            : Effect.map(sealing.open(identity.dataKey, place(`kept/${name}`), row.sealed), textOf),
        ),
        orUnavailable,
        Effect.orDie,
      ),
    write: (name, text) =>
      halted(
        ownership.write(system, (write) =>
          Effect.gen(function* () {
            const sealed =
              text === undefined || text.length > keptLength
                ? undefined
                : yield* sealing.seal(identity.dataKey, place(`kept/${name}`), bytesOf(text))
            yield* commit(
              write,
              sealed === undefined
                ? write.sql`gone as (
                    delete from connector_kept where connection_id = ${connection}::uuid and name = ${name}::text
                      and exists (select from fence))`
                : write.sql`kept as (
                    insert into connector_kept (connection_id, name, sealed)
                    select c.connection_id, ${name}::text, ${sealed}::bytea from fence, connector c
                    where c.connection_id = ${connection}::uuid and (
                      select count(*) from connector_kept k where k.connection_id = ${connection}::uuid and k.name <> ${name}::text
                    ) < ${keptAtMost}
                    on conflict (connection_id, name) do update set sealed = excluded.sealed)`,
            )
          }),
        ),
      ),
  })

  const revocationSession: PlatformCalls["revocationSession"] = (identity, left, keep) => {
    const notes = new Map<string, string>()
    let credential = left.credential
    return {
      ...context(identity),
      account: left.account,
      via: left.via,
      credential: Effect.sync(() => credential),
      exclusively: (refresh) =>
        refreshing.withPermits(1)(
          Effect.andThen(
            halted(ownership.write(system, (write) => commit(write, write.sql`claimed as (select 1)`))),
            refresh,
          ),
        ),
      storeCredential: (anew) =>
        Effect.tap(keep(anew), () =>
          Effect.sync(() => {
            credential = anew
          }),
        ),
      notes: {
        read: (name) => Effect.sync(() => notes.get(name)),
        write: (name, text) =>
          Effect.sync(() => void (text === undefined ? notes.delete(name) : notes.set(name, text))),
      },
    }
  }

  return { platform, permit, change, context, session, revocationSession } satisfies PlatformCalls
})
