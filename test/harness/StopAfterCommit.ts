/** Blocks an actor's statement with a lock, so that a process can be stopped at a known moment. */
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Layer } from "effect"
import { settingsOf } from "../faults/Store.ts"
import type { Deployment, Process } from "./Deployment.ts"
import { eventually } from "./Service.ts"

/** Counts the statements of this database that wait for a lock; other databases of the server are ignored. */
const waiting = `select count(*)::int as n from pg_stat_activity
                 where wait_event_type = 'Lock' and datname = current_database()`

/**
 * Stops the process while a statement waits for the Mailbox of this Handle, which is locked, and returns once the
 * statement has committed, that is, once another row of `table` exists. The caller of the process has not received a
 * response by then.
 */
export const stopAfterCommit = (
  deployment: Deployment,
  { handle, table, process }: { handle: string; table: "message" | "outgoing"; process: Process },
): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const sql = yield* Stores.Unhurried
      const count = (statement: string) => Effect.map(sql.unsafe<{ n: number }>(statement), ([row]) => row!.n)
      const more = (statement: string, than: number) =>
        Effect.promise(() =>
          eventually(
            () => Effect.runPromise(count(statement)),
            (n) => n > than,
            60,
          ),
        )
      const rows = `select count(*)::int as n from ${table}`
      const before = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select from mailbox m join identity i on i.id = m.identity_id where i.handle = ${handle} for update of m`
          yield* more(waiting, 0)
          process.signal("SIGSTOP")
          return yield* count(rows)
        }),
      )
      yield* more(rows, before)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Stores.layer(settingsOf(deployment))))),
  )
