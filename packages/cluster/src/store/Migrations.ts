/**
 * Brings the schema up to date, one process at a time. Migrations only add, so that two versions of the program can
 * run side by side during a rolling restart; and none waits for a lock for long, since whoever comes after it would wait
 * behind it: it gives up, and all of it is tried again.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schedule } from "effect"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import { Unhurried } from "./Database.ts"
import { Timing } from "../Timing.ts"
import { refuseOlder } from "./OldestProgram.ts"
import { refusePooler, StoreUnfit } from "./Sessions.ts"
import { core } from "./migrations/0001_core.ts"
import { dueDeliveries } from "./migrations/0002_due_deliveries.ts"
import { surface } from "./migrations/0003_surface.ts"
import { tunnelLinks } from "./migrations/0004_tunnel_links.ts"
import { tunnelSettings } from "./migrations/0005_tunnel_settings.ts"
import { eventCause } from "./migrations/0006_event_cause.ts"
import { actors } from "./migrations/0007_actors.ts"
import { eventOrder } from "./migrations/0008_event_order.ts"
import { unansweredMail } from "./migrations/0011_unanswered_mail.ts"
import { messageOrder } from "./migrations/0012_message_order.ts"
import { sealedForms } from "./migrations/0021_sealed_forms.ts"
import { callWindows } from "./migrations/0022_call_windows.ts"
import { actorCommands } from "./migrations/0023_actor_commands.ts"
import { growth } from "./migrations/0024_growth.ts"
import { sending } from "./migrations/0031_sending.ts"
import { dkimKeys } from "./migrations/0035_dkim_keys.ts"
import { messageFlags } from "./migrations/0041_message_flags.ts"
import { threads } from "./migrations/0042_threads.ts"
import { search } from "./migrations/0043_search.ts"
import { mailFolders } from "./migrations/0051_folders.ts"
import { connectors } from "./migrations/0061_connectors.ts"
import { sessionAgents } from "./migrations/0073_session_agents.ts"
import { backups } from "./migrations/0081_backups.ts"
import { submission } from "./migrations/0082_submission.ts"
import { draftPictures } from "./migrations/0085_draft_pictures.ts"
import { oldestProgram } from "./migrations/0088_oldest_program.ts"
import { keyRights } from "./migrations/0090_key_rights.ts"
import { oauth } from "./migrations/0098_oauth.ts"
import { grantNetworks } from "./migrations/0114_grant_networks.ts"
import { auditProof } from "./migrations/0150_audit_proof.ts"
import { firstSeen } from "./migrations/0155_first_seen.ts"
import { claimedIdentity } from "./migrations/0171_claimed_identity.ts"
import { auditLog } from "./migrations/0094_audit.ts"
import { connectedIdentities } from "./migrations/0146_connected_identities.ts"
import { transferReports } from "./migrations/0145_transfer_reports.ts"
import { connectorRefresh } from "./migrations/0110_connector_refresh.ts"
import { messageSlices } from "./migrations/0120_message_slices.ts"
import { searchSegments } from "./migrations/0167_search_segments.ts"
import { fewerIndexes } from "./migrations/0180_fewer_indexes.ts"
import { withoutScans } from "./migrations/0195_without_scans.ts"

const migrations = {
  "0001_core": core,
  "0002_due_deliveries": dueDeliveries,
  "0003_surface": surface,
  "0004_tunnel_links": tunnelLinks,
  "0005_tunnel_settings": tunnelSettings,
  "0006_event_cause": eventCause,
  "0007_actors": actors,
  "0008_event_order": eventOrder,
  "0011_unanswered_mail": unansweredMail,
  "0012_message_order": messageOrder,
  "0021_sealed_forms": sealedForms,
  "0022_call_windows": callWindows,
  "0023_actor_commands": actorCommands,
  "0024_growth": growth,
  "0031_sending": sending,
  "0035_dkim_keys": dkimKeys,
  "0041_message_flags": messageFlags,
  "0042_threads": threads,
  "0043_search": search,
  "0051_folders": mailFolders,
  "0061_connectors": connectors,
  "0073_session_agents": sessionAgents,
  "0081_backups": backups,
  "0082_submission": submission,
  "0085_draft_pictures": draftPictures,
  "0088_oldest_program": oldestProgram,
  "0090_key_rights": keyRights,
  "0098_oauth": oauth,
  "0114_grant_networks": grantNetworks,
  "0150_audit_proof": auditProof,
  "0155_first_seen": firstSeen,
  "0094_audit": auditLog,
  "0110_connector_refresh": connectorRefresh,
  "0120_message_slices": messageSlices,
  "0145_transfer_reports": transferReports,
  "0146_connected_identities": connectedIdentities,
  "0167_search_segments": searchSegments,
  "0171_claimed_identity": claimedIdentity,
  "0180_fewer_indexes": fewerIndexes,
  "0195_without_scans": withoutScans,
}

/** Any constant that no other user of the database takes: "svc" in ASCII. */
const lockKey = 0x73_76_63

/** Of a statement of ours, or of a migration that the library reports on. */
const isLocked = (error: unknown): boolean =>
  SqlError.isSqlError(error)
    ? error.reason._tag === "LockTimeoutError"
    : error instanceof Migrator.MigrationError && isLocked(error.cause)

/** Why a lock was not had, for the operator: a backup, a long query, somebody's open transaction. */
const busy = new StoreUnfit({
  message:
    "The database cannot be migrated, since other statements hold its tables for longer than a migration may wait: see pg_stat_activity for transactions that stay open, and start again.",
})

/** Runs what was not run yet. Answers what was run. */
const run = Effect.fnUntraced(function* (wanted: Partial<typeof migrations>) {
  const sql = yield* Unhurried
  const all = Migrator.make({})({ loader: Migrator.fromRecord(wanted), table: "svc_migrations" }).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.provideService(PgClient.PgClient, sql),
  )
  const once = sql.withTransaction(
    Effect.gen(function* () {
      // The library locks its table, but two processes may both be about to create that table.
      yield* sql`select pg_advisory_xact_lock(${lockKey})`
      yield* refuseOlder(sql)
      yield* sql`select set_config('lock_timeout', ${String(Timing.migrationLockMillis)}, true)`
      return yield* all
    }),
  )
  return yield* once.pipe(
    Effect.tapError((error) =>
      isLocked(error) ? Effect.logWarning("A migration waits for statements that hold its tables") : Effect.void,
    ),
    Effect.retry({ while: isLocked, schedule: Schedule.spaced(Timing.migrationRetry), times: Timing.migrationTries }),
    Effect.catchIf(isLocked, () => Effect.fail(busy)),
  )
})

export const migrate = run(migrations)

const numberOf = (name: string) => Number(name.slice(0, 4))

/** The schema as it was with these migrations. Answers those that this program does not know; then nothing is done. */
export const migrateTo = Effect.fnUntraced(function* (numbers: ReadonlyArray<number>) {
  const known = new Set(Object.keys(migrations).map(numberOf))
  const unknown = numbers.filter((number) => !known.has(number))
  if (unknown.length > 0) return unknown
  yield* run(Object.fromEntries(Object.entries(migrations).filter(([name]) => numbers.includes(numberOf(name)))))
  return []
})

/** What a start would do, and what a later program has done; by number, and by name where it is known. */
export const waiting = Effect.gen(function* () {
  const sql = yield* Unhurried
  const [there] = yield* sql<{ found: boolean }>`select to_regclass('svc_migrations') is not null as found`
  const rows = there?.found === true ? yield* sql<{ id: number }>`select migration_id as id from svc_migrations` : []
  const done = new Set(rows.map(({ id }) => id))
  const names = Object.keys(migrations).filter((name) => !done.has(numberOf(name)))
  const known = Object.keys(migrations).map(numberOf)
  return { missing: names.map(numberOf), names, unknown: [...done].filter((id) => !known.includes(id)) }
})

export const layer = Layer.effectDiscard(Effect.andThen(refusePooler, migrate))
