/**
 * The master key of the deployment: set by the operator, or in Development created once and stored in the data
 * directory.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import { rotate } from "@svc/cluster/sealing/Rotation"
import { Unhurried } from "@svc/cluster/store/Database"
import { Effect, Layer, Option, Redacted } from "effect"
import { type Settings, SettingsInvalid } from "./Settings.ts"

const read = (file: string): string | undefined => {
  try {
    return fs.readFileSync(file, "utf8").trim()
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined
    throw error
  }
}

/** Returns the key of the file, or creates one if no key was ever used with the database. */
const kept = Effect.fnUntraced(function* (directory: string) {
  const file = path.join(directory, "master.key")
  const attempt = <A>(use: () => A) =>
    Effect.try({
      try: use,
      catch: (error) => new SettingsInvalid({ message: `${file} is not usable: ${String(error)}` }),
    })
  const present = yield* attempt(() => read(file))
  if (present !== undefined) return present
  const sql = yield* Unhurried
  const [written] = yield* sql`select 1 from sealing_canary`
  if (written === undefined) {
    return yield* attempt(() => {
      fs.mkdirSync(directory, { recursive: true })
      try {
        // If two processes start together, both use the key of the first.
        fs.writeFileSync(file, randomBytes(32).toString("base64"), { mode: 0o600, flag: "wx" })
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
      }
      return fs.readFileSync(file, "utf8").trim()
    })
  }
  // Another process may have created the database and the key since the check.
  const meanwhile = yield* attempt(() => read(file))
  if (meanwhile !== undefined) return meanwhile
  return yield* new SettingsInvalid({
    message: `The database was written with a master key, but ${file} is missing: restore it, or set SVC_MASTER_KEY. Sealed data cannot be decrypted without it.`,
  })
})

/** Needs the migrated store, because the database decides whether a key may be created. */
export const layer = (settings: Settings) =>
  Effect.gen(function* () {
    const text = Option.isSome(settings.masterKey)
      ? Redacted.value(settings.masterKey.value)
      : yield* kept(settings.dataDirectory)
    const keys = yield* Effect.mapError(
      parseMasterKeys(text),
      ({ message }) =>
        new SettingsInvalid({
          message: `${Option.isSome(settings.masterKey) ? "SVC_MASTER_KEY" : path.join(settings.dataDirectory, "master.key")} is neither 32 bytes in base64 nor a list of id:key. ${message}`,
        }),
    )
    return Sealing.layer(keys)
  }).pipe(Layer.unwrap)

/** Stops the start if the master key does not match the database, and re-seals what a previous key sealed. */
export const guard = Layer.effectDiscard(rotate)
