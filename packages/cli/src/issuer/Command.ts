/** `svc issuer` prints the keys that sign identity tokens; `svc issuer rotate` creates new keys. */
import { type Cause, Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"

/** The error was already printed. */
class IssuerFailed extends Schema.TaggedError<IssuerFailed>()("ServeFailed", {}) {}

const modules = Effect.promise(() =>
  Promise.all([import("./Keys.ts"), import("../serve/Settings.ts"), import("../serve/OperatorErrors.ts")]),
)

const print = Effect.fnUntraced(
  function* (rotate: boolean, json: boolean) {
    // Loaded on demand, because these modules load all settings of the service and its store.
    const [{ listed, lines }, { load }] = yield* modules
    const keys = yield* listed(yield* load, rotate)
    process.stdout.write(json ? `${JSON.stringify({ keys })}\n` : lines(keys))
  },
  Effect.catchCause((cause): Effect.Effect<never, IssuerFailed> =>
    Effect.flatMap(modules, ([, , { sentence }]) => {
      const words = sentence(cause, {})
      if (words === undefined) return Effect.failCause(cause as Cause.Cause<never>)
      process.stderr.write(`svc: ${words}\n`)
      return Effect.fail(new IssuerFailed())
    }),
  ),
)

const json = Flag.Boolean("json").pipe(Flag.withDefault(false))

const rotate = Command.make("rotate", { json }, (flags) => print(true, flags.json)).pipe(
  Command.withDescription("Create new keys; they sign after a day, when verifiers know them."),
)

export const command = Command.make("issuer", { json }, (flags) => print(false, flags.json)).pipe(
  Command.withDescription("Print the keys that sign identity tokens."),
  Command.withSubcommands([rotate]),
)
