/** `svc open`: opens a page of the console in the browser. */
import { spawn } from "node:child_process"
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { apiOf, explained, Misused } from "../client/Connection.ts"
import { apiFlag } from "../client/Flags.ts"
import { formatFlags, respond } from "../client/Format.ts"

const pages: Readonly<Record<string, string>> = {
  console: "/console",
  keys: "/console/keys",
  docs: "/docs",
  api: "/api/docs",
}

/** Starts the program of the system that opens addresses; its failure leaves the printed address. */
const launch = (url: string) =>
  Effect.sync(() => {
    const [program, ...args] =
      process.platform === "darwin"
        ? ["open", url]
        : process.platform === "win32"
          ? ["rundll32", "url.dll,FileProtocolHandler", url]
          : ["xdg-open", url]
    const child = spawn(program!, args, { stdio: "ignore", detached: true })
    child.on("error", () => {})
    child.unref()
  })

export const command = Command.make(
  "open",
  {
    page: Argument.String("page").pipe(
      Argument.withDescription(`A page (${Object.keys(pages).join(", ")}), or an Identity as @handle.`),
      Argument.withDefault("console"),
    ),
    print: Flag.Boolean("print").pipe(Flag.withDescription("Only print the address."), Flag.withDefault(false)),
    api: apiFlag,
    ...formatFlags,
  },
  Effect.fnUntraced(function* (flags) {
    const api = yield* apiOf(flags.api)
    const handle = /^@([A-Za-z0-9-]{1,64})$/.exec(flags.page)?.[1]
    const path = handle === undefined ? pages[flags.page] : `/console/identities/${handle}`
    if (path === undefined) {
      return yield* new Misused({
        message: `There is no page ${flags.page}. The pages are ${Object.keys(pages).join(", ")} and @handle.`,
      })
    }
    yield* respond(flags, { url: api + path }, () => api + path)
    if (!flags.print) yield* launch(api + path)
  }, explained),
).pipe(Command.withDescription("Open the console, an Identity or the documentation in the browser."))
