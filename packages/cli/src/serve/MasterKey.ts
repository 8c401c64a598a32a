/** The master key of the deployment: the operator's, or in Development one that is made once and kept in the data directory. */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import { Writes } from "@svc/cluster/store/Database"
import { Effect, Layer, Option, Redacted } from "effect"
import { type Settings, SettingsInvalid } from "./Settings.ts"

const kept = (directory: string): string => {
  const file = path.join(directory, "master.key")
  fs.mkdirSync(directory, { recursive: true })
  try {
    // Two processes that start together agree on the one that was first.
    fs.writeFileSync(file, randomBytes(32).toString("base64"), { mode: 0o600, flag: "wx" })
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
  }
  return fs.readFileSync(file, "utf8").trim()
}

export const layer = (settings: Settings) =>
  Effect.gen(function* () {
    const text = Option.match(settings.masterKey, {
      onSome: Redacted.value,
      onNone: () => kept(settings.dataDirectory),
    })
    const keys = yield* Effect.mapError(
      parseMasterKeys(text),
      () => new SettingsInvalid({ message: "SVC_MASTER_KEY is not 32 bytes in base64, nor a list of id:key." }),
    )
    return Sealing.layer(keys)
  }).pipe(Layer.unwrap)

/** Refuses to start with a master key that does not open what the database holds. */
export const guard = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* Writes
    const sealing = yield* Sealing
    yield* sql`insert into sealing_canary (id, sealed) values (1, ${yield* sealing.sealCanary}) on conflict (id) do nothing`
    const [row] = yield* sql<{ sealed: Uint8Array }>`select sealed from sealing_canary where id = 1`
    yield* Effect.mapError(
      sealing.openCanary(row!.sealed),
      () => new SettingsInvalid({ message: "SVC_MASTER_KEY is not the key this database was written with." }),
    )
  }),
)
