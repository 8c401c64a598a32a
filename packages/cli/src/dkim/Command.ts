/** `svc dkim` prints the DNS records of the keys that sign outgoing mail; `svc dkim rotate` creates new keys. */
import { type Cause, Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"

/** The error was already printed. */
class DkimFailed extends Schema.TaggedError<DkimFailed>()("ServeFailed", {}) {}

const modules = Effect.promise(() =>
  Promise.all([import("./Keys.ts"), import("../serve/Settings.ts"), import("../serve/OperatorErrors.ts")]),
)

const print = Effect.fnUntraced(
  function* (rotate: boolean, json: boolean) {
    // Loaded on demand, because these modules load all settings of the service and its store.
    const [{ listed, zone }, { load }] = yield* modules
    const keys = yield* listed(yield* load, rotate)
    process.stdout.write(json ? `${JSON.stringify({ keys })}\n` : zone(keys))
  },
  Effect.catchCause((cause): Effect.Effect<never, DkimFailed> =>
    Effect.flatMap(modules, ([, , { sentence }]) => {
      const words = sentence(cause, {})
      if (words === undefined) return Effect.failCause(cause as Cause.Cause<never>)
      process.stderr.write(`svc: ${words}\n`)
      return Effect.fail(new DkimFailed())
    }),
  ),
)

const json = Flag.Boolean("json").pipe(Flag.withDefault(false))

const rotate = Command.make("rotate", { json }, (flags) => print(true, flags.json)).pipe(
  Command.withDescription("Create new keys; the old keys sign until the new ones are published."),
)

export const command = Command.make("dkim", { json }, (flags) => print(false, flags.json)).pipe(
  Command.withDescription("Print the DNS records of the keys that sign outgoing mail."),
  Command.withSubcommands([rotate]),
)
