/**
 * `svc init` sets up an agent in one dialogue: login, Identity, `.env` with the Identity's key, and the MCP server of a client. A flag answers
 * each question in advance. Without a terminal, the command takes the defaults.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { Effect, Option, Schedule, Schema } from "effect"
import { Command, Flag, Prompt } from "effect/cli"
import { apiOf, call, connect, type Connection, explained, Misused, understood } from "../client/Connection.ts"
import { apiFlag } from "../client/Flags.ts"
import { formatFlags, isForMachines, note, respond } from "../client/Format.ts"
import { withProgress } from "../client/Progress.ts"
import * as Install from "../mcp/Install.ts"
import { signIn } from "./Commands.ts"

const decodeIdentity = Schema.decodeUnknownEffect(
  Schema.Struct({ handle: Schema.String, status: Schema.String, email: Schema.String }),
)
const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ key: Schema.String }))

const isInteractive = () => process.stdin.isTTY === true && process.stdout.isTTY === true

/** Creates the Identity, or continues with the one that exists, and waits until it is ready. */
const identityOf = Effect.fnUntraced(function* ({ api, key }: Connection, handle: string) {
  const path = `/api/identities/${encodeURIComponent(handle)}`
  const read = Effect.flatMap(call(api, "GET", path, { key }), (body) => understood(api, decodeIdentity(body)))
  const exists = yield* read.pipe(
    Effect.as(true),
    Effect.catchTag("Refused", (refused) =>
      refused.code === "not_found" ? Effect.succeed(false) : Effect.fail(refused),
    ),
  )
  if (!exists) yield* call(api, "POST", "/api/identities", { key, body: { handle } })
  const identity = yield* Effect.repeat(read, {
    schedule: Schedule.spaced("500 millis"),
    until: ({ status }) => status !== "provisioning",
  })
  if (identity.status !== "ready") {
    return yield* new Misused({
      message: `The Identity ${handle} is ${identity.status}. \`svc identity get ${handle}\` shows why.`,
    })
  }
  return { ...identity, isNew: !exists }
})

/** Adds the variables to a file; variables that it has stay. Returns whether it was changed. */
const keepIn = (file: string, variables: Readonly<Record<string, string>>) =>
  Effect.try({
    try: () => {
      const text = existsSync(file) ? readFileSync(file, "utf8") : ""
      const missing = Object.entries(variables).filter(
        ([name]) => !new RegExp(`^\\s*(?:export\\s+)?${name}=`, "m").test(text),
      )
      const lines = missing.map(([name, value]) => `${name}=${value}\n`).join("")
      if (text === "") writeFileSync(file, lines, { mode: 0o600 })
      else appendFileSync(file, `${text.endsWith("\n") ? "" : "\n"}${lines}`)
      return missing.length > 0
    },
    catch: (error) =>
      new Misused({ message: `${file} cannot be written: ${error instanceof Error ? error.message : String(error)}` }),
  })

/** Returns whether a `.gitignore` of this folder keeps the file out of commits. */
const isIgnored = (file: string) =>
  existsSync(".gitignore") &&
  readFileSync(".gitignore", "utf8")
    .split("\n")
    .some((line) => [file, `/${file}`, "*.env", ".env*"].includes(line.trim()))

const hasKey = (file: string) => existsSync(file) && /^\s*(?:export\s+)?SVC_KEY=/m.test(readFileSync(file, "utf8"))

export const command = Command.make(
  "init",
  {
    api: apiFlag,
    handle: Flag.String("handle").pipe(Flag.withDescription("The Identity to create or to use."), Flag.optional),
    env: Flag.String("env").pipe(Flag.withDescription("The file for the key."), Flag.withDefault(".env")),
    client: Flag.String("client").pipe(
      Flag.withDescription(`The MCP client to configure: ${[...Install.names, "none"].join(", ")}.`),
      Flag.optional,
    ),
    ...formatFlags,
    yes: Flag.Boolean("yes").pipe(Flag.withDescription("Ask nothing; take the defaults."), Flag.withDefault(false)),
  },
  Effect.fnUntraced(
    function* (flags) {
      const asks = isInteractive() && !flags.yes && !isForMachines(flags)
      const api = yield* apiOf(flags.api)
      const handle = Option.isSome(flags.handle)
        ? flags.handle.value.replace(/^@/, "")
        : asks
          ? (yield* Prompt.run(Prompt.String({ message: "Name of the agent (its Handle):" }))).trim().replace(/^@/, "")
          : yield* new Misused({ message: "Pass the name of the agent with --handle." })
      const client = Option.isSome(flags.client)
        ? flags.client.value
        : asks
          ? yield* Prompt.run(
              Prompt.Select({
                message: "Which client uses the agent over MCP?",
                choices: [...Install.names, "none"].map((value) => ({ title: value, value })),
              }),
            )
          : "none"
      if (client !== "none" && !Install.names.includes(client)) {
        return yield* new Misused({
          message: `There is no client ${client}. The clients are ${Install.names.join(", ")}, or none.`,
        })
      }
      const connection = yield* connect(flags.api).pipe(
        Effect.catchTag("NotLoggedIn", (missing) =>
          asks ? Effect.andThen(signIn(api, flags), connect(flags.api)) : Effect.fail(missing),
        ),
      )
      yield* note(flags, `1. Identity ${handle} ...`)
      const identity = yield* withProgress(`Setting up ${handle}`, identityOf(connection, handle))
      yield* note(flags, `   ${identity.isNew ? "Created" : "Found"}: ${identity.email}`)
      if (hasKey(flags.env)) yield* note(flags, `2. ${flags.env} already has a SVC_KEY, which stays.`)
      else {
        const created = yield* call(api, "POST", `/api/identities/${encodeURIComponent(handle)}/keys`, {
          key: connection.key,
          body: { name: `svc init ${handle}`.slice(0, 100) },
        })
        const { key } = yield* understood(api, decodeKey(created))
        yield* keepIn(flags.env, { SVC_API_URL: api, SVC_KEY: key })
        yield* note(flags, `2. Key of ${handle} written to ${path.resolve(flags.env)} (SVC_KEY, SVC_API_URL).`)
        if (!isIgnored(flags.env))
          yield* note(flags, `   Add ${flags.env} to .gitignore, so that the key is never committed.`)
      }
      let file: string | null = null
      if (client === "none")
        yield* note(flags, "3. No MCP client was chosen: `svc mcp install <client>` adds one later.")
      else {
        const installed = yield* Install.install(client, {
          user: false,
          server: Install.serverOf({ api, tools: undefined }),
          as: "agent-identity",
        })
        file = installed.file
        yield* note(flags, `3. MCP server added to ${file}. ${installed.next}`)
      }
      const { email, isNew: created } = identity
      yield* respond(
        flags,
        { handle, email, created, env_file: path.resolve(flags.env), mcp_file: file },
        () => `Done. Next: \`svc email list ${handle}\`, or the SDK at ${api}/docs/sdk.`,
      )
    },
    Effect.catchTag("QuitError", () => Effect.sync(() => (process.exitCode = 130))),
    explained,
  ),
).pipe(Command.withDescription("Set up an agent: login, Identity, key in .env, MCP client."))
