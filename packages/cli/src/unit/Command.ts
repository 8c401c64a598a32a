/** `svc systemd-unit`: what goes to /etc/systemd/system. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { reportedError } from "../ReportedError.ts"

const print = Effect.gen(function* () {
  const { unitOf } = yield* Effect.promise(() => import("./Unit.ts"))
  const unit = yield* unitOf(process.argv[1] ?? "", process.execPath)
  yield* Effect.sync(() => process.stdout.write(unit))
})

export const command = Command.make("systemd-unit", {}, () => reportedError(print)).pipe(
  Command.withDescription("Print the unit that systemd starts the service by."),
)
