/** The `svc` command. */
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Logger } from "effect"
import { Command } from "effect/cli"
import { apiVersion } from "@svc/domain/Version"
import * as Account from "./account/Commands.ts"
import * as Mcp from "./mcp/Command.ts"
import * as Serve from "./serve/Command.ts"
import * as Tunnel from "./tunnel/Command.ts"

/** Text for people at a terminal, a line of JSON per entry for machines. */
const logger = process.stdout.isTTY ? Logger.consolePretty() : Logger.consoleJson

const svc = Command.make("svc").pipe(
  Command.withDescription("The agent identity service and its client."),
  Command.withSubcommands([Serve.command, ...Account.commands, Mcp.command, Tunnel.command]),
)

svc.pipe(
  Command.run({ version: apiVersion }),
  Effect.catchTags({
    // It was told in words already.
    ServeFailed: () => Effect.sync(() => (process.exitCode = 1)),
    // The command line was not understood; the help was shown. The library would leave with 1.
    ShowHelp: ({ errors }) => Effect.sync(() => (process.exitCode = errors.length > 0 ? 2 : 0)),
  }),
  Effect.provide(NodeServices.layer),
  Effect.provide(Logger.layer([logger])),
  NodeRuntime.runMain({ disableErrorReporting: false }),
)
