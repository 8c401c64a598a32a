/**
 * Checks whether a PostgreSQL server and its database meet the requirements. The service at startup and `svc migrate` stop
 * with the first fault before they change anything; `svc doctor` lists all faults. The time zone is not checked, because
 * every session sets its own.
 */
import { Effect } from "effect"
import { connectionsPerProcess, type Sql, Unhurried } from "./Database.ts"
import { StoreUnfit } from "./Sessions.ts"

/** The oldest supported version; older ones lack features of the statements, such as `uuidv7`. */
const oldestMajor = 18

/** Number of connections that stay free for other clients of the server. */
export const reserve = 10

export interface Facts {
  /** The value of `server_version_num`. */
  readonly version: number
  readonly encoding: string
  /** Number of connections that the role may open, by the limits of the server, the database and the role. */
  readonly connections: number
  /** The setting with the lowest of these limits. */
  readonly limit: string
  readonly readOnly: boolean
  /** Whether the role may create tables in the current schema. */
  readonly mayCreate: boolean
}

interface Fault {
  readonly name: string
  readonly detail: string
  readonly remedy: string
}

export const look = Effect.fnUntraced(function* (sql: Sql) {
  const [row] = yield* sql<Facts>`
    with limits (connections, "limit") as (
      select current_setting('max_connections')::int
             - case when r.rolsuper then 0 else current_setting('superuser_reserved_connections')::int end,
             'max_connections of the server'
      from pg_roles r where r.rolname = current_user
      union all
      select datconnlimit, 'the connection limit of the database' from pg_database
      where datname = current_database() and datconnlimit >= 0
      union all
      select rolconnlimit, 'the connection limit of the role' from pg_roles
      where rolname = current_user and rolconnlimit >= 0
    )
    select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
           connections, "limit", pg_is_in_recovery() as "readOnly",
           coalesce(has_schema_privilege(current_schema(), 'create'), false) as "mayCreate"
    from limits order by connections limit 1`
  return row!
})

export const majorOf = ({ version }: Facts): number => Math.floor(version / 10_000)

/** Returns the unmet requirements, the most fundamental one first. */
export const faultsOf = (facts: Facts): ReadonlyArray<Fault> => {
  const { encoding, connections, limit, readOnly, mayCreate } = facts
  return [
    ...(majorOf(facts) < oldestMajor
      ? [
          {
            name: "version",
            detail: `the server is PostgreSQL ${majorOf(facts)}, and the service needs ${oldestMajor} or later`,
            remedy: "upgrade it, or point DATABASE_URL at a newer one",
          },
        ]
      : []),
    ...(readOnly
      ? [
          {
            name: "primary",
            detail: "the server is a standby, which rejects writes",
            remedy: "point DATABASE_URL at the primary",
          },
        ]
      : []),
    ...(encoding === "UTF8"
      ? []
      : [
          {
            name: "encoding",
            detail: `the database's encoding is ${encoding}, and the service stores text in UTF8`,
            remedy: "create another one with: createdb --encoding=UTF8 --template=template0",
          },
        ]),
    ...(connections < connectionsPerProcess
      ? [
          {
            name: "connections",
            detail: `${limit} leaves ${connections} connections, and a process opens up to ${connectionsPerProcess}`,
            remedy: `set it to ${connectionsPerProcess} for each process and ${reserve} more`,
          },
        ]
      : []),
    ...(mayCreate
      ? []
      : [
          {
            name: "privileges",
            detail: "the role may not create tables in the database's schema",
            remedy: "make it the owner of the database, or: grant create on schema public to <role>",
          },
        ]),
  ]
}

export const refuseUnfit = Effect.gen(function* () {
  const [fault] = faultsOf(yield* look(yield* Unhurried))
  if (fault === undefined) return
  return yield* new StoreUnfit({
    message: `The database cannot carry the service: ${fault.detail}. To go on, ${fault.remedy}.`,
  })
})
