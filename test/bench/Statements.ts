/**
 * Prints the most expensive SQL statements from pg_stat_statements. Statistics are collected in a separate slice after
 * the measured ones, because collecting them has a cost.
 */
import { inStore } from "../faults/Store.ts"
import type { Deployment } from "../harness/Deployment.ts"
import { round } from "../harness/Report.ts"
import type { Subject } from "./Turns.ts"

/** Settings that a deployment's PostgreSQL needs at its start. */
export const settings = { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track_planning": "on" }

const counting = async (deployment: Deployment, on: boolean) => {
  await inStore(deployment, `alter system set pg_stat_statements.track = '${on ? "top" : "none"}'`)
  await inStore(deployment, "select pg_reload_conf()")
}

/** Creates the extension with collection disabled. */
export const prepare = async (deployment: Deployment): Promise<void> => {
  await inStore(deployment, "create extension if not exists pg_stat_statements")
  await counting(deployment, false)
}

interface Statement {
  readonly query: string
  readonly calls: number
  readonly plans: number
  readonly millis: number
  readonly planning: number
  readonly rows: number
}

const shown = (query: string) => {
  const line = query.replaceAll(/\s+/g, " ").trim()
  return line.length > 110 ? `${line.slice(0, 107)}...` : line
}

/** Drives the load for a time and returns the ten most expensive statements, per call. */
export const mostExpensive = async (
  deployment: Deployment,
  { drive, prepare }: Pick<Subject, "drive" | "prepare">,
): Promise<ReadonlyArray<string>> => {
  await prepare?.()
  await inStore(deployment, "select pg_stat_statements_reset()")
  await counting(deployment, true)
  const { done } = await drive(1)
  const statements = await inStore<Statement>(
    deployment,
    `select query, calls::int, plans::int, (total_exec_time + total_plan_time)::float8 as millis,
            total_plan_time::float8 as planning, rows::int
     from pg_stat_statements where query !~ 'pg_stat_statements|pg_reload_conf'
     order by millis desc limit 10`,
  )
  await counting(deployment, false)
  const calls = Math.max(1, done)
  return [
    `of ${done} calls, the dearest statements: per call, us each (of it planning), rows each`,
    ...statements.map(({ query, calls: executed, plans, millis, planning, rows }) =>
      [
        `${round(executed / calls, 3)} ×`.padStart(8),
        `${Math.round((millis * 1000) / executed)} us`.padStart(9),
        `(${Math.round((planning * 1000) / executed)}, ${Math.round((100 * plans) / executed)} % planned)`.padEnd(18),
        `${round(rows / executed, 1)} rows`.padStart(9),
        ` ${shown(query)}`,
      ].join(" "),
    ),
  ]
}
