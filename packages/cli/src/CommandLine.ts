/** The command line of `svc`: its commands, and the exit code of each outcome. */
import { apiVersion } from "@svc/domain/Version"
import { Effect } from "effect"
import { Command, CliOutput } from "effect/cli"
import * as Audit from "./audit/Command.ts"
import * as Backup from "./backup/Command.ts"
import * as Account from "./account/Commands.ts"
import * as Dns from "./dns/Command.ts"
import * as Init from "./account/Init.ts"
import * as Issuer from "./issuer/Command.ts"
import * as Dkim from "./dkim/Command.ts"
import * as Doctor from "./doctor/Command.ts"
import * as Credentials from "./proof/Credentials.ts"
import * as Fetch from "./proof/Fetch.ts"
import * as Verify from "./proof/Verify.ts"
import * as SignIn from "./proof/SignIn.ts"
import * as Token from "./proof/Token.ts"
import * as Grants from "./grants/Command.ts"
import * as Listen from "./events/Listen.ts"
import * as Mcp from "./mcp/Command.ts"
import * as Migrate from "./migrate/Command.ts"
import * as Serve from "./serve/Command.ts"
import * as Trigger from "./events/Trigger.ts"
import * as Tunnel from "./tunnel/Command.ts"
import * as Unit from "./unit/Command.ts"
import { report } from "./client/Printing.ts"

/**
 * Reports an invalid command line and its usage on standard error, so that standard output contains responses only. The
 * process ends with exit code 2.
 */
const usageErrors = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.sync(() => {
          const messages = event.errors.map(({ message }) => message.trim().replace(/\.?$/, "."))
          const path = event.commandPath.join(" ")
          const help = `Usage: ${event.helpDoc.usage.trim()}. \`${path} --help\` says more.`
          report([...messages, help].join(" "), { code: "usage", detail: messages.join(" "), agent_hint: "fix_call" })
        })
      : CliOutput.defaultPresenter.present(event),
})

const always = [
  Serve.command,
  Migrate.command,
  ...Account.commands,
  Grants.command,
  Mcp.command,
  Tunnel.command,
  Fetch.command,
  Token.command,
  Verify.command,
  SignIn.command,
  Credentials.command,
  Init.command,
  Listen.command,
  Trigger.command,
  Audit.command,
  Dkim.command,
  Issuer.command,
  Doctor.command,
  Dns.command,
  Backup.backup,
  Backup.restore,
  Backup.upgradeStore,
  Unit.command,
] as const

/** Commands that are not tools and have a tool below them: `svc tunnel get`, `svc token create`, `svc sign-in create`. */
const toolBelow: Readonly<Record<string, string>> = { tunnel: "get", token: "create", "sign-in": "create" }

/** Returns the program of a command line. It sets the exit code of the process. */
export const program = async (words: ReadonlyArray<string>) => {
  const [noun = "", verb = ""] = words
  const isOwn = [...always.map(({ name }) => name as string), "--version"].includes(noun)
  // Tool commands load the whole API, so they are only loaded if one is called or the help lists them.
  const byTool = isOwn && toolBelow[noun] !== verb ? [] : (await import("./tools/Commands.ts")).commands
  const below = isOwn ? byTool.filter(({ name }) => name === noun) : []
  const svc = Command.make("svc").pipe(
    Command.withDescription("The agent identity service and its client."),
    Command.withSubcommands(
      below.length > 0 ? below : [...always, ...byTool.filter(({ name }) => toolBelow[name] === undefined)],
    ),
  )
  return Command.runWith(svc, { version: apiVersion })(words).pipe(
    Effect.catchTags({
      // The error was already reported.
      ReportedError: () => Effect.sync(() => (process.exitCode = 1)),
      ServeFailed: () => Effect.sync(() => (process.exitCode = 1)),
      // The command line was invalid (`usageErrors`), or help was shown. The library would exit with 1.
      ShowHelp: ({ errors }) => Effect.sync(() => (process.exitCode = errors.length > 0 ? 2 : 0)),
    }),
    Effect.provide(usageErrors),
  )
}
