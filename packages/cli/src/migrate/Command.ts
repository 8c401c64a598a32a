/** `svc migrate`: applies pending migrations and exits. The service does the same when it starts. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { reportedError } from "../ReportedError.ts"

export const command = Command.make(
  "migrate",
  {
    check: Flag.Boolean("check").pipe(
      Flag.withDescription("Only say what is pending; ends with 1 where something is"),
      Flag.withDefault(false),
    ),
  },
  ({ check }) =>
    reportedError(
      Effect.flatMap(
        Effect.promise(() => import("./Migrate.ts")),
        ({ look, run }) => (check ? look : run),
      ),
    ),
).pipe(Command.withDescription("Bring the database up to date, as a start would, and end."))
