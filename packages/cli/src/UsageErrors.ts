/**
 * A command line that was not understood: what is wrong and how the command is called, on standard error, so that standard
 * output has answers only. The process ends with exit code 2 (`svc.ts`).
 */
import { Effect } from "effect"
import { CliOutput } from "effect/cli"
import { report } from "./client/Printing.ts"

export const layer = CliOutput.layerPresenter({
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
