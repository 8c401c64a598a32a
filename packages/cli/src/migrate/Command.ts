/** `svc migrate`: applies pending migrations and exits. The service does the same when it starts. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { formatFlags } from "../client/Format.ts"
import { reportedError } from "../ReportedError.ts"

export const command = Command.make(
  "migrate",
  {
    check: Flag.Boolean("check").pipe(
      Flag.withDescription("Only list pending migrations; exits with 1 if there are any"),
      Flag.withDefault(false),
    ),
    ...formatFlags,
  },
  ({ check, ...format }) =>
    reportedError(
      Effect.flatMap(
        Effect.promise(() => import("./Migrate.ts")),
        ({ look, run }) => (check ? look : run)(format),
      ),
    ),
).pipe(Command.withDescription("Apply pending database migrations, as a start would."))
