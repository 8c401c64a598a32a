/** The `svc` command. */
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { apiVersion } from "@svc/domain/Version"
import * as Audit from "./audit/Command.ts"
import * as Backup from "./backup/Command.ts"
import * as Account from "./account/Commands.ts"
import * as Dns from "./dns/Command.ts"
import * as Dkim from "./dkim/Command.ts"
import * as Doctor from "./doctor/Command.ts"
import * as Grants from "./grants/Command.ts"
import * as Logging from "./Logging.ts"
import * as Mcp from "./mcp/Command.ts"
import { guardOutput } from "./Output.ts"
import { endWithParent } from "./ParentProcess.ts"
import * as Migrate from "./migrate/Command.ts"
import * as Serve from "./serve/Command.ts"
import * as Tunnel from "./tunnel/Command.ts"
import * as Unit from "./unit/Command.ts"
import * as UsageErrors from "./UsageErrors.ts"

const always = [
  Serve.command,
  Migrate.command,
  ...Account.commands,
  Grants.command,
  Mcp.command,
  Tunnel.command,
  Audit.command,
  Dkim.command,
  Doctor.command,
  Dns.command,
  Backup.backup,
  Backup.restore,
  Backup.upgradeStore,
  Unit.command,
] as const

/** The commands of the tools need the whole API, so they are loaded only for who calls one or asks what there is. */
const [, , noun = "", verb = ""] = process.argv
const isOwn = [...always.map(({ name }) => name as string), "--version"].includes(noun)
const byTool = isOwn && !(noun === "tunnel" && verb === "get") ? [] : (await import("./tools/Commands.ts")).commands
/** `svc tunnel get` is a tool under the name of a command of its own. */
const tunnel = byTool.find(({ name }) => name === "tunnel")

const svc = Command.make("svc").pipe(
  Command.withDescription("The agent identity service and its client."),
  Command.withSubcommands(
    noun === "tunnel" && tunnel !== undefined
      ? [tunnel]
      : [...always, ...byTool.filter((command) => command !== tunnel)],
  ),
)

endWithParent()
guardOutput()
svc.pipe(
  Command.run({ version: apiVersion }),
  Effect.catchTags({
    // They were told in words already.
    Told: () => Effect.sync(() => (process.exitCode = 1)),
    ServeFailed: () => Effect.sync(() => (process.exitCode = 1)),
    // The command line was not understood (`UsageErrors`), or help was shown. The library would exit with 1.
    ShowHelp: ({ errors }) => Effect.sync(() => (process.exitCode = errors.length > 0 ? 2 : 0)),
  }),
  Effect.provide(UsageErrors.layer),
  Effect.provide(NodeServices.layer),
  Effect.provide(Logging.layer),
  NodeRuntime.runMain({ disableErrorReporting: false }),
)
