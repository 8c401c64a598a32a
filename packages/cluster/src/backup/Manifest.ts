/** The manifest of a backup: its source, the keys that it needs, and the checksums of its tables. */
import { createHash } from "node:crypto"
import { Effect, Schema } from "effect"
import * as Archive from "./Archive.ts"

/** A backup could not be created, read or restored; `message` is for operators. */
export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", { message: Schema.String }) {}

/** Returns the message of the innermost cause: the outer ones only say that a query failed. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message
}

/** Returns a function that turns any error into the failure of a backup or restore. */
export const failedAs =
  (what: string) =>
  (error: unknown): BackupFailed =>
    error instanceof BackupFailed ? error : new BackupFailed({ message: `${what}: ${reasonOf(error)}` })

export const Table = Schema.Struct({
  name: Schema.String,
  /** Columns in the order of the rows. */
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
  /** Migrations of the schema. */
  migrations: Schema.Array(Schema.Int),
  /** The time of the snapshot. */
  taken_at: Schema.String,
  /** Ids of the master keys that sealed values in the backup. */
  master_keys: Schema.Array(Schema.String),
  /** A value to test the keys with, in base64; null if nothing was ever sealed. */
  canary: Schema.NullOr(Schema.String),
  tables: Schema.Array(Table),
  sequences: Schema.Array(Schema.Struct({ name: Schema.String, last: Schema.Int })),
})
export type Manifest = typeof Manifest.Type

export const manifestName = "manifest.json"

/** Returns the name of a table's member by its number. */
export const memberOf = (table: string, at: number) => `tables/${table}.${String(at).padStart(6, "0")}.bin`
export const tableOf = (member: string): string | undefined => /^tables\/(.+)\.\d{6}\.bin$/.exec(member)?.[1]

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Manifest))

const wordsOf = (file: string, error: unknown): string => {
  if (error instanceof Archive.Torn) return `${file} is not a whole backup: ${error.message}. Nothing was restored.`
  return `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`
}

/** Reads a file completely and compares each table with its checksum before it trusts the manifest. */
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
    () => new BackupFailed({ message: `${file} was made by a version with another backup format.` }),
  )
  const altered = manifest.tables.find(({ name, bytes, sha256 }) => {
    const sum = found.sums.get(name)
    return sum === undefined || sum.bytes !== bytes || sum.sha256 !== sha256
  })
  if (altered !== undefined) {
    return yield* new BackupFailed({
      message: `${file} is damaged: the checksum of its table ${altered.name} does not match. Nothing was restored.`,
    })
  }
  return manifest
})
