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
import { endWithParent } from "./Parent.ts"
import * as Migrate from "./migrate/Command.ts"
import * as Serve from "./serve/Command.ts"
import * as Tunnel from "./tunnel/Command.ts"
import * as Unit from "./unit/Command.ts"

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

/** The commands of the tools stand on the whole API: they are loaded for who calls one, or asks what there is. */
const byTool = [...always.map(({ name }) => name as string), "--version"].includes(process.argv[2] ?? "")
  ? []
  : (await import("./tools/Commands.ts")).commands

const svc = Command.make("svc").pipe(
  Command.withDescription("The agent identity service and its client."),
  Command.withSubcommands([...always, ...byTool]),
)

endWithParent()
guardOutput()
svc.pipe(
  Command.run({ version: apiVersion }),
  Effect.catchTags({
    // They were told in words already.
    Told: () => Effect.sync(() => (process.exitCode = 1)),
    ServeFailed: () => Effect.sync(() => (process.exitCode = 1)),
    // The command line was not understood; the help was shown. The library would leave with 1.
    ShowHelp: ({ errors }) => Effect.sync(() => (process.exitCode = errors.length > 0 ? 2 : 0)),
  }),
  Effect.provide(NodeServices.layer),
  Effect.provide(Logging.layer),
  NodeRuntime.runMain({ disableErrorReporting: false }),
)
