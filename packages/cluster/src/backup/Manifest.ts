/** What stands in a backup beside the rows: of what it was taken, which keys it wants, and the sums of its tables. */
import { createHash } from "node:crypto"
import { Effect, Schema } from "effect"
import * as Archive from "./Archive.ts"

/** A backup could not be taken, read or restored; `message` is for operators. */
export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", { message: Schema.String }) {}

export const Table = Schema.Struct({
  name: Schema.String,
  /** In the order in which the rows have them. */
  columns: Schema.Array(Schema.String),
  rows: Schema.Int,
  bytes: Schema.Int,
  sha256: Schema.String,
})
export type Table = typeof Table.Type

export const Manifest = Schema.Struct({
  format: Schema.Literal(1),
  program: Schema.String,
  postgres: Schema.String,
  /** Numbers of the migrations that the schema had. */
  migrations: Schema.Array(Schema.Int),
  /** When the snapshot was taken. */
  taken_at: Schema.String,
  /** Ids of the master keys that something in it is sealed by. */
  master_keys: Schema.Array(Schema.String),
  /** Opens with them; base64. Null where nothing was ever sealed. */
  canary: Schema.NullOr(Schema.String),
  tables: Schema.Array(Table),
  sequences: Schema.Array(Schema.Struct({ name: Schema.String, last: Schema.Int })),
})
export type Manifest = typeof Manifest.Type

export const manifestName = "manifest.json"

/** The member of a table that begins so many members after its first. */
export const memberOf = (table: string, at: number) => `tables/${table}.${String(at).padStart(6, "0")}.bin`
export const tableOf = (member: string): string | undefined => /^tables\/(.+)\.\d{6}\.bin$/.exec(member)?.[1]

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Manifest))

const wordsOf = (file: string, error: unknown): string => {
  if (error instanceof Archive.Torn) return `${file} is not a whole backup: ${error.message}. Nothing was restored.`
  return `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`
}

/** Reads a file to its end and holds every table against its sum; only then is its manifest believed. */
export const inspect = Effect.fn("Manifest.inspect")(function* (file: string) {
  const found = yield* Effect.tryPromise({
    try: async () => {
      const tables = new Map<string, { bytes: number; readonly hash: ReturnType<typeof createHash> }>()
      let manifest: string | undefined
      for await (const { name, bytes } of Archive.read(file)) {
        const table = tableOf(name)
        if (table === undefined) {
          if (name === manifestName) manifest = bytes.toString("utf8")
          continue
        }
        const sum = tables.get(table) ?? { bytes: 0, hash: createHash("sha256") }
        tables.set(table, sum)
        sum.bytes += bytes.length
        sum.hash.update(bytes)
      }
      if (manifest === undefined) throw new Archive.Torn("it has no manifest")
      return {
        manifest,
        sums: new Map([...tables].map(([name, { bytes, hash }]) => [name, { bytes, sha256: hash.digest("hex") }])),
      }
    },
    catch: (error) => new BackupFailed({ message: wordsOf(file, error) }),
  })
  const manifest = yield* Effect.mapError(
    decode(found.manifest),
    () => new BackupFailed({ message: `${file} was made by a program that writes backups otherwise.` }),
  )
  const altered = manifest.tables.find(({ name, bytes, sha256 }) => {
    const sum = found.sums.get(name)
    return sum === undefined || sum.bytes !== bytes || sum.sha256 !== sha256
  })
  if (altered !== undefined) {
    return yield* new BackupFailed({
      message: `${file} is not what was written: its table ${altered.name} has another sum. Nothing was restored.`,
    })
  }
  return manifest
})
