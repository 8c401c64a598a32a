/** The `svc` command. */
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Logger } from "effect"
import { Command } from "effect/cli"
import { apiVersion } from "@svc/domain/Version"
import * as Account from "./account/Commands.ts"
import * as Doctor from "./doctor/Command.ts"
import * as Mcp from "./mcp/Command.ts"
import * as Serve from "./serve/Command.ts"
import * as Tunnel from "./tunnel/Command.ts"

/** Text for people at a terminal, a line of JSON per entry for machines. */
const logger = process.stdout.isTTY ? Logger.consolePretty() : Logger.consoleJson

const always = [Serve.command, ...Account.commands, Mcp.command, Tunnel.command, Doctor.command] as const

/** The commands of the tools stand on the whole API: they are loaded for who calls one, or asks what there is. */
const byTool = [...always.map(({ name }) => name as string), "--version"].includes(process.argv[2] ?? "")
  ? []
  : (await import("./tools/Commands.ts")).commands

const svc = Command.make("svc").pipe(
  Command.withDescription("The agent identity service and its client."),
  Command.withSubcommands([...always, ...byTool]),
)

/** What went wrong in words, where it is the operator's to mend. */
const explain = (error: { readonly _tag: string; readonly message: string }) =>
  Effect.andThen(
    Effect.sync(() => process.stderr.write(`svc: ${error.message}\n`)),
    Effect.fail(new ExplainedFailure()),
  )

class ExplainedFailure extends Error {}

svc.pipe(
  Command.run({ version: apiVersion }),
  Effect.catchTags({
    SettingsInvalid: explain,
    EmbeddedPostgresError: explain,
    // The command line was not understood; the help was shown. The library would leave with 1.
    ShowHelp: ({ errors }) => Effect.sync(() => (process.exitCode = errors.length > 0 ? 2 : 0)),
  }),
  Effect.provide(NodeServices.layer),
  Effect.provide(Logger.layer([logger])),
  NodeRuntime.runMain({ disableErrorReporting: false }),
)
