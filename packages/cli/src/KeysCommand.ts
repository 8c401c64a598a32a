/**
 * Makes the commands of keys that rotate in generations: `svc dkim` and `svc issuer` print the keys, and `rotate` creates
 * new ones. Their modules load all settings of the service and its store, so they are imported when a command runs.
 */
import { type Cause, Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { type Format, formatFlags, print } from "./client/Format.ts"
import type { Settings } from "./serve/Settings.ts"

/** The error was already printed. */
class KeysFailed extends Schema.TaggedError<KeysFailed>()("ServeFailed", {}) {}

/** The exports of a module of keys. */
interface Keys<K, E> {
  /** Lists the keys. Creates the first ones, and new ones if `rotate` is set. */
  readonly listed: (settings: Settings, rotate: boolean) => Effect.Effect<ReadonlyArray<K>, E>
  readonly printed: (keys: ReadonlyArray<K>) => string
}

interface KeysCommand<K, E> {
  readonly name: string
  readonly description: string
  readonly rotation: string
  readonly load: () => Promise<Keys<K, E>>
}

export const keysCommand = <K, E>({ name, description, rotation, load }: KeysCommand<K, E>) => {
  const modules = Effect.promise(() =>
    Promise.all([load(), import("./serve/Settings.ts"), import("./serve/OperatorErrors.ts")]),
  )
  const show = Effect.fnUntraced(
    function* (rotate: boolean, format: Format) {
      const [{ listed, printed }, settings] = yield* modules
      const keys = yield* listed(yield* settings.load, rotate)
      yield* print(format, { keys }, [printed(keys).trimEnd()])
    },
    Effect.catchCause((cause): Effect.Effect<never, KeysFailed> =>
      Effect.flatMap(modules, ([, , { sentence }]) => {
        const words = sentence(cause, {})
        if (words === undefined) return Effect.failCause(cause as Cause.Cause<never>)
        process.stderr.write(`svc: ${words}\n`)
        return Effect.fail(new KeysFailed())
      }),
    ),
  )
  const rotate = Command.make("rotate", formatFlags, (flags) => show(true, flags)).pipe(
    Command.withDescription(rotation),
  )
  return Command.make(name, formatFlags, (flags) => show(false, flags)).pipe(
    Command.withDescription(description),
    Command.withSubcommands([rotate]),
  )
}
