/**
 * `svc systemd-unit`: prints the systemd unit of this installation. The text is the unit of the package or the checkout,
 * changed to start the program that was called, wherever npm installed it.
 */
import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { reportedError } from "../ReportedError.ts"
import * as fs from "node:fs"
import * as path from "node:path"

/** No unit exists, or it would not work; `message` is for operators. */
export class UnitFailed extends Schema.TaggedError<UnitFailed>()("UnitFailed", { message: Schema.String }) {}

const name = path.join("deploy", "svc.service")

/** Returns the unit next to a program or in a parent folder, as in a checkout. */
const unitAbove = (program: string): string | undefined => {
  let folder = path.dirname(program)
  while (folder !== path.dirname(folder)) {
    const file = path.join(folder, name)
    if (fs.existsSync(file)) return file
    folder = path.dirname(folder)
  }
  return undefined
}

/**
 * Folders that the unit hides from the service: those of systemd's `ProtectHome` (homes and `/run/user`) and
 * `PrivateTmp` (systemd.exec(5), "Sandboxing").
 */
const hiddenFolders: ReadonlyArray<string> = ["/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"]

/**
 * Returns the text of the unit. `started` is what the shell ran, often a link; systemd needs absolute paths and does
 * not search for Node.
 */
export const unitOf = (
  started: string,
  node: string,
  hidden: ReadonlyArray<string> = hiddenFolders,
): Effect.Effect<string, UnitFailed> =>
  Effect.gen(function* () {
    const program = fs.realpathSync(started)
    const file = unitAbove(program)
    if (file === undefined) {
      return yield* new UnitFailed({
        message: "The unit is in the package @agent-identity/server: run `svc-server systemd-unit`.",
      })
    }
    const lost = [program, started].find((one) => hidden.some((folder) => one.startsWith(folder)))
    if (lost !== undefined) {
      return yield* new UnitFailed({
        message: `The unit hides ${lost} from the service, because it is in a user's folder: install it as root (npm install --global @agent-identity/server).`,
      })
    }
    // A file without a shebang is run with the current Node.
    const words = path.extname(started) === "" ? [started] : [node, started]
    if (words.some((word) => /[\s"'\\%$;]/.test(word))) {
      return yield* new UnitFailed({
        message: `systemd cannot start ${words.join(" ")}, because its path needs quotes.`,
      })
    }
    return fs.readFileSync(file, "utf8").replace(/^ExecStart=.*$/m, () => `ExecStart=${words.join(" ")} serve`)
  })

const print = Effect.gen(function* () {
  const unit = yield* unitOf(process.argv[1] ?? "", process.execPath)
  yield* Effect.sync(() => process.stdout.write(unit))
})

export const command = Command.make("systemd-unit", {}, () => reportedError(print)).pipe(
  Command.withDescription("Print the systemd unit of the service."),
)
