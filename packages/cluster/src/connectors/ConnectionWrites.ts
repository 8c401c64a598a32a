/**
 * The writes over the lifetime of a connection: connect, update the account, stop, recover, pause and remove. A credential
 * that is replaced or removed is queued for revocation in the same commit.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { ConnectorPaused, IdentityNotReady, NotFound } from "@svc/domain/problems/Problem"
import { Effect, Redacted } from "effect"
import type { Statement } from "effect/sql"
import type { Changed } from "../actor/Ownership.ts"
import { commit, type Fenced, type OwnIdentity, type Write } from "../actor/Write.ts"
import { raise } from "../events/Raise.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { Timing } from "../Timing.ts"
import { bytesOf, type Connection, type ConnectorState, isPaused, sealedPlace } from "./ConnectorState.ts"
import type { Connected, Disclosure, AccountStatus } from "./platforms/Platform.ts"

const later = (at: Date, millis: number) => new Date(at.getTime() + millis)
const textArray = (sql: Write["sql"], values: ReadonlyArray<string>) => sql`${[...values]}::text[]`

/** Builds the CTE `moved`, which queues the connection's credential for revocation if the CTE `gate` has a row. */
const toRevocations = ({ sql, at }: Fenced, gate: string, connection: Connection, keepsDisclosure: boolean) => sql`
  moved as (
    insert into connector_revocation (id, org_id, identity_id, canonical, platform, account, account_id, service, connected_via,
      credential, disclosure, attempts, due_at, created_at)
    select c.connection_id, c.org_id, c.identity_id, c.canonical, c.platform, c.account, c.account_id, c.service, c.connected_via,
      c.credential, ${keepsDisclosure ? sql`null::text` : sql`c.disclosure`}, 0, ${at}::timestamptz, ${at}::timestamptz
    from connector c where c.connection_id = ${connection.id}::uuid and exists (select from ${sql(gate)})
    on conflict do nothing
  )`

const none = (sql: Write["sql"]): Statement.Fragment => sql`moved as (select 1)`

/** Stores a new connection and replaces the current one. Fails unless the Identity is ready and its Org is active. */
export const connect = Effect.fnUntraced(function* (
  fenced: Fenced,
  state: ConnectorState,
  identity: OwnIdentity,
  made: Connected,
  sealing: Sealing["Service"],
) {
  const { sql, at } = fenced
  const write: Write = { ...fenced, identity }
  const before = state.connection
  const sameAccount =
    before !== undefined && before.account.id === made.account.id && before.account.service === made.account.service
  const connection: Connection = {
    id: yield* makeUuidV7,
    account: made.account,
    via: made.via,
    capabilities: made.capabilities,
    credential: made.credential,
    status: "connected",
    disclosed: made.disclosed,
    declared: made.disclosed,
    // Changes that were made to the profile of the same account can still be undone later.
    disclosure: sameAccount ? before.disclosure : null,
    mark: sameAccount ? before.mark : null,
    lastError: null,
    pollWaitMillis: Timing.pollSoonestMillis,
    pollDueAt: isPaused(state) ? null : at,
    checkDueAt: isPaused(state) ? null : later(at, Timing.profileCheckMillis),
  }
  const owner = { identityId: identity.id, orgId: identity.orgId, platform: state.platform }
  const sealed = yield* sealing.seal(
    identity.dataKey,
    sealedPlace(owner, connection.id, "credential"),
    bytesOf(Redacted.value(made.credential)),
  )
  // A platform may issue the same token again. Revoking the previous one would then end the new connection.
  const replaces = before !== undefined && Redacted.value(before.credential) !== Redacted.value(made.credential)
  const recovers = before?.status === "stopped"
  const { account } = made
  const row = yield* commit<{ made: boolean }>(
    write,
    sql`standing as (
      select i.id from fence, identity i join org o on o.id = i.org_id
      where i.id = ${identity.id}::uuid and i.status = 'ready' and o.status = 'active' for share of i, o
    ),
    ${replaces ? toRevocations(fenced, "standing", before, sameAccount) : none(sql)},
    forgotten as (
      delete from connector_kept where connection_id = ${before?.id ?? null}::uuid and exists (select from standing)
    ),
    made as (
      insert into connector (identity_id, platform, canonical, org_id, connection_id, status, account, account_id, service,
        connected_via, capabilities, disclosed, declared, disclosure, credential, mark, poll_wait_millis, poll_due_at, check_due_at,
        created_at, updated_at)
      select ${identity.id}::uuid, ${state.platform}::text, ${state.canonical}::text, ${identity.orgId}::uuid,
        ${connection.id}::uuid, 'connected', ${account.name}::text, ${account.id}::text, ${account.service}::text,
        ${made.via}::text, ${textArray(sql, made.capabilities)}, ${made.disclosed}::boolean, ${made.disclosed}::boolean,
        ${connection.disclosure}::text, ${sealed}::bytea, ${connection.mark}::text, ${connection.pollWaitMillis}::int,
        ${connection.pollDueAt}::timestamptz, ${connection.checkDueAt}::timestamptz, ${at}::timestamptz, ${at}::timestamptz
      from standing
      on conflict (identity_id, platform) do update set connection_id = excluded.connection_id, status = 'connected',
        account = excluded.account, account_id = excluded.account_id, service = excluded.service,
        connected_via = excluded.connected_via, capabilities = excluded.capabilities, disclosed = excluded.disclosed,
        declared = excluded.declared, disclosure = excluded.disclosure, credential = excluded.credential,
        refresh_began_at = null, mark = excluded.mark, last_error = null, poll_wait_millis = excluded.poll_wait_millis,
        poll_due_at = excluded.poll_due_at, check_due_at = excluded.check_due_at, updated_at = excluded.updated_at
      returning identity_id
    ),
    ${
      recovers
        ? raise(write, "made", "connector.recovered", {
            ...about({ ...state, connection }),
            account_id: account.id,
            service: account.service,
          })
        : raise(write, "made", "connector.connected", {
            ...about({ ...state, connection }),
            account_id: account.id,
            service: account.service,
            connected_via: made.via,
            capabilities: made.capabilities,
          })
    }`,
    { columns: sql`exists (select from made) as made`, raises: true },
  )
  if (!row.made) return yield* new IdentityNotReady({ detail: "The Identity is not ready.", agent_hint: "stop" })
  const changed: Changed<Connection, ConnectorState> = { value: connection, state: { ...state, connection } }
  return changed
})

/** Stores the account's current name, capabilities and disclosure. */
export const updateAccount = Effect.fnUntraced(function* (
  write: Fenced,
  state: ConnectorState,
  connectionId: string,
  status: AccountStatus,
  disclosure?: Disclosure,
) {
  const present = state.connection
  if (present?.id !== connectionId) return { value: undefined }
  const { sql, at } = write
  const connection: Connection = {
    ...present,
    account: status.account,
    capabilities: status.capabilities,
    disclosed: status.disclosed,
    declared: present.declared || status.disclosed,
    // The first change is the one to undo.
    disclosure: present.disclosure ?? disclosure ?? null,
    checkDueAt: isPaused(state) ? null : later(at, Timing.profileCheckMillis),
  }
  yield* commit(
    write,
    sql`learned as (
      update connector set account = ${status.account.name}, capabilities = ${textArray(sql, status.capabilities)},
        disclosed = ${status.disclosed}, declared = ${connection.declared}, disclosure = ${connection.disclosure}::text,
        check_due_at = ${connection.checkDueAt}::timestamptz,
        updated_at = case when account = ${status.account.name} and capabilities = ${textArray(sql, status.capabilities)}
          and disclosed = ${status.disclosed} then updated_at else ${at}::timestamptz end
      where connection_id = ${connectionId}::uuid and exists (select from fence)
    )`,
  )
  return { value: undefined, state: { ...state, connection } }
})

/**
 * Stops the Connector until it is connected again. The option `recheck` checks the profile regularly, so that the Connector
 * can recover.
 */
export const stop = Effect.fnUntraced(function* (
  fenced: Fenced,
  state: ConnectorState,
  connectionId: string,
  why: { readonly error: string; readonly remedy: string; readonly recheck: boolean },
) {
  const present = state.connection
  if (present?.id !== connectionId || present.status === "stopped" || state.identity === undefined) {
    return { value: undefined }
  }
  const { sql, at } = fenced
  const write: Write = { ...fenced, identity: state.identity }
  const connection: Connection = {
    ...present,
    status: "stopped",
    disclosed: present.disclosed && !why.recheck,
    lastError: why.error,
    pollDueAt: null,
    checkDueAt: why.recheck && !isPaused(state) ? later(at, Timing.profileRecheckMillis) : null,
  }
  yield* commit(
    write,
    sql`stopped as (
      update connector set status = 'stopped', last_error = ${why.error}, poll_due_at = null, disclosed = ${connection.disclosed},
        check_due_at = ${connection.checkDueAt}::timestamptz, updated_at = ${at}
      where connection_id = ${connectionId}::uuid and status = 'connected' and exists (select from fence)
      returning identity_id
    ),
    ${raise(write, "stopped", "connector.stopped", { ...about(state), error: why.error, remedy: why.remedy })}`,
    { raises: true },
  )
  return { value: undefined, state: { ...state, connection } }
})

/** Restarts a stopped Connector whose profile is marked as automated again. */
export const recover = Effect.fnUntraced(function* (fenced: Fenced, state: ConnectorState, status: AccountStatus) {
  const present = state.connection
  if (present === undefined || present.status !== "stopped" || state.identity === undefined) return { value: undefined }
  const { sql, at } = fenced
  const write: Write = { ...fenced, identity: state.identity }
  const connection: Connection = {
    ...present,
    status: "connected",
    disclosed: status.disclosed,
    lastError: null,
    pollDueAt: isPaused(state) ? null : at,
    checkDueAt: isPaused(state) ? null : later(at, Timing.profileCheckMillis),
  }
  yield* commit(
    write,
    sql`recovered as (
      update connector set status = 'connected', disclosed = ${status.disclosed}, last_error = null,
        poll_due_at = ${connection.pollDueAt}::timestamptz, check_due_at = ${connection.checkDueAt}::timestamptz, updated_at = ${at}
      where connection_id = ${present.id}::uuid and status = 'stopped' and exists (select from fence)
      returning identity_id
    ),
    ${raise(write, "recovered", "connector.recovered", {
      ...about(state),
      account_id: present.account.id,
      service: present.account.service,
    })}`,
    { raises: true },
  )
  return { value: undefined, state: { ...state, connection } }
})

interface Pause {
  readonly paused: boolean
  /** Applies to all Connectors of the Identity instead of this one. */
  readonly everyone: boolean
}

/**
 * Pauses or resumes one Connector, or all Connectors of an Identity. The pause is in the actor's memory before the reply
 * and ends the permit for platform calls. A connection that is made later is paused too.
 */
export const pause = Effect.fnUntraced(function* (write: Fenced, state: ConnectorState, wanted: Pause) {
  const { identity, connection } = state
  if (identity === undefined || (connection === undefined && !wanted.everyone)) {
    return yield* new NotFound({ detail: "The Connector does not exist." })
  }
  if (!wanted.everyone && !wanted.paused && state.pause.everyone) {
    return yield* new ConnectorPaused({
      detail: "All Connectors of the Identity are paused: PATCH /api/identities/{handle}/connectors resumes them.",
    })
  }
  const next: ConnectorState = {
    ...state,
    pause: wanted.everyone ? { ...state.pause, everyone: wanted.paused } : { ...state.pause, own: wanted.paused },
  }
  const { sql, at } = write
  const isResumed = !isPaused(next)
  const working = connection?.status === "connected"
  const pollDueAt = isResumed && working ? at : null
  // The profile of a Connector that stopped because of its profile is checked until it is marked again.
  const rechecks = connection?.status === "stopped" && connection.declared && !connection.disclosed
  const checkDueAt =
    isResumed && (working || rechecks)
      ? (connection.checkDueAt ?? later(at, working ? 0 : Timing.profileRecheckMillis))
      : null
  yield* commit(
    write,
    sql`paused as (
      insert into connector_pause (identity_id, platform, paused, everyone)
      select ${identity.id}::uuid, ${state.platform}::text, ${next.pause.own}::boolean, ${next.pause.everyone}::boolean from fence
      on conflict (identity_id, platform) do update set paused = excluded.paused, everyone = excluded.everyone
    ),
    held as (
      update connector set poll_due_at = ${pollDueAt}::timestamptz, check_due_at = ${checkDueAt}::timestamptz,
        updated_at = ${at}::timestamptz
      where identity_id = ${identity.id}::uuid and platform = ${state.platform}::text and exists (select from fence)
    )`,
  )
  return {
    value: undefined,
    state: connection === undefined ? next : { ...next, connection: { ...connection, pollDueAt, checkDueAt } },
  }
})

/** Removes the connection and queues its credential for revocation. */
export const remove = Effect.fnUntraced(function* (write: Fenced, state: ConnectorState) {
  const present = state.connection
  if (present === undefined) return yield* new NotFound({ detail: "The Connector does not exist." })
  const { sql } = write
  yield* commit(
    write,
    sql`${toRevocations(write, "fence", present, false)},
    forgotten as (
      delete from connector_heard where identity_id = ${state.identity!.id} and platform = ${state.platform} and exists (select from fence)
    ),
    gone as (delete from connector where connection_id = ${present.id}::uuid and exists (select from fence))`,
  )
  return { value: undefined, state: { ...state, connection: undefined } }
})

const about = (state: ConnectorState) => ({
  platform: state.platform,
  account: state.connection?.account.name ?? "",
})
