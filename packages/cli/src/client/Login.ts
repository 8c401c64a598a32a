/** The stored login: one file in the user's configuration directory that only its owner may read. */
import { accessSync, chmodSync, constants, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, type Option, Redacted, Schema } from "effect"

const Stored = Schema.fromJsonString(Schema.Struct({ api: Schema.String, key: Schema.String }))

export interface Login {
  readonly api: string
  readonly key: Redacted.Redacted<string>
}

/** Returns the path: `$XDG_CONFIG_HOME/svc` or `~/.config/svc`; on Windows `%APPDATA%\svc`. */
export const file = (): string =>
  path.join(
    process.platform === "win32"
      ? process.env["APPDATA"] || os.homedir()
      : process.env["XDG_CONFIG_HOME"] || path.join(os.homedir(), ".config"),
    "svc",
    "login.json",
  )

/** Returns the stored login, if it exists and is readable. */
export const load: Effect.Effect<Option.Option<Login>> = Effect.try(() => readFileSync(file(), "utf8")).pipe(
  Effect.flatMap(Schema.decodeUnknownEffect(Stored)),
  Effect.map(({ api, key }): Login => ({ api, key: Redacted.make(key) })),
  Effect.option,
)

/** The login cannot be stored. */
export class NotKept extends Schema.TaggedError<NotKept>()("NotKept", { message: Schema.String }) {}

const orNotKept = <A>(keep: () => A) =>
  Effect.try({
    try: keep,
    catch: (error) =>
      new NotKept({
        message: `The login cannot be stored in ${file()} (${error instanceof Error ? error.message : String(error)}): make its folder writable, or use a key in SVC_KEY.`,
      }),
  })

/** Verifies that the login can be stored, before a key is created for it. */
export const prepare = orNotKept(() => {
  const folder = path.dirname(file())
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  accessSync(folder, constants.W_OK)
})

/** Stores the login with mode 0600 from the start; the file is complete before it gets its name. */
export const save = (login: Login): Effect.Effect<void, NotKept> =>
  orNotKept(() => {
    const target = file()
    const draft = `${target}.${process.pid}`
    writeFileSync(draft, `${JSON.stringify({ api: login.api, key: Redacted.value(login.key) })}\n`, { mode: 0o600 })
    chmodSync(draft, 0o600)
    renameSync(draft, target)
  })

export const forget: Effect.Effect<void> = Effect.sync(() => rmSync(file(), { force: true }))
