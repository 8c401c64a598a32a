/**
 * The monthly partitions of the audit log: created two months ahead, and dropped when they are older than the
 * operator's retention. A record whose month does not exist yet goes into the default partition, of which health warns,
 * and moves when its month is created. The same round searches for records that nobody marked for sealing.
 */
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { check, type Finding, pass } from "../health/Health.ts"
import * as Singletons from "../observe/Singletons.ts"
import { Reads, Unhurried } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { mark } from "./SealQueue.ts"

interface RetentionSettings {
  /** Minimum days that a record is kept; it is deleted with its month. */
  readonly days: number
}

const tables = [
  { table: "audit", time: "at" },
  { table: "audit_seal", time: "record_at" },
] as const

const ahead = 2
const dayMillis = 86_400_000
const batch = 5_000
/** How long creating or dropping a month may wait for locks. */
const lockWait = "2s"
/** How far back to search for unmarked records: longer than the interval between searches. */
const [unmarkedMillis, unmarkedFirstMillis] = [1_800_000, dayMillis]

/** Returns the start of the month that is `later` months after a time. */
export const monthOf = (millis: number, later = 0): Date => {
  const at = new Date(millis)
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + later))
}

const suffixOf = (month: Date) => month.toISOString().slice(0, 7).replace("-", "_")

const monthsOf = Effect.fnUntraced(function* (table: string) {
  const sql = yield* Unhurried
  const rows = yield* sql<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass and c.relname ~ ${`^${table}_[0-9]{4}_[0-9]{2}$`}`
  return rows.map(({ name }) => {
    const [, year, month] = /(\d{4})_(\d{2})$/.exec(name)!
    return { name, month: new Date(Date.UTC(Number(year), Number(month) - 1)) }
  })
})

/** Creates a month and moves its records out of the default partition. */
const makeMonth = Effect.fnUntraced(function* (table: string, time: string, month: Date) {
  const sql = yield* Unhurried
  const name = `${table}_${suffixOf(month)}`
  const [from, to] = [month.toISOString(), monthOf(month.getTime(), 1).toISOString()]
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql.unsafe(`set local lock_timeout = '${lockWait}'`)
      yield* sql.unsafe(`set local svc.audit = 'removal'`)
      yield* sql.unsafe(`lock table ${table}_default in access exclusive mode`)
      yield* sql.unsafe(`create table ${name} (like ${table} including all)`)
      yield* sql.unsafe(
        `with moved as (delete from ${table}_default where ${time} >= '${from}' and ${time} < '${to}' returning *)
         insert into ${name} select * from moved`,
      )
      yield* sql.unsafe(`alter table ${table} attach partition ${name} for values from ('${from}') to ('${to}')`)
    }),
  )
})

const dropMonth = Effect.fnUntraced(function* (table: string, name: string) {
  const sql = yield* Unhurried
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql.unsafe(`set local lock_timeout = '${lockWait}'`)
      yield* sql.unsafe(`alter table ${table} detach partition ${name}`)
      yield* sql.unsafe(`drop table ${name}`)
    }),
  )
})

/** Deletes old rows from the default partition. */
const removeStray = Effect.fnUntraced(function* (table: string, time: string, before: Date) {
  const sql = yield* Unhurried
  yield* sql
    .withTransaction(
      Effect.andThen(
        sql.unsafe(`set local svc.audit = 'removal'`),
        sql.unsafe<{ n: number }>(
          `with gone as (delete from ${table}_default where ctid in (
             select ctid from ${table}_default where ${time} < '${before.toISOString()}' limit ${batch}) returning 1)
           select count(*)::int as n from gone`,
        ),
      ),
    )
    .pipe(Effect.repeat({ while: ([row]) => row?.n === batch }))
})

/** Creates the coming months and drops the expired ones. */
export const keep = Effect.fnUntraced(function* ({ days }: RetentionSettings) {
  const sql = yield* Unhurried
  const now = yield* Clock.currentTimeMillis
  const oldest = new Date(now - days * dayMillis)
  for (const { table, time } of tables) {
    const present = yield* monthsOf(table)
    const strays = yield* sql.unsafe<{ month: Date }>(
      `select distinct date_trunc('month', ${time} at time zone 'utc') at time zone 'utc' as month from ${table}_default`,
    )
    const wanted = [
      ...Array.from({ length: ahead + 1 }, (_, later) => monthOf(now, later)),
      ...strays.map(({ month }) => month).filter((month) => monthOf(month.getTime(), 1) > oldest),
    ]
    const missing = new Map(
      wanted
        .filter((month) => !present.some((one) => one.month.getTime() === month.getTime()))
        .map((month) => [month.getTime(), month]),
    )
    for (const month of missing.values()) yield* makeMonth(table, time, month)
    for (const { name, month } of present) if (monthOf(month.getTime(), 1) <= oldest) yield* dropMonth(table, name)
    yield* removeStray(table, time, oldest)
  }
  yield* sql<{ n: number }>`
    with gone as (delete from audit_usage where ctid in (select ctid from audit_usage where hour < ${oldest} limit ${batch}) returning 1)
    select count(*)::int as n from gone`.pipe(Effect.repeat({ while: ([row]) => row?.n === batch }))
})

/** Marks Orgs with unsealed records since a time, and Orgs whose chain was continued by a version without MACs. */
export const markUnsealed = Effect.fnUntraced(function* (sinceMillis: number) {
  const sql = yield* Unhurried
  const now = yield* Clock.currentTimeMillis
  const since = new Date(now - sinceMillis)
  const found = yield* sql<{ org_id: string }>`
    select r.org_id from (select distinct org_id from audit where at > ${since}) r left join audit_head h on h.org_id = r.org_id
    where h.due_at is null and exists (
      -- Older transactions are sealed, so this reads few records of an Org.
      select from audit a
      where a.org_id = r.org_id and a.at > ${since} and a.xid >= coalesce(h.xid, '0')
        and not exists (
          select from audit_seal s where s.org_id = a.org_id and s.record_id = a.id and s.record_at = a.at and s.record_at > ${since}
        )
    )
    union
    select org_id from audit_head where mac_seq is distinct from seq and hash is not null and due_at is null`
  if (found.length > 0)
    yield* mark(
      sql,
      found.map(({ org_id }) => org_id),
      new Date(now),
    )
})

export const layer = (settings: RetentionSettings) =>
  Singleton.make(
    "AuditMonths",
    Effect.suspend(() => {
      let since = unmarkedFirstMillis
      return Effect.andThen(
        Effect.suspend(() => markUnsealed(since)),
        keep(settings),
      ).pipe(
        Effect.tap(
          Effect.map(Clock.currentTimeMillis, (now) => {
            since = unmarkedMillis
            Singletons.recordRun("AuditMonths", now)
          }),
        ),
        Effect.catchCause((cause) => Effect.logWarning("The look at the months of the audit log failed", cause)),
        Effect.repeat(Schedule.spaced(Timing.auditMonths)),
        Effect.asVoid,
      )
    }),
  )

/** Checks that every record lies in its month and every chain ends where the service sealed it. */
export const health = check(
  "audit",
  false,
  Effect.gen(function* () {
    const sql = yield* Reads
    const [row] = yield* sql<{ stray: boolean; refused: number }>`
      select exists (select from audit_default) or exists (select from audit_seal_default) as stray,
        (select count(*)::int from audit_head where refused_at is not null) as refused`
    if (row !== undefined && row.refused > 0) {
      const forged: Finding = {
        status: "fail",
        detail: `the audit logs of ${row.refused} accounts do not end where the service sealed them, see the log`,
      }
      return forged
    }
    const finding: Finding =
      row?.stray === true
        ? { status: "warn", detail: "audit records are in the default partition instead of one for their month" }
        : pass
    return finding
  }),
)
