/**
 * Only one process at a time starts the server. The lock is SQLite's on a file, which the kernel lets go of when its
 * holder dies, so there is no stale lock to recognise.
 */
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Schedule, type Scope } from "effect"

const attempt = (file: string) =>
  Effect.try({
    try: () => {
      const database = new DatabaseSync(file)
      try {
        database.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE")
        return database
      } catch (error) {
        database.close()
        throw error
      }
    },
    catch: (error) => (error instanceof Error ? error : new Error(String(error))),
  })

const isBusy = (error: Error) => /locked|busy/i.test(error.message)

/** Held until the scope closes. */
export const hold = (home: string): Effect.Effect<void, Error, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(path.join(home, "start.lock")).pipe(
      Effect.retry({ while: isBusy, schedule: Schedule.spaced("10 millis") }),
    ),
    (database) => Effect.sync(() => database.close()),
    { interruptible: true },
  ).pipe(Effect.asVoid)
