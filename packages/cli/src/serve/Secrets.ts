/**
 * Secret settings can be read from files, as containers and systemd provide them: `X_FILE` names a file with the value
 * of `X`. A final line break is removed.
 */
import { readFileSync } from "node:fs"
import { Config, ConfigProvider, Effect, Option, Redacted } from "effect"

/** Fails the configuration with a sentence for the operator. */
export const refuse = (message: string) =>
  Effect.fail(new Config.ConfigError(new ConfigProvider.SourceError({ message })))

const read = (name: string, file: string) => {
  try {
    const text = readFileSync(file, "utf8").replace(/\r?\n$/, "")
    return text === ""
      ? refuse(`${name}_FILE names ${file}, which is empty.`)
      : Effect.succeed(Option.some(Redacted.make(text)))
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : String(error)
    return refuse(`${name}_FILE names ${file}, which cannot be read (${why}).`)
  }
}

/** Returns the value of a variable, or of the file that its `_FILE` variable names. */
export const secret = (name: string): Config.Config<Option.Option<Redacted.Redacted<string>>> =>
  Config.all({
    value: Config.option(Config.Redacted(name)),
    file: Config.option(Config.NonEmptyString(`${name}_FILE`)),
  }).pipe(
    Config.mapEffect(({ value, file }) => {
      if (Option.isNone(file)) return Effect.succeed(value)
      return Option.isSome(value)
        ? refuse(`${name} and ${name}_FILE are both set: remove one.`)
        : read(name, file.value)
    }),
  )
